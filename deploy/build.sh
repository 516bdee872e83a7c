#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures and builds one preset of CMakePresets.json. See --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=deploy/progress.sh
. "$root/deploy/progress.sh"

help() {
    cat <<'END'
usage: deploy/build.sh [release|debug|asan|coverage|aarch64] [--program | --push] [--gpu WHICH]
       [-- CMAKE_ARGUMENTS]

Builds build/PRESET [release]. Says what GPU kernels it has and, where it takes long, how far it is;
all else only where something fails.

  --program     all that is installed, and no tests, in a tenth of the time
  --push        that, and what tests of a push need under sanitizers (deploy/test.sh)
  --gpu WHICH   what GPU kernels are compiled for: numbers (80,90,90a), all, none, or auto: the GPUs
                of this machine [what the folder was built for before; a new one: auto]
END
}

fail() {
    echo "build.sh: $1" >&2
    exit 2
}

# gpu_arguments_of WHICH
gpu_arguments_of() {
    local architectures=${1//,/;} number='(8[0-9]|9[0-9]|[1-9][0-9][0-9])[a-z]?'
    case $1 in
    auto) gpu_arguments=(-DBITSWEEP_CUDA=AUTO -DBITSWEEP_CUDA_ARCHITECTURES=) ;;
    none) gpu_arguments=(-DBITSWEEP_CUDA=OFF -DBITSWEEP_CUDA_ARCHITECTURES=) ;;
    *)
        [[ $1 =~ ^(all|$number(,$number)*)$ ]] || fail "--gpu $1: use numbers from 80 on, such as 80,90, or all, none or auto"
        gpu_arguments=(-DBITSWEEP_CUDA=ON "-DBITSWEEP_CUDA_ARCHITECTURES=$architectures")
        ;;
    esac
}

preset=release
targets=()
gpu_arguments=()
while (($#)); do
    case $1 in
    -h | --help) help && exit 0 ;;
    release | debug | asan | coverage | aarch64) preset=$1 ;;
    --program) targets=(--target packaged) ;;
    --push) targets=(--target push) ;;
    --gpu)
        (($# > 1)) || fail "--gpu needs a value; --help tells more"
        gpu_arguments_of "$2"
        shift
        ;;
    --) shift && break ;;
    -*) fail "unknown option $1; --help tells more" ;;
    *) fail "unknown preset $1; --help tells more" ;;
    esac
    shift
done

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# step WHAT COMMAND...
step() {
    local what=$1 begin=$SECONDS
    shift
    if ! with_progress "build.sh: $preset: $what" "$log" "$@"; then
        cat "$log" >&2
        echo "build.sh: $preset: $what failed" >&2
        exit 1
    fi
    if ((SECONDS - begin >= 10)); then echo "build.sh: $preset: $what took $((SECONDS - begin)) s" >&2; fi
}

cd "$root"
if [[ $preset == aarch64 ]]; then
    step "unpacking libraries" "$root/deploy/aarch64_root.sh" "$root/build/aarch64-root"
fi
generator=()
# An existing folder keeps its generator; cmake refuses to change it.
if [[ ! -f build/$preset/CMakeCache.txt ]] && command -v ninja >/dev/null; then
    generator=(-G Ninja)
fi
step configuring cmake --preset "$preset" ${generator[@]+"${generator[@]}"} \
    ${gpu_arguments[@]+"${gpu_arguments[@]}"} "$@"
sed -n "s/^BITSWEEP_GPU_KERNELS:INTERNAL=/build.sh: $preset: GPU kernels: /p" "build/$preset/CMakeCache.txt"
step building cmake --build --preset "$preset" --parallel "$(nproc)" ${targets[@]+"${targets[@]}"}
