#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that only a GPU can show, in three calls. See --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
minutes=8
out=$root/build/gpu_check
build=""
part=""
pack=""
from_pack=""
nccl=""
mpi=/usr
is_emulated=0
command_line="bench/gpu_check.sh $*"
arguments=("$@")

help() {
    cat <<'END'
usage: bench/gpu_check.sh [--part 1|2|3] [--minutes N] [--out DIR] [--build DIR] [--from-pack FILE] [--emulated]
       bench/gpu_check.sh --pack FILE [--nccl FILE] [--mpi PREFIX] [--build DIR] [--emulated]

On a machine with an NVIDIA GPU; no network is needed, and with a pack nothing has to be installed.
Every step has its share of the time and is cut when that and what earlier steps left is over; a
step that fails or is cut does not keep later ones from running.

  --part 1      kernels against their references, whole searches against the CPU byte for byte,
                compute-sanitizer, small batches with and without CUDA graphs, times of kernels
                (bitsweep bench device)
  --part 2      the library and the Python package; 2 and 4 ranks on the GPU, over NCCL and MPI, also
                with one killed; cost and recall of searches of 10^8 rows, lists, tables of product
                codes, 768 dimensions, 10^9 rows
  --part 3      times of lists by phases, of selection, hits, product codes and rbeGIR's case; cuVS,
                FAISS and torch where python3, or PEERS_PYTHON in the environment, has them; bench
                cluster on the GPUs. Without --part all are run, one after the other
  --minutes N   for a part, without building (8)
  --out DIR     where logs, bench.json, bench.txt and results.md, a section for bench/RESULTS_gpu.md,
                go (build/gpu_check, with --part a folder of its number there)
  --build DIR   use the programs in this build folder, build nothing. Without it, and without a pack,
                programs are built for this GPU alone (build/gpu), which takes nvcc, CMake and a C
                and C++ compiler, and libraries of the system or of carried/, which
                bench/carry_libraries.sh gathers elsewhere
  --emulated    the same steps on the emulator, tiny: shows that this script works. Builds nothing;
                --build is build/release unless given
  --pack FILE   write FILE, .tar.zst or .tar.gz, of at most 64 MiB: scripts, programs, libraries and
                Open MPI, for a machine with nothing but a GPU and its driver. Unpack it there and run
                bitsweep/bench/gpu_check.sh in it. Programs are built for GPUs of 9.0 (build/gpu_pack),
                or taken from --build
  --nccl FILE   with --pack: a libnccl.so.2 to take along, of 2.30 or later for several ranks a GPU
  --mpi PREFIX  with --pack: where Open MPI is installed (/usr, as Debian has it)
  --from-pack FILE  unpack it below --out and run it from there

Exit codes: 0 all passed or had to be skipped, 1 something failed or was cut, 2 usage, 77 no GPU.
END
}

usage() {
    echo "gpu_check.sh: $1; --help tells more" >&2
    exit 2
}

parse() {
    while (($#)); do
        case $1 in
        -h | --help) help && exit 0 ;;
        --emulated) is_emulated=1 ;;
        --minutes | --out | --build | --part | --pack | --from-pack | --nccl | --mpi)
            (($# > 1)) || usage "$1 needs a value"
            case $1 in
            --minutes) minutes=$2 ;;
            --out) out=$2 ;;
            --build) build=$2 ;;
            --part) part=$2 ;;
            --pack) pack=$2 ;;
            --from-pack) from_pack=$2 ;;
            --nccl) nccl=$2 ;;
            --mpi) mpi=$2 ;;
            esac
            shift
            ;;
        *) usage "unknown option $1" ;;
        esac
        shift
    done
    [[ $minutes =~ ^[0-9]+(\.[0-9]+)?$ ]] || usage "--minutes $minutes: not a number"
    [[ $part =~ ^[123]?$ ]] || usage "--part $part: must be 1, 2 or 3"
    [[ $pack$from_pack =~ ^(.*\.tar\.(zst|gz))?$ ]] || usage "$pack$from_pack: must end in .tar.zst or .tar.gz"
    [[ -z $nccl || -e $nccl ]] || usage "--nccl $nccl: there is no such file"
    [[ -z $build || -d $build ]] || usage "--build $build: there is no such folder"
}

# shellcheck source=bench/gpu_check/gpu_steps.sh
. "$root/bench/gpu_check/gpu_steps.sh"
# shellcheck source=bench/gpu_check/gpu_report.sh
. "$root/bench/gpu_check/gpu_report.sh"
# shellcheck source=bench/gpu_check/gpu_pack.sh
. "$root/bench/gpu_check/gpu_pack.sh"
# shellcheck source=bench/gpu_check/gpu_parts.sh
. "$root/bench/gpu_check/gpu_parts.sh"

# ---- building ------------------------------------------------------------------------------------

# Libraries come from carried/ where it is. Old dynamic tags: a library's own libraries are looked
# for there too.
use_carried() {
    local carried=$root/carried
    [[ -d $carried ]] || return 0
    export PATH=$carried/bin:$PATH
    export PKG_CONFIG_PATH=$carried/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
    configure+=("-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags")
}

# build_all FOLDER ARCHITECTURES: none for those of the GPU that is here. The check for racecheck is for 9.0 alone.
build_all() {
    build=$1
    targets=(bitsweep bitsweep-bench bitsweep-run bitsweep_shared kernelcheck identity_data hostile_rows device_check_gpu
        library_device_gpu)
    configure=(cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DBITSWEEP_CUDA=ON
        -DBITSWEEP_MPI=AUTO "-DBITSWEEP_CUDA_ARCHITECTURES=$2")
    if [[ ! -f $build/CMakeCache.txt ]] && command -v ninja >/dev/null; then
        configure+=(-G Ninja)
    fi
    use_carried
    shares=("${shares_of_building[@]}")
    total=$((58 * 20))
    step configure "${configure[@]}" || return 1
    if grep -q 'GPU_KERNELS.*90a' "$build/CMakeCache.txt"; then targets+=(device_check_gpu_racecheck); fi
    step build cmake --build "$build" --parallel "$(nproc)" --target "${targets[@]}"
}

# ---- all of it -----------------------------------------------------------------------------------

make_pack() {
    out=$root/build/gpu_check
    mkdir -p "$out"
    [[ $pack == /* ]] || pack=$PWD/$pack
    if ((is_emulated)); then build=${build:-$root/build/release}; fi
    if [[ -n $build ]]; then
        build=$(cd "$build" && pwd)
    else
        build_all "$root/build/gpu_pack" 90 || exit 1
    fi
    write_pack "$pack" || exit 1
}

# Options that say what to run go on; --out is the same folder.
run_from_pack() {
    local i rest=()
    unpack "$from_pack" "$out/unpacked"
    for ((i = 0; i < ${#arguments[@]}; i++)); do
        case ${arguments[i]} in
        --from-pack | --out) i=$((i + 1)) ;;
        *) rest+=("${arguments[i]}") ;;
        esac
    done
    exec "$out/unpacked/bitsweep/bench/gpu_check.sh" ${rest[@]+"${rest[@]}"} --out "$out"
}

find_programs() {
    if [[ -z $build && -e $root/build/packed ]]; then use_packed; fi
    if ((is_emulated)); then build=${build:-$root/build/release}; fi
    if [[ -z $build ]]; then
        build_all "$root/build/gpu" ""
        return
    fi
    build=$(cd "$build" && pwd)
    note build "uses $build"
}

# The part of the machine's memory that is a file system holds indexes, where that is larger than the disk.
choose_scratch() {
    local shared disk
    shared=$(df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 {print $4}')
    disk=$(df -Pm "${TMPDIR:-/tmp}" | awk 'NR == 2 {print $4}')
    if ((${shared:-0} > disk)); then export TMPDIR=/dev/shm; fi
}

# run_part N
run_part() {
    begun=$SECONDS
    total=$(awk -v m="$minutes" 'BEGIN { print int(58 * m) }') # seconds; some are left for the report
    case $1 in
    1) shares=("${shares_of_part1[@]}") ;;
    2) shares=("${shares_of_part2[@]}") ;;
    3) shares=("${shares_of_part3[@]}") ;;
    esac
    "run_part$1"
}

main() {
    local one
    out=$(mkdir -p "$out" && cd "$out" && pwd)
    rm -f "$out"/*.log "$out"/bench*.* "$out"/peers.* "$out/results.md" "$out/clocks.csv"
    PATH=$PATH:/usr/local/cuda/bin:/usr/local/nvidia/bin
    machine_libraries=${LD_LIBRARY_PATH:-}
    if find_programs; then built=1; fi
    describe_machine | tee "$out/machine.log"
    describe_machine >/dev/null # sets what the report needs, in this shell
    if [[ -n ${built:-} ]]; then
        choose_programs
        choose_scratch
        watch_clock
        trap end_watch EXIT
        for one in ${part:-1 2 3}; do run_part "$one"; done
        end_watch
    fi
    write_results
    echo
    for one in "${verdicts[@]}"; do printf '%-12s %s\n' "${one%%|*}" "${one#*|}"; done
    echo "gpu_check.sh: $num_failed failed, $SECONDS s; see $out/results.md"
    ((num_failed == 0))
}

parse "$@"
if [[ -n $pack ]]; then
    make_pack
    exit
fi
if [[ -n $part && $out == "$root/build/gpu_check" ]]; then out+=/$part; fi
if ((!is_emulated)) && ! has_gpu; then
    echo "gpu_check.sh: no GPU here: nothing was checked (--emulated shows that the script works)"
    exit 77
fi
if [[ -n $from_pack ]]; then run_from_pack; fi
main
