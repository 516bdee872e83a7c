#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian package of a build, by CPack. See --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

help() {
    cat <<'END'
usage: deploy/package/package.sh [BUILD] [FOLDER]

Packs the programs in BUILD [build/release] into FOLDER [build/package] and prints the name of the
package; on stderr, what GPU kernels are in it: `deploy/build.sh --gpu all` builds them for every GPU.
The package depends on the libraries of the Debian or Ubuntu release that it was built on, and needs
dpkg-dev.

Exit codes: 0 there is a package, 1 there is none, 2 usage.
END
}

fail() {
    echo "package.sh: $1" >&2
    exit "${2:-1}"
}

case ${1:-} in
-h | --help) help && exit 0 ;;
-*) fail "unknown option $1; --help tells more" 2 ;;
esac
build=$(realpath "${1:-$root/build/release}")
folder=${2:-$root/build/package}
[[ -f $build/CPackConfig.cmake ]] || fail "$build is not built; deploy/build.sh builds it"
command -v dpkg-shlibdeps >/dev/null || fail "dpkg-shlibdeps is missing; the package dpkg-dev has it"
mkdir -p "$folder"
folder=$(realpath "$folder")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! (cd "$folder" && cpack --config "$build/CPackConfig.cmake" -B "$folder") >"$log" 2>&1; then
    cat "$log" >&2
    fail "cpack failed"
fi
rm -rf "$folder/_CPack_Packages"
sed -n 's/^BITSWEEP_GPU_KERNELS:INTERNAL=/package.sh: GPU kernels: /p' "$build/CMakeCache.txt" >&2
sed -n 's/^CPack: - package: \(.*\) generated\.$/\1/p' "$log"
