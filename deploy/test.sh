#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds and tests everything. See --help. Exit code 0 only if all of it passes.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
quick=0

help() {
    cat <<'END'
usage: deploy/test.sh [--quick]

1. installs what is missing (deploy/install.sh)
2. builds the release preset, warnings are errors; GPU kernels for sm_80, also as PTX, and sm_90a,
   for others with BITSWEEP_CUDA_ARCHITECTURES=80-real;... in the environment
3. checks the style (deploy/style.sh)
4. runs all tests of the release build; with nvcc these compile the kernels for the other
   architectures
5. builds with address and undefined-behaviour sanitizers and runs the unit tests, the kernel
   checks, also those of the GPU kernels, and the cluster tests labelled asan, on at most 2 ranks
6. on Debian for x86-64: builds for aarch64, runs its kernel checks under qemu, and compares what
   both write (tests/aarch64/check_aarch64.sh)

  --quick   leaves out steps 5 and 6
END
}

case ${1:-} in
"") ;;
--quick) quick=1 ;;
-h | --help) help && exit 0 ;;
*)
    echo "test.sh: unknown option $1; --help tells more" >&2
    exit 2
    ;;
esac

failed=()

# step NAME COMMAND: prints the time it took.
step() {
    local begin=$SECONDS
    echo "== $1"
    shift
    "$@" || failed+=("$*")
    echo "== $((SECONDS - begin)) s"
}

# run_tests PRESET [CTEST ARGUMENTS]: the last lines printed are ctest's own. Tests with short
# deadlines are marked to run alone; of the others three at a time do well on two cores, as many wait a part of theirs.
run_tests() {
    local preset=$1
    shift
    echo "== tests: $preset"
    ctest --test-dir "build/$preset" --parallel 3 --output-on-failure "$@" ||
        failed+=("tests of build/$preset")
}

# Also between steps where the next ones make no sense without the last.
stop_if_failed() {
    local what
    ((${#failed[@]})) || return 0
    for what in "${failed[@]}"; do
        echo "test.sh: failed: $what" >&2
    done
    exit 1
}

is_debian_amd64() {
    grep -qx 'ID=debian' /etc/os-release 2>/dev/null && [[ $(uname -m) == x86_64 ]]
}

test_aarch64() {
    deploy/install.sh --aarch64 && deploy/build.sh aarch64 &&
        bash tests/aarch64/check_aarch64.sh build/release/bitsweep . build/aarch64 build/aarch64-root
}

step "set-up" deploy/install.sh --python
stop_if_failed
step "build: release" deploy/build.sh release -- \
    "-DBITSWEEP_CUDA_ARCHITECTURES=${BITSWEEP_CUDA_ARCHITECTURES:-80;90a-real}" -DBITSWEEP_KEEP_CUBINS=ON
stop_if_failed
step "style" deploy/style.sh
run_tests release
if ((!quick)); then
    step "build: asan" deploy/build.sh asan
    # Options of the sanitizers' runtime are set in tests/CMakeLists.txt.
    BITSWEEP_MAX_RANKS=2 run_tests asan --label-regex '^(unit|kernelcheck|emulation|asan)$'
    if is_debian_amd64; then
        step "aarch64 under qemu" test_aarch64
    else
        echo "== aarch64 under qemu: left out, this is not Debian for x86-64"
    fi
fi
stop_if_failed
