#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures and builds one preset of CMakePresets.json. Quiet unless something fails.
# usage: deploy/build.sh [release|debug|asan|coverage|aarch64] [--program] [-- more arguments for cmake's configuration]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=release
case ${1:-} in
-h | --help)
    echo "usage: deploy/build.sh [release|debug|asan|coverage|aarch64] [--program] [-- CMAKE_ARGUMENTS]"
    echo "  --program   program and library alone, in half the time: no tests"
    exit 0
    ;;
-- | --program | "") ;;
-*)
    echo "build.sh: unknown option $1; --help tells more" >&2
    exit 2
    ;;
*) preset=$1 && shift ;;
esac
targets=()
if [[ ${1:-} == --program ]]; then
    targets=(--target bitsweep bitsweep-bench bitsweep-run bitsweep_shared bitsweep_static)
    shift
fi
if [[ ${1:-} == -- ]]; then shift; fi

if [[ $preset == aarch64 ]]; then "$root/deploy/aarch64_root.sh" "$root/build/aarch64-root"; fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

quietly() {
    if ! "$@" >"$log" 2>&1; then
        cat "$log" >&2
        echo "build.sh: $preset: $1 failed" >&2
        exit 1
    fi
}

cd "$root"
generator=()
# An existing folder keeps its generator; cmake refuses to change it.
if [[ ! -f build/$preset/CMakeCache.txt ]] && command -v ninja >/dev/null; then
    generator=(-G Ninja)
fi
quietly cmake --preset "$preset" ${generator[@]+"${generator[@]}"} "$@"
quietly cmake --build --preset "$preset" --parallel "$(nproc)" ${targets[@]+"${targets[@]}"}
