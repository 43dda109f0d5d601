#!/bin/sh
# Runs one command of an image build with the secrets that were passed: a CA bundle and the indexes' settings, for
# pip and for uv. They are mounted for this step only and named through variables, so nothing of them stays behind.
# usage: build-step.sh COMMAND…              any command
#        build-step.sh apt-install PACKAGE…  Debian's and Ubuntu's packages, from APT_MIRROR where it is set
set -eu

secrets=${SECRETS_FOLDER:-/run/secrets}
etc_apt=${ETC_APT:-/etc/apt}
if [ -s "$secrets/ca_bundle" ]; then
    export SSL_CERT_FILE="$secrets/ca_bundle" PIP_CERT="$secrets/ca_bundle" GIT_SSL_CAINFO="$secrets/ca_bundle"
fi
if [ -s "$secrets/pip_config" ]; then export PIP_CONFIG_FILE="$secrets/pip_config"; fi
if [ -s "$secrets/uv_config" ]; then export UV_CONFIG_FILE="$secrets/uv_config"; fi

# Prints the distribution's own sources with the mirror as their address; sources of other vendors are left out,
# because a closed network that needs the mirror does not reach them.
mirrored_sources() {
    for list in "$etc_apt"/sources.list "$etc_apt"/sources.list.d/*.list; do
        [ -f "$list" ] || continue
        awk -v mirror="$APT_MIRROR" '
            /^[ \t]*deb[ \t]/ {
                line = $0; options = ""
                if (match(line, /\[[^]]*\]/)) options = substr(line, RSTART, RLENGTH) " "
                sub(/\[[^]]*\]/, "", line)
                if (split(line, word, /[ \t]+/) > 2 && word[2] ~ /\/(debian|ubuntu)\/?$/) {
                    rest = ""
                    for (i = 3; i in word; i++) rest = rest " " word[i]
                    print "deb " options mirror rest
                }
            }' "$list"
    done
    for list in "$etc_apt"/sources.list.d/*.sources; do
        [ -f "$list" ] || continue
        awk -v mirror="$APT_MIRROR" '
            function flush_stanza() {
                count = split(suites, suite, " ")
                signed = key == "" ? "" : "[signed-by=" key "] "
                if (uris ~ /\/(debian|ubuntu)\/?( |$)/)
                    for (i = 1; i <= count; i++) print "deb " signed mirror " " suite[i] " " components
                uris = suites = components = key = ""
            }
            /^[ \t]*$/ { flush_stanza(); next }
            { field = tolower($1); value = $0; sub(/^[^:]*:[ \t]*/, "", value) }
            field == "uris:" { uris = value }
            field == "suites:" { suites = value }
            field == "components:" { components = value }
            field == "signed-by:" { key = value }
            END { flush_stanza() }' "$list"
    done
}

apt_install() {
    # Debian's images delete every archive after an install, which would empty the cache mount.
    rm -f "$etc_apt/apt.conf.d/docker-clean"
    [ ! -s "$secrets/ca_bundle" ] || set -- -o "Acquire::https::CAInfo=$secrets/ca_bundle" "$@"
    if [ -n "${APT_MIRROR:-}" ]; then
        sources=$(mktemp)
        trap 'rm -f "$sources"' EXIT
        mirrored_sources > "$sources"
        set -- -o "Dir::Etc::SourceList=$sources" -o Dir::Etc::SourceParts=- "$@"
    fi
    # Options and packages travel together; `update` takes the options only.
    options=""
    for word in "$@"; do
        case "$word" in -o | *=*) options="$options $word" ;; esac
    done
    # shellcheck disable=SC2086
    apt-get $options update
    apt-get install --yes --no-install-recommends "$@"
}

if [ "${1:-}" = apt-install ]; then
    shift
    export DEBIAN_FRONTEND=noninteractive
    apt_install "$@"
elif [ "${1:-}" = mirrored-sources ]; then
    mirrored_sources
else
    exec "$@"
fi
