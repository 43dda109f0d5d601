#!/bin/bash
# Installs Debian's Chromium, in which the tests look at the gate's page, and a font to show it with. Says where it is.
# A machine that has it is left alone; otherwise this runs as root.
set -euo pipefail

if command -v chromium > /dev/null; then
    command -v chromium
    exit 0
fi
echo "browser: installing chromium" >&2
# Somebody else's apt may be at work: wait for it.
apt-get -qq -o DPkg::Lock::Timeout=300 update
DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends \
    chromium fonts-liberation > /dev/null
command -v chromium
