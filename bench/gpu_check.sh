#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that only a GPU can show, in one call. See --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
minutes=10
out=$root/build/gpu_check
build=""
is_emulated=0
command_line="bench/gpu_check.sh $*"

help() {
    cat <<'END'
usage: bench/gpu_check.sh [--minutes N] [--out DIR] [--build DIR] [--emulated]
       bench/gpu_check.sh --pack

On a machine with an NVIDIA GPU, nvcc, CMake and a C and C++ compiler; neither MPI nor a network is
needed. Builds for this GPU alone (build/gpu), then checks kernels against their references, whole
searches against the CPU byte for byte, small batches with and without CUDA graphs, runs
compute-sanitizer where it works, and measures (bitsweep bench device), FAISS and cuVS too where
python3, or PEERS_PYTHON in the environment, has them. Every step has its share of the time and is
cut when that and what earlier steps left is over; a step that fails or is cut does not keep later
ones from running.

  --minutes N   for all of it, the build included (10)
  --out DIR     where logs, bench.json, bench.txt and results.md, a section for bench/RESULTS_gpu.md,
                go (build/gpu_check)
  --build DIR   use the programs in this build folder, build nothing
  --emulated    the same steps on the emulator, tiny: shows that this script works. Builds nothing;
                --build is build/release unless given
  --pack        gather libraries and headers from this machine's Debian packages into carried/, to
                take along with the tree to a machine that has none; used there by itself

Exit codes: 0 all passed or had to be skipped, 1 something failed or was cut, 2 usage, 77 no GPU.
END
}

usage() {
    echo "gpu_check.sh: $1; --help tells more" >&2
    exit 2
}

while (($#)); do
    case $1 in
    -h | --help) help && exit 0 ;;
    --pack) exec "$root/bench/carry_libraries.sh" ;;
    --emulated) is_emulated=1 ;;
    --minutes | --out | --build)
        (($# > 1)) || usage "$1 needs a value"
        case $1 in
        --minutes) minutes=$2 ;;
        --out) out=$2 ;;
        --build) build=$2 ;;
        esac
        shift
        ;;
    *) usage "unknown option $1" ;;
    esac
    shift
done
[[ $minutes =~ ^[0-9]+(\.[0-9]+)?$ ]] || usage "--minutes $minutes: not a number"

# ---- steps ---------------------------------------------------------------------------------------

# Parts of a hundred of the time, in the order of the steps.
shares=(configure 5 build 31 kernels 4 kernelcheck 5 device 10 identity 10 graphs 3 memcheck 4 racecheck 6
    synccheck 4 bench 14 peers 4)
total=$(awk -v m="$minutes" 'BEGIN { print int(58 * m) }') # seconds; some are left for the report
verdicts=() # a line a step
num_failed=0

# limit_of NAME: seconds until those that later steps are sure of.
limit_of() {
    local i later=0 is_later=0
    for ((i = 0; i < ${#shares[@]}; i += 2)); do
        if ((is_later)); then later=$((later + shares[i + 1])); fi
        if [[ ${shares[i]} == "$1" ]]; then is_later=1; fi
    done
    echo $((total - SECONDS - total * later / 100))
}

note() {
    verdicts+=("$(printf '%-12s %s' "$1" "$2")")
    echo "== $1: $2"
}

fail() {
    num_failed=$((num_failed + 1))
    note "$1" "FAILED: $2"
}

# step NAME COMMAND...: output goes to NAME.log; its end is shown where it fails, all of it with
# `is_shown`. Returns 0 if it passed, 77 if what it is run with cannot run here: its output matches
# `unusable`. Exit code 9 is for a tool's reports: with `known`, a list, the step passes if it has them
# all.
is_shown=0
unusable=""
known=""
step() {
    local name=$1 limit begin=$SECONDS code=0 log text
    shift
    limit=$(limit_of "$name")
    log=$out/$name.log
    if ((limit < 1)); then
        fail "$name" "no time was left for it"
        return 1
    fi
    echo "== $name, at most $limit s: ${*/#"$root/"/}"
    if ((is_shown)); then
        timeout --kill-after=5 "$limit" "$@" 2>&1 | tee "$log" || code=$?
    else
        timeout --kill-after=5 "$limit" "$@" >"$log" 2>&1 || code=$?
    fi
    if ((code == 9)) && [[ -n $known ]] &&
        text=$("$root/bench/known_reports.sh" "$name" "$log" "$known"); then
        note "$name" "passed in $((SECONDS - begin)) s: $text"
        return 0
    fi
    case $code in
    0) note "$name" "passed in $((SECONDS - begin)) s$(last_line "$log")" && return 0 ;;
    77) ((is_emulated)) && note "$name" "skipped$(last_line "$log")" && return 0 ;;
    esac
    if [[ -n $unusable ]] && grep -qiE "$unusable" "$log"; then
        note "$name" "skipped: $(grep -iE -m 1 "$unusable" "$log" | cut -c 1-100)"
        return 77
    fi
    if ((!is_shown)); then tail -n 30 "$log"; fi
    case $code in
    124 | 137) fail "$name" "cut after $limit s" ;;
    77) fail "$name" "the program finds no GPU" ;;
    *) fail "$name" "exit code $code" ;;
    esac
    return 1
}

# Most programs end with a line that counts.
last_line() {
    local line
    line=$(tail -n 1 "$1" | cut -c 1-100)
    case $line in
    *passed* | *failures* | *skip* | *"no GPU"*) echo ": $line" ;;
    esac
}

# ---- what is there -------------------------------------------------------------------------------

PATH=$PATH:/usr/local/cuda/bin:/usr/local/nvidia/bin

# ask WHAT: a property of the first GPU, as nvidia-smi has it.
ask() {
    nvidia-smi --id=0 --query-gpu="$1" --format=csv,noheader 2>/dev/null | head -n 1 || true
}

# version_of COMMAND: of the lines of its --version that hold one the last, or the `lines`-th last.
version_of() {
    local text
    text=$("$1" --version 2>/dev/null | grep -E "[0-9]+\.[0-9]+" | tail -n "${lines:-1}" |
        head -n 1 || true)
    echo "${text:-missing}"
}

describe_machine() {
    gpu="emulated" driver="-"
    if ((!is_emulated)); then
        gpu=$(ask name) driver=$(ask driver_version)
        gpu=${gpu:-unknown: nvidia-smi does not answer} driver=${driver:-unknown}
    fi
    compiler=$(lines=2 version_of nvcc)
    echo "GPU:    $gpu"
    echo "driver: $driver"
    if ((!is_emulated)); then
        echo "memory: $(ask memory.total), used $(ask memory.used)"
        echo "clocks: at most $(ask clocks.max.sm), memory $(ask clocks.max.mem), $(ask power.limit)"
    fi
    echo "nvcc:   $compiler"
    echo "cmake:  $(version_of cmake)"
    echo "MPI:    $(version_of mpirun)"
    echo "cores:  $(nproc)"
    [[ ! -d $root/carried ]] || echo "libraries are taken from carried/"
}

has_gpu() {
    local node
    nvidia-smi -L >/dev/null 2>&1 && return 0
    for node in /dev/nvidia[0-9]*; do [[ ! -e $node ]] || return 0; done
    return 1
}

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

build_all() {
    build=$root/build/gpu
    configure=(cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DBITSWEEP_CUDA=ON
        -DBITSWEEP_MPI=AUTO -DBITSWEEP_CUDA_ARCHITECTURES=) # of the GPU that is here
    if [[ ! -f $build/CMakeCache.txt ]] && command -v ninja >/dev/null; then
        configure+=(-G Ninja)
    fi
    use_carried
    step configure "${configure[@]}" &&
        step build cmake --build "$build" --parallel "$(nproc)" --target bitsweep kernelcheck \
            identity_data device_check_gpu
}

# ---- checks --------------------------------------------------------------------------------------

choose_programs() {
    if ((is_emulated)); then
        device_check=("$build/tests/emulation/device_check" --small)
        kernelcheck=("$build/tests/kernelcheck" --family plane_scan)
        check_device=("$build/bitsweep" "$root")
        compared=("$build/tests/bitsweep_emulated" emulated)
        bench_device=("$build/tests/bitsweep_emulated-bench" device)
        export QUICK=1 BITSWEEP_MAX_RANKS=1
    else
        device_check=("$build/tests/emulation/gpu/device_check_gpu")
        kernelcheck=("$build/tests/kernelcheck")
        check_device=("$build/bitsweep" "$root" cuda)
        compared=("$build/bitsweep" cuda:0)
        bench_device=("$build/bitsweep-bench" device)
    fi
}

run_checks() {
    step kernels "${device_check[@]}" || true
    step kernelcheck "${kernelcheck[@]}" || true
    step device bash "$root/tests/cluster/check_device.sh" "${check_device[@]}" || true
    ((is_emulated)) ||
        step product_codes bash "$root/tests/cluster/check_device_pq.sh" "${check_device[@]}" || true
    ((is_emulated)) ||
        step within_radii bash "$root/tests/cluster/check_device_selective.sh" "${check_device[@]}" || true
    step identity bash "$root/bench/gpu_identity.sh" "$build/bitsweep" \
        "$build/tests/identity_data" "${compared[@]}" || true
    is_shown=1
    step graphs bash "$root/bench/gpu_graphs.sh" "$build/bitsweep" "${compared[@]}" || true
    is_shown=0
}

# On some machines programs may use the GPU but no tool may look at it. What the launchers refuse on
# purpose is no error. The test of this script brings a sanitizer and a list of its own.
run_sanitizers() {
    local tool code options why="" sanitizer=${BITSWEEP_COMPUTE_SANITIZER:-compute-sanitizer}
    PATH=$PATH:/usr/local/cuda/compute-sanitizer
    if ((is_emulated)) && [[ -z ${BITSWEEP_COMPUTE_SANITIZER:-} ]]; then
        why="no GPU"
    elif ! command -v "$sanitizer" >/dev/null; then
        why="compute-sanitizer is not installed"
    fi
    known=${BITSWEEP_KNOWN_REPORTS:-$root/bench/known_reports.txt}
    unusable="device not supported|injection library|failed to init|unable to|error 999"
    for tool in memcheck racecheck synccheck; do
        if [[ -n $why ]]; then
            note "$tool" "skipped: $why"
            continue
        fi
        code=0 options=(--tool "$tool" --error-exitcode 9)
        if [[ $tool == memcheck ]]; then options+=(--report-api-errors no); fi
        step "$tool" "$sanitizer" "${options[@]}" "${device_check[0]}" --small || code=$?
        if ((code == 77)); then why="compute-sanitizer does not work here"; fi
    done
    unusable="" known=""
}

# ---- the bench -----------------------------------------------------------------------------------

# cuBLAS, where the loader would not look: the bench opens it if it is there.
find_cublas() {
    local file nvcc
    nvcc=$(command -v nvcc || true)
    for file in "${nvcc%/bin/nvcc}"/lib64/libcublas.so.1? /usr/local/cuda*/lib64/libcublas.so.1?; do
        if [[ -e $file ]]; then
            echo "$file"
            return
        fi
    done
    { timeout 20 find / -xdev -name 'libcublas.so.1?' -print -quit 2>/dev/null || true; } | head -n 1
}

run_bench() {
    local cublas arguments=(--save "$out/bench.json")
    rm -f "$out/bench.json"
    if ((is_emulated)); then
        arguments+=(--rows 2000 --queries 9 --repeat 1 --bytes 16K --host-bytes 64K --steps 1)
    else
        cublas=$(find_cublas)
        if [[ -n $cublas ]]; then
            arguments+=(--cublas "$cublas")
            export LD_LIBRARY_PATH=${cublas%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        fi
    fi
    is_shown=1
    step bench "${bench_device[@]}" "${arguments[@]}" || true
    is_shown=0
    cp "$out/bench.log" "$out/bench.txt" 2>/dev/null || true
}

# Brute force of libraries that users know, if they are installed.
run_peers() {
    local python=${PEERS_PYTHON:-python3} arguments=()
    if ! command -v "$python" >/dev/null; then
        note peers "skipped: $python is missing"
        return
    fi
    if ((is_emulated)); then arguments=(--rows 2000 --queries "1,9" --repeat 1); fi
    is_shown=1 unusable="gpu_peers.py: skipped"
    step peers "$python" -B "$root/bench/peers/gpu_peers.py" ${arguments[@]+"${arguments[@]}"} || true
    is_shown=0 unusable=""
}

# ---- report --------------------------------------------------------------------------------------

# As it stands in bench/RESULTS_gpu.md.
write_results() {
    local revision file
    revision=$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)
    {
        echo "## GPU: $gpu (\`bench/gpu_check.sh\`)"
        echo
        echo "$(date +%F), \`$command_line\`, revision $revision, driver $driver, $compiler."
        ((!is_emulated)) || echo "Emulated: no time means anything."
        echo
        echo '```'
        printf '%s\n' "${verdicts[@]}"
        echo '```'
        echo
        for file in "$out/bench.txt" "$out/graphs.log" "$out/peers.log"; do
            [[ -s $file ]] || continue
            echo '```'
            cat "$file"
            echo '```'
        done
    } >"$out/results.md"
}

if ((!is_emulated)) && ! has_gpu; then
    echo "gpu_check.sh: no GPU here: nothing was checked (--emulated shows that the script works)"
    exit 77
fi
mkdir -p "$out"
out=$(cd "$out" && pwd)
rm -f "$out"/*.log "$out"/bench.* "$out/results.md"
describe_machine | tee "$out/machine.log"
describe_machine >/dev/null # sets what the report needs, in this shell
if ((is_emulated)); then build=${build:-$root/build/release}; fi
if [[ -n $build ]]; then
    note build "uses $build"
    build=$(cd "$build" && pwd)
    built=1
elif build_all; then
    built=1
fi
if [[ -n ${built:-} ]]; then
    choose_programs
    run_checks
    run_sanitizers
    run_bench
    run_peers
fi
write_results
echo
printf '%s\n' "${verdicts[@]}"
echo "gpu_check.sh: $num_failed failed, $SECONDS s; see $out/results.md"
((num_failed == 0))
