#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds and tests everything. See --help. Exit code 0 only if all of it passes.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
quick=0
night=0

help() {
    cat <<'END'
usage: deploy/test.sh [--quick | --night]

1. installs what is missing (deploy/install.sh)
2. builds the release preset, warnings are errors; GPU kernels for sm_80, also as PTX, and sm_90a,
   for others with BITSWEEP_CUDA_ARCHITECTURES=80-real;... in the environment
3. checks the style (deploy/style.sh)
4. runs the tests of the release build but those for the night (tests/night.cmake), on at most
   3 ranks; long ones are cut short
5. builds with address and undefined-behaviour sanitizers and runs the unit tests, the fuzz targets
   and the cluster tests labelled asan that are not for the night, on at most 2 ranks

With --night, in place of 4 and 5, and nothing cut short:

4. runs all tests of the release build; with nvcc these compile the kernels for the other
   architectures
5. builds with the sanitizers and runs all unit tests, the kernel checks, also those of the GPU
   kernels, and the cluster tests labelled asan, on at most 2 ranks
6. on Debian for x86-64: builds for aarch64, runs its kernel checks under qemu, and compares what
   both write (tests/aarch64/check_aarch64.sh)

The builds of steps 5 and 6 begin earlier, with what the steps before them leave of the cores.

  --quick   leaves out step 5
END
}

case ${1:-} in
"") ;;
--quick) quick=1 ;;
--night) night=1 ;;
-h | --help) help && exit 0 ;;
*)
    echo "test.sh: unknown option $1; --help tells more" >&2
    exit 2
    ;;
esac

failed=()
declare -A processes=() # in the background, by name
trap stop_background EXIT

# step NAME COMMAND: prints the time it took.
step() {
    local begin=$SECONDS
    echo "== $1"
    shift
    "$@" || failed+=("$*")
    echo "== $((SECONDS - begin)) s"
}

# in_background NAME COMMAND: takes what time of the cores all else leaves. In a session of its own, as Linux may share
# the cores among sessions first.
in_background() {
    local name=$1
    shift
    mkdir -p build
    # shellcheck disable=SC2016
    setsid bash -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec nice -n 19 "$@"' in_background "$@" \
        >"build/$name.log" 2>&1 &
    processes[$name]=$!
}

# end_of NAME: waits for it, and prints what it has printed.
end_of() {
    local code=0
    wait "${processes[$1]}" || code=$?
    cat "build/$1.log"
    unset "processes[$1]"
    return "$code"
}

stop_background() {
    local process
    for process in "${processes[@]}"; do kill -- "-$process" 2>/dev/null || true; done
    wait
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
    end_of aarch64 && bash tests/aarch64/check_aarch64.sh build/release/bitsweep . build/aarch64 build/aarch64-root
}

# What is installed beside the release build later may ask nobody for a password.
set_up() {
    deploy/install.sh --python || return
    if ((EUID > 0 && night)) && is_debian_amd64; then deploy/install.sh --aarch64; fi
}

step "set-up" set_up
stop_if_failed
if ((night)) && is_debian_amd64; then
    in_background aarch64 bash -c 'deploy/install.sh --aarch64 && deploy/build.sh aarch64'
fi
step "build: release" deploy/build.sh release -- -DBITSWEEP_CUDA=AUTO \
    "-DBITSWEEP_CUDA_ARCHITECTURES=${BITSWEEP_CUDA_ARCHITECTURES:-80;90a-real}" -DBITSWEEP_KEEP_CUBINS=ON \
    "-DBITSWEEP_NIGHT=$night"
stop_if_failed
# Options of the sanitizers' runtime are set in tests/CMakeLists.txt.
test_push() {
    if ((!quick)); then in_background asan deploy/build.sh asan --push; fi
    step "style" deploy/style.sh
    export QUICK=1
    BITSWEEP_MAX_RANKS=3 run_tests release --label-exclude '^night$'
    if ((quick)); then return; fi
    step "build: asan" end_of asan
    BITSWEEP_MAX_RANKS=2 run_tests asan --label-regex '^(unit|asan)$' --label-exclude '^(night|emulation)$'
}

test_night() {
    in_background asan deploy/build.sh asan
    step "style" deploy/style.sh
    run_tests release
    step "build: asan" end_of asan
    BITSWEEP_MAX_RANKS=2 run_tests asan --label-regex '^(unit|kernelcheck|emulation|asan)$'
    if is_debian_amd64; then
        step "aarch64 under qemu" test_aarch64
    else
        echo "== aarch64 under qemu: left out, this is not Debian for x86-64"
    fi
}

if ((night)); then test_night; else test_push; fi
stop_if_failed
