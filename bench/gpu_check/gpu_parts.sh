# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables of gpu_check.sh and gpu_steps.sh, which are sourced together with this
# The steps of gpu_check.sh: what each part runs, in order of worth, so that what is cut at the end is what is missed
# least.

# Parts of a hundred of a part's time; a step also has what those before it have left. The last of a part is the one
# that takes whatever it gets.
shares_of_building=(configure 6 build 50)
shares_of_part1=(kernels 4 device 18 identity 18 memcheck 3 synccheck 3 product_codes 6 bytes 4 within_radii 6 truth 5
    graphs 3 bench 15 kernelcheck 5 racecheck 10)
shares_of_part2=(library 5 ranks 16 rows_1e8 11 lists_1e7 13 tables 6 dims_768 8 lists_1e6 5 rows_1e9 36)
shares_of_part3=(bench_lists 20 bench_codes 22 bench_rbegir 6 peers 30 cluster 12 bench_rest 10)
# What results.md shows, in this order.
reported=(bench bench_lists bench_codes bench_rbegir bench_rest graphs library ranks cluster rows_1e8 lists_1e7 tables
    dims_768 lists_1e6 peers rows_1e9)

# Cases of `bench device` that a step runs: all of them are in one.
declare -A bench_cases=(
    [bench]="agree*,planes-*,matrix-*,kernels-*,batches"
    [bench_lists]="lists-10k,lists-1k,lists-1,gpu-lists-10k,gpu-lists-1k,select-*,hits-*"
    [bench_codes]="saq-*,table-*,progressive"
    [bench_rbegir]="rbegir*"
    [bench_rest]="lists-mma-*,lists-hopper-*,short-*,stream-*,encode-*,refine,exact-*,assign,raw-*")

choose_programs() {
    if ((is_emulated)); then
        device_check=("$build/tests/emulation/device_check" --small)
        racecheck=("${device_check[@]}")
        kernelcheck=("$build/tests/kernelcheck" --family plane_scan)
        check_device=("$build/bitsweep" "$root")
        compared=("$build/tests/bitsweep_emulated" emulated)
        bench_device=("$build/tests/bitsweep_emulated-bench" device)
        library=("$build/tests/library_device" "$build/tests/libbitsweep_emulated.so" emulated)
        export QUICK=1 BITSWEEP_MAX_RANKS=${BITSWEEP_MAX_RANKS:-1}
        export BITSWEEP_EMULATOR_NCCL=$build/tests/nccl_stand_in.so
    else
        device_check=("$build/tests/emulation/gpu/device_check_gpu" --small)
        racecheck=("$build/tests/emulation/gpu/device_check_gpu_racecheck" --small)
        [[ -x ${racecheck[0]} ]] || racecheck=("${device_check[@]}") # no GPU of 9.0
        kernelcheck=("$build/tests/kernelcheck")
        check_device=("$build/bitsweep" "$root" cuda)
        compared=("$build/bitsweep" cuda:0)
        bench_device=("$build/bitsweep-bench" device)
        library=("$build/tests/emulation/gpu/library_device_gpu" "$build/libbitsweep.so" cuda)
    fi
}

# ---- part 1: kernels, whole searches, compute-sanitizer, times of kernels ------------------------

run_part1() {
    local kernels=("${device_check[0]}")
    ((!is_emulated)) || kernels=("${device_check[@]}")
    step kernels "${kernels[@]}" || true
    step device bash "$root/tests/cluster/check_device.sh" "${check_device[@]}" || true
    step identity bash "$root/bench/gpu_identity.sh" "$build/bitsweep" \
        "$build/tests/identity_data" "${compared[@]}" || true
    find_sanitizer
    sanitize memcheck --report-api-errors no "${device_check[@]}" # what launchers refuse on purpose is no error
    sanitize synccheck "${device_check[@]}"
    if ((!is_emulated)); then
        step product_codes bash "$root/tests/cluster/check_device_pq.sh" "${check_device[@]}" || true
        step bytes bash "$root/tests/cluster/check_device_raw.sh" "${check_device[@]}" || true
        step within_radii bash "$root/tests/cluster/check_device_selective.sh" "${check_device[@]}" || true
        step truth bash "$root/tests/cluster/check_device_truth.sh" "${check_device[@]}" || true
    fi
    is_shown=1
    step graphs bash "$root/bench/gpu_graphs.sh" "$build/bitsweep" "${compared[@]}" || true
    run_bench bench
    is_shown=0
    step kernelcheck "${kernelcheck[@]}" || true
    sanitize racecheck --print-limit 0 "${racecheck[@]}" # minutes; it ends where the time does
}

# On some machines programs may use the GPU but no tool may look at it. The test of this script brings a
# sanitizer and a list of its own. no_sanitizer: why there is none.
find_sanitizer() {
    sanitizer=${BITSWEEP_COMPUTE_SANITIZER:-compute-sanitizer} no_sanitizer=""
    PATH=$PATH:/usr/local/cuda/compute-sanitizer
    if ((is_emulated)) && [[ -z ${BITSWEEP_COMPUTE_SANITIZER:-} ]]; then
        no_sanitizer="no GPU"
    elif ! command -v "$sanitizer" >/dev/null; then
        no_sanitizer="compute-sanitizer is not installed"
    fi
}

# sanitize TOOL ARGUMENTS...: of compute-sanitizer, the program last.
sanitize() {
    local tool=$1 code=0
    shift
    if [[ -n $no_sanitizer ]]; then
        note "$tool" "skipped: $no_sanitizer"
        return
    fi
    known=${BITSWEEP_KNOWN_REPORTS:-$root/bench/known_reports.txt}
    unusable="device not supported|injection library|failed to init|unable to|error 999"
    step "$tool" "$sanitizer" --tool "$tool" --error-exitcode 9 "$@" || code=$?
    if ((code == 77)); then no_sanitizer="compute-sanitizer does not work here"; fi
    unusable="" known=""
}

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

# run_bench NAME: cases of bench_cases.
run_bench() {
    local cublas arguments=(--save "$out/$1.json" --case "${bench_cases[$1]}")
    if ((is_emulated)); then
        arguments+=(--rows 2000 --queries 9 --repeat 1 --bytes 16K --host-bytes 64K --steps 1)
    else
        cublas=$(find_cublas)
        if [[ -n $cublas ]]; then
            arguments+=(--cublas "$cublas")
            export LD_LIBRARY_PATH=${cublas%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        fi
    fi
    step "$1" "${bench_device[@]}" "${arguments[@]}" || true
    cp "$out/$1.log" "$out/$1.txt" 2>/dev/null || true
}

# ---- part 2: the library, ranks, recall and rates of whole searches -------------------------------

run_part2() {
    local case
    unusable="^skipped: " is_shown=1
    step library bash "$root/bench/gpu_check/gpu_library.sh" "$root" "${library[@]}" || true
    step ranks bash "$root/bench/gpu_check/gpu_one_gpu_ranks.sh" "$build/bitsweep" "${compared[@]}" || true
    for case in rows_1e8 lists_1e7 tables; do measure "$case"; done
    ((is_emulated)) || for case in dims_768 lists_1e6; do measure "$case"; done
    ((is_emulated)) || measure rows_1e9
    unusable="" is_shown=0
}

# measure CASE: of gpu_recall.sh.
measure() {
    step "$1" bash "$root/bench/gpu_check/gpu_recall.sh" "$1" "$build/bitsweep" "${compared[@]}" || true
}

# ---- part 3: times of lists, selection and codes, peers, ranks as a cluster ---------------------

run_part3() {
    is_shown=1
    run_bench bench_lists
    run_bench bench_codes
    run_bench bench_rbegir
    run_peers
    unusable="^skipped: "
    step cluster bash "$root/bench/gpu_check/gpu_cluster.sh" "$build/bitsweep" "${compared[@]}" || true
    unusable=""
    run_bench bench_rest
    is_shown=0
}

# Libraries that users know, if they are installed. What we carry is not for them.
run_peers() {
    local python=${PEERS_PYTHON:-python3} arguments=(--json "$out/peers.jsonl" --plot "$out/peers")
    if ! command -v "$python" >/dev/null; then
        note peers "skipped: $python is missing"
        return
    fi
    if ((is_emulated)); then arguments+=(--rows 2000 --batches "1,9" --repeat 1); fi
    unusable="gpu_peers.py: skipped"
    step peers env LD_LIBRARY_PATH="$machine_libraries" "$python" -B "$root/bench/peers/gpu_peers.py" \
        "${arguments[@]}" || true
    unusable=""
}
