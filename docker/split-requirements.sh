#!/bin/sh
# Splits a requirements file, so that image layers depend on their own lines only:
#   flashinfer.txt        FlashInfer's packages
#   flashinfer-rest.txt   the same without flashinfer-python, which the nightly image builds from source
#   companions.txt        everything else, without the packages named in the third argument
#   overrides.txt         tells uv never to install the packages named in the third argument
# Options (--extra-index-url …) go into every part; comments and blank lines into none. FlashInfer's lines get the
# wheels' hashes that a bump recorded in the settings' table [flashinfer.sha256], so that the installer verifies them.
# usage: split-requirements.sh FILE FOLDER [PACKAGES [SETTINGS]]
set -eu

settings=${4:-/dev/null}
[ -f "$settings" ] || settings=/dev/null

awk -v folder="$2" -v without="${3:-}" -v settings="$settings" '
# " --hash=sha256:…" for every recorded file of a line such as flashinfer-python==0.6.12.
function hashes(line, name,    version, file, found, head) {
    if (!match(line, /==[^ ;,]+/)) return ""
    version = substr(line, RSTART + 2, RLENGTH - 2)
    for (file in recorded) {
        head = normal(substr(file, 1, index(file, "-") - 1))
        if (head == name && index(file "-", "-" version "-") + index(file, "-" version "+") > 0)
            found = found " --hash=sha256:" recorded[file]
    }
    return found
}
function normal(name) { name = tolower(name); gsub(/[-_.]+/, "-", name); return name }
BEGIN {
    count = split(without, names, /[ ,]+/)
    for (i = 1; i <= count; i++) if (names[i] != "") left_out[normal(names[i])] = 1
    split("flashinfer.txt flashinfer-rest.txt companions.txt overrides.txt", parts, " ")
    for (i in parts) printf "" > (folder "/" parts[i])
    while ((getline row < settings) > 0) {
        if (row ~ /^[ \t]*\[/) in_table = (row ~ /^[ \t]*\[flashinfer\.sha256\][ \t]*(#.*)?\r?$/)
        else if (in_table && split(row, quoted, /["\047]/) >= 5 && quoted[4] ~ /^[0-9a-f]+$/) recorded[quoted[2]] = quoted[4]
    }
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
        line = line hashes(line, name)
        print line > (folder "/flashinfer.txt")
        if (name != "flashinfer-python") print line > (folder "/flashinfer-rest.txt")
    } else if (!(name in left_out)) {
        print line > (folder "/companions.txt")
    }
}' "$1"
