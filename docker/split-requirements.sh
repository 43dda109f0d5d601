#!/bin/sh
# Splits a requirements file, so that image layers depend on their own lines only:
#   flashinfer.txt        FlashInfer's packages
#   flashinfer-rest.txt   the same without flashinfer-python, which the nightly image builds from source
#   companions.txt        everything else, without the packages named in the third argument
#   overrides.txt         tells uv never to install the packages named in the third argument
# Options (--extra-index-url …) go into every part; comments and blank lines into none.
# usage: split-requirements.sh FILE FOLDER [PACKAGES]
set -eu

awk -v folder="$2" -v without="${3:-}" '
function normal(name) { name = tolower(name); gsub(/[-_.]+/, "-", name); return name }
BEGIN {
    count = split(without, names, /[ ,]+/)
    for (i = 1; i <= count; i++) if (names[i] != "") left_out[normal(names[i])] = 1
    split("flashinfer.txt flashinfer-rest.txt companions.txt overrides.txt", parts, " ")
    for (i in parts) printf "" > (folder "/" parts[i])
    for (name in left_out) print name " ; python_version < \"0\"" > (folder "/overrides.txt")
}
{
    sub(/\r$/, "")
    sub(/^\357\273\277/, "")
    if (sub(/\\$/, "")) { pending = pending $0 " "; next }
    line = pending $0; pending = ""
    sub(/(^|[ \t]+)#.*$/, "", line); sub(/^[ \t]+/, "", line); sub(/[ \t]+$/, "", line)
    if (line == "") next
    if (line ~ /^-/) {
        for (i = 1; i <= 3; i++) print line > (folder "/" parts[i])
        next
    }
    name = line
    sub(/[^A-Za-z0-9._-].*$/, "", name)
    name = normal(name)
    if (name ~ /^flashinfer-/) {
        print line > (folder "/flashinfer.txt")
        if (name != "flashinfer-python") print line > (folder "/flashinfer-rest.txt")
    } else if (!(name in left_out)) {
        print line > (folder "/companions.txt")
    }
}' "$1"
