#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building, running and testing bitsweep needs, from Debian's or Ubuntu's packages.
# Does nothing where all of it is there. See --help.
set -euo pipefail

# shellcheck source=deploy/progress.sh
. "$(dirname "${BASH_SOURCE[0]}")/progress.sh"

# What must be there, and the package that has it: a command, a header, a library as pkg-config
# names it, or a module of the system's Python.
needed=(
    "command gcc gcc"
    "command g++ g++"
    "header stdio.h libc6-dev"
    "command cmake cmake"
    "command ninja ninja-build"
    "command pkg-config pkg-config"
    "command mpirun openmpi-bin"
    "command mpicc libopenmpi-dev"
    "command protoc-c protobuf-c-compiler"
    "command protoc protobuf-compiler"
    "command gnuplot gnuplot-nox"
    "command ip iproute2"
    "library libprotobuf-c libprotobuf-c-dev"
    "library libxxhash libxxhash-dev"
    "library hwloc libhwloc-dev"
    "library openblas libopenblas-dev"
    "library jansson libjansson-dev"
    "library libutf8proc libutf8proc-dev"
    "library hdf5-serial libhdf5-dev"
    "library cmocka libcmocka-dev"
    "header simde/x86/avx512.h libsimde-dev"
)
# Cross builds for aarch64 and running them; arm64 libraries are unpacked elsewhere (aarch64_root.sh).
for_aarch64=(
    "command aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu"
    "command qemu-aarch64-static qemu-user-static"
)
# The Python package (python/) and what tests it.
for_python=(
    "python numpy python3-numpy"
    "python mpi4py python3-mpi4py"
)
# deploy/style.sh leaves out the checks whose tool is missing.
for_style=(
    "command clang-format clang-format"
    "command shellcheck shellcheck"
)
# Optional back ends of selective tables, which trace rays.
for_embree=(
    "header embree3/rtcore.h libembree-dev"
)
# driver: the package in this version or later, with ray tracing in software.
for_vulkan=(
    "command glslangValidator glslang-tools"
    "library vulkan libvulkan-dev"
    "driver 25 mesa-vulkan-drivers"
)

help() {
    cat <<'END'
usage: deploy/install.sh [--python | --style | --aarch64 | --embree | --vulkan]

Installs the packages that bitsweep needs and that are missing, as root or through sudo. On a system
without apt-get it only lists them.

  --python    also NumPy and mpi4py, for the Python package
  --style     also the tools that deploy/style.sh uses where it finds them
  --aarch64   also what deploy/build.sh aarch64 needs, and qemu, which runs what it builds
  --embree    also Embree, which a build takes where it finds it
  --vulkan    also Vulkan, a compiler of shaders, and Mesa 25, whose software driver traces rays; on
              Debian 12 from backports, which stay out of this system's sources

Exit codes: 0 all is there, 1 something is missing and could not be installed, 2 usage.
END
}

fail() {
    echo "install.sh: $1" >&2
    exit "${2:-1}"
}

is_there() {
    case $1 in
    command) command -v "$2" >/dev/null ;;
    header) gcc -E -include "$2" -x c /dev/null >/dev/null 2>&1 ;;
    library) pkg-config --exists "$2" 2>/dev/null ;;
    driver) dpkg --compare-versions "$(dpkg-query -W -f '${Version}' "$3" 2>/dev/null)" ge "$2" ;;
    python) /usr/bin/python3 -c "import $2" 2>/dev/null ;;
    esac
}

# Prints the packages of the entries that are missing.
missing_packages() {
    local entry kind name package
    for entry in "$@"; do
        read -r kind name package <<<"$entry"
        is_there "$kind" "$name" "$package" || echo "$package"
    done
}

# gnuplot draws text in PNG files with whatever font it finds; a bare machine may have none.
missing_fonts() {
    command -v fc-list >/dev/null && [[ -n $(fc-list 2>/dev/null | head -n 1) ]] ||
        echo fonts-dejavu-core
}

find_missing() {
    mapfile -t missing < <(missing_packages "${entries[@]}" && missing_fonts)
}

run_as_root() {
    if ((EUID == 0)); then
        "$@"
    else
        sudo "$@"
    fi
}

check_rights() {
    command -v apt-get >/dev/null ||
        fail "no apt-get here; install what these Debian packages hold: ${missing[*]}"
    ((EUID == 0)) || command -v sudo >/dev/null ||
        fail "neither root nor sudo; let an administrator run: apt-get install ${missing[*]}"
}

# The driver of Debian 12 is too old: takes that package, and what it needs, from backports, which
# are among the sources for these calls alone.
use_backports() {
    # shellcheck source=/dev/null
    [[ " ${packages[*]} " == *" mesa-vulkan-drivers "* && $(. /etc/os-release && echo "${VERSION_CODENAME:-}") == bookworm ]] ||
        return 0
    sources=$(mktemp -d)
    chmod 755 "$sources"
    [[ ! -d /etc/apt/sources.list.d ]] || cp -r /etc/apt/sources.list.d/. "$sources"
    echo "deb http://deb.debian.org/debian bookworm-backports main" >"$sources/bitsweep-backports.list"
    apt+=(-o "Dir::Etc::sourceparts=$sources")
    packages=("${packages[@]/%mesa-vulkan-drivers/mesa-vulkan-drivers/bookworm-backports}")
}

install_missing() {
    echo "install.sh: installing ${missing[*]}"
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o=Dpkg::Use-Pty=0) packages=("${missing[@]}")
    log=$(mktemp) sources=
    trap 'rm -rf "$log" ${sources:+"$sources"}' EXIT
    use_backports
    run_as_root true # asks for the password, if any, before a line is rewritten
    with_progress "install.sh: asking for packages" "$log" run_as_root "${apt[@]}" update ||
        { cat "$log" && echo "install.sh: apt-get update failed, trying on"; } >&2
    with_progress "install.sh: installing packages" "$log" \
        run_as_root "${apt[@]}" install -y --no-install-recommends "${packages[@]}" ||
        { cat "$log" >&2 && fail "apt-get could not install ${missing[*]}"; }
}

entries=("${needed[@]}")
case ${1:-} in
"") ;;
--python) entries+=("${for_python[@]}") ;;
--style) entries+=("${for_style[@]}") ;;
--aarch64) entries+=("${for_aarch64[@]}") ;;
--embree) entries+=("${for_embree[@]}") ;;
--vulkan) entries+=("${for_vulkan[@]}") ;;
-h | --help) help && exit 0 ;;
*) fail "unknown option $1; --help tells more" 2 ;;
esac

find_missing
((${#missing[@]})) || exit 0
check_rights
install_missing
find_missing
((${#missing[@]} == 0)) || fail "still missing: ${missing[*]}"
echo "install.sh: all is there"
