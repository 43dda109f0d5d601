#!/bin/bash
# Brings up what the image tests need on a bare Debian machine, as root: Debian's Docker engine started by hand, buildx
# as a plugin, and a base image that stands for the CUDA base. Each step is left alone where it is done already.
# usage: ci/engine.sh up           install and start the engine, unless one answers
#        ci/engine.sh base TAG     make the base image, unless there is one of that name
#        ci/engine.sh registry     install a registry's program, for tests that push
#        ci/engine.sh tidy         remove what the tests built and bound the build cache
#        ci/engine.sh down         tidy, then stop the engine if this script started it
set -euo pipefail

BUILDX_SUITE=trixie # the oldest Debian release with a docker-buildx package (0.13.1)
CUDA_VERSION=13.0.2 # the base's ENV; a test holds it equal to versions.json
NVCC_VERSION=13.0.88
KEEP_CACHE=${KEEP_CACHE:-12GB}
STATE=${ENGINE_STATE:-/var/tmp/pin-pipeline-engine}
LABEL=io.github.flashinfer-pins.test

say() { echo "engine: $*" >&2; }
fail() {
    say "$*"
    exit 3
}

# The address that apt already takes this distribution from, and the keyring that signs it.
debian_mirror() {
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 -E '/debian/?$' ||
        fail "apt knows no Debian mirror; expected a line of Debian's own archive in its sources"
}

# shellcheck disable=SC1091
codename() { (. /etc/os-release && echo "$VERSION_CODENAME"); }

install_packages() {
    local missing=()
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'install ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${missing[*]}"
    # Somebody else's apt may be at work: wait for it.
    apt-get -qq -o DPkg::Lock::Timeout=300 update
    # No service is started here: the engine is started by hand below, where no init system runs.
    local policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' > "$policy"
        chmod +x "$policy"
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    fi
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends "${missing[@]}" > /dev/null
}

# Debian 12 has no buildx: its package of a later release is one static program, unpacked as a plugin.
install_buildx() {
    docker buildx version > /dev/null 2>&1 && return 0
    say "unpacking buildx from $BUILDX_SUITE"
    local folder mirror options
    folder=$(mktemp -d)
    mirror=$(debian_mirror)
    mkdir -p "$folder/lists/partial" "$folder/archives/partial"
    chmod -R 755 "$folder"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $BUILDX_SUITE main" > "$folder/sources.list"
    options=(-qq -o "Dir::Etc::SourceList=$folder/sources.list" -o Dir::Etc::SourceParts=- -o APT::Sandbox::User=root
        -o "Dir::State::Lists=$folder/lists" -o "Dir::Cache=$folder" -o "Dir::Cache::Archives=$folder/archives")
    apt-get "${options[@]}" update
    (cd "$folder" && apt-get "${options[@]}" download docker-buildx && dpkg-deb -x docker-buildx_*.deb unpacked)
    install -D -m 755 "$folder/unpacked/usr/libexec/docker/cli-plugins/docker-buildx" \
        "${DOCKER_CONFIG:-$HOME/.docker}/cli-plugins/docker-buildx"
    rm -rf "$folder"
    docker buildx version > /dev/null || fail "buildx was unpacked and does not run"
}

start_engine() {
    docker info > /dev/null 2>&1 && return 0
    mkdir -p "$STATE"
    # Packets larger than the machine's own link would be lost between a build's bridge and the world.
    local device mtu
    device=$(awk '$2 == "00000000" { print $1; exit }' /proc/net/route)
    mtu=$(cat "/sys/class/net/${device:-lo}/mtu")
    [ "$mtu" -le 1500 ] || mtu=1500
    say "starting dockerd"
    rm -f /var/run/docker.pid
    setsid nohup dockerd --mtu "$mtu" > "$STATE/dockerd.log" 2>&1 < /dev/null &
    echo $! > "$STATE/dockerd.pid"
    for _ in $(seq 60); do
        docker info > /dev/null 2>&1 && return 0
        kill -0 "$(cat "$STATE/dockerd.pid")" 2> /dev/null || break
        sleep 1
    done
    tail -20 "$STATE/dockerd.log" >&2
    fail "dockerd did not answer; its log is $STATE/dockerd.log"
}

# A Debian root with nvcc under /usr/local/cuda and somebody with uid 1000, as the CUDA base has them.
make_base() {
    local tag=$1 folder
    docker image inspect "$tag" > /dev/null 2>&1 && return 0
    say "making $tag with debootstrap"
    folder=$(mktemp -d -p /var/tmp)
    debootstrap --variant=minbase --include=ca-certificates "$(codename)" "$folder/root" "$(debian_mirror)" > "$folder/log" ||
        { tail -20 "$folder/log" >&2; fail "debootstrap failed"; }
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$folder" "nvidia-cuda-nvcc==$NVCC_VERSION"
    python3 - "$folder" << 'PYTHON'
import pathlib, shutil, sys, zipfile
folder = pathlib.Path(sys.argv[1])
(wheel,) = folder.glob("nvidia_cuda_nvcc-*.whl")
zipfile.ZipFile(wheel).extractall(folder / "wheel")
home = folder / "root" / "usr" / "local" / "cuda-13.0"
shutil.copytree(folder / "wheel" / "nvidia" / "cu13", home)
for program in (home / "bin").rglob("*"):
    program.chmod(0o755)
(home.parent / "cuda").symlink_to("cuda-13.0")
PYTHON
    chroot "$folder/root" useradd --uid 1000 --create-home ubuntu
    rm -rf "$folder/root/var/cache/apt/archives" "$folder/root/var/lib/apt/lists"
    mkdir -p "$folder/root/var/cache/apt/archives/partial" "$folder/root/var/lib/apt/lists/partial"
    tar -C "$folder/root" --one-file-system -c . | docker import --change "ENV CUDA_VERSION=$CUDA_VERSION" \
        --change 'ENV PATH=/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
        --change "LABEL $LABEL=base" --change 'CMD ["/bin/bash"]' - "$tag" > /dev/null
    rm -rf "$folder"
}

tidy() {
    docker info > /dev/null 2>&1 || return 0
    # Tests label what they make; nothing else is touched.
    docker ps --all --quiet --filter "label=$LABEL" | xargs --no-run-if-empty docker rm --force > /dev/null
    docker images --quiet --filter "label=$LABEL=built" | sort -u | xargs --no-run-if-empty docker rmi --force > /dev/null
    docker builder prune --force --keep-storage "$KEEP_CACHE" > /dev/null
}

stop_engine() {
    [ -f "$STATE/dockerd.pid" ] || return 0
    local pid
    pid=$(cat "$STATE/dockerd.pid")
    if [ "$(cat "/proc/$pid/comm" 2> /dev/null)" = dockerd ]; then
        say "stopping dockerd"
        kill "$pid"
        for _ in $(seq 30); do kill -0 "$pid" 2> /dev/null || break; sleep 1; done
    fi
    rm -f "$STATE/dockerd.pid"
}

case "${1:-}" in
    up) install_packages docker.io debootstrap iptables ca-certificates && install_buildx && start_engine ;;
    registry) install_packages docker-registry ;;
    base) [ $# -eq 2 ] || fail "usage: ci/engine.sh base TAG"; make_base "$2" ;;
    tidy) tidy ;;
    down) tidy; stop_engine ;;
    *) fail "usage: ci/engine.sh up | base TAG | registry | tidy | down" ;;
esac
