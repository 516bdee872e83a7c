#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 2 and 4 ranks that share one GPU: every way to merge, over NCCL and over MPI, few and many neighbours: the bytes of the
# CPU; then a rank that is killed and one that is stopped: the job ends with exit code 75 and --resume gives the same
# bytes. Prints a table. NCCL allows several ranks a GPU from 2.30 on.
# usage: gpu_one_gpu_ranks.sh BITSWEEP_BINARY PROGRAM DEVICE
#
# PROGRAM and DEVICE are what is compared. QUICK=1 in the environment takes few rows, for the emulator.
set -euo pipefail

(($# == 3)) || { echo "usage: gpu_one_gpu_ranks.sh BITSWEEP_BINARY PROGRAM DEVICE" >&2 && exit 2; }
program=$1 other=$2 device=${3%%:*}:0
run=$(cd "$(dirname "$0")/../.." && pwd)/deploy/run.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 143' TERM
rows=2M queries=20K few=500 ranks_axis=(2 4) ks=(10 1000) signals=(KILL STOP) moment=0.3 merges=(exchange gather ladder)
if [[ -n ${QUICK:-} ]]; then
    rows=600 queries=200 few=3 ranks_axis=(2) ks=(100) signals=(KILL) moment=0 merges=(exchange gather)
fi
# shellcheck source=bench/gpu_check/gpu_nccl.sh
. "$(dirname "$0")/gpu_nccl.sh"
source=synth:count=$queries,dims=96,seed=2,clusters=100
passed=0
failed=0
export BITSWEEP=$other BITSWEEP_RUN
BITSWEEP_RUN=$(dirname "$program")/bitsweep-run
export OMP_WAIT_POLICY=passive

pass() {
    passed=$((passed + 1))
}

complain() {
    failed=$((failed + 1))
    echo "FAILED: $1"
    if [[ -s $folder/stderr ]]; then head -n 5 "$folder/stderr"; fi
}

# value NAME: a number or word of the last search.
value() {
    sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$folder/json" | head -n 1
}

# search RANKS OUT ARGUMENTS
search() {
    local ranks=$1 out=$2
    shift 2
    "$run" -n "$ranks" search --index "$folder/index" --queries "$source" --quiet --json \
        --device "$device" --out "$folder/$out" "$@" >"$folder/json" 2>"$folder/stderr"
}

# expect OUT ARGUMENTS: the CPU's answers.
expect() {
    local out=$1
    shift
    "$program" search --index "$folder/index" --queries "$source" --quiet --force --device cpu \
        --out "$folder/$out" "$@"
}

# compare RANKS LINK MERGE K: a line of the table.
compare() {
    local ranks=$1 link=$2 merge=$3 k=$4 verdict=same
    if ! search "$ranks" found --link "$link" --merge "$merge" --k "$k" --query-rows "0:$few" --warmup 1 --force; then
        verdict="exit code other than 0"
    elif ! cmp -s "$folder/expected.$k" "$folder/found"; then
        verdict="other bytes"
    elif [[ $(value link) != "$link" ]]; then
        verdict="by $(value link)"
    fi
    echo "| $ranks | $link | $merge | $k | $verdict | $(value queries_per_second) | $(value link_note) |"
    if [[ $verdict == same ]]; then pass; else complain "$ranks ranks, $link, $merge, k $k: $verdict"; fi
}

compare_all() {
    local ranks link merge k links=(mpi)
    if has_nccl; then links=(nccl mpi); else echo "no libnccl.so.2 here: MPI alone"; fi
    echo "| ranks | link | merge | k | bytes | queries/s | note |"
    echo "| ---: | --- | --- | ---: | --- | ---: | --- |"
    for k in "${ks[@]}"; do expect "expected.$k" --k "$k" --query-rows "0:$few"; done
    for ranks in "${ranks_axis[@]}"; do
        for link in "${links[@]}"; do
            for merge in "${merges[@]}"; do
                [[ $link-$merge != mpi-exchange ]] || continue # is GPUs' alone
                for k in "${ks[@]}"; do compare "$ranks" "$link" "$merge" "$k"; done
            done
        done
    done
}

# rank_of_struck: the process of rank 1 of the job below, or nothing.
rank_of_struck() {
    local file process
    for file in $(grep -lsz "^$folder/struck$" /proc/[0-9]*/cmdline || true); do
        process=${file%/cmdline}
        if grep -qsz '^OMPI_COMM_WORLD_RANK=1$' "$process/environ"; then
            echo "${process#/proc/}"
            return
        fi
    done
}

# strike SIGNAL: to rank 1 of a search that has begun to write what --resume goes on from.
strike() {
    local signal=$1
    local job victim="" code=0 begin
    local arguments=(--k 10 --batch 4 --merge gather)
    rm -f "$folder"/struck*
    BITSWEEP_JOURNAL_SECONDS=0.02 search 2 struck --force "${arguments[@]}" &
    job=$!
    while victim=$(rank_of_struck) && [[ -z $victim ]] && kill -0 "$job" 2>/dev/null; do sleep 0.05; done
    until compgen -G "$folder/struck.*" >/dev/null || ! kill -0 "$job" 2>/dev/null; do sleep 0.01; done
    sleep "$moment"
    begin=$(date +%s%N)
    if [[ -z $victim ]] || ! kill -"$signal" "$victim" 2>/dev/null; then
        wait "$job" || true
        complain "SIG$signal: the search was done before it"
        return
    fi
    wait "$job" || code=$?
    echo && echo "SIG$signal of a rank: exit code $code after $((($(date +%s%N) - begin) / 1000000)) ms: $(head -n 1 "$folder/stderr")"
    if ((code == 75)); then pass; else complain "SIG$signal: exit code $code instead of 75"; fi
    if ! search 2 struck --resume "${arguments[@]}"; then
        complain "SIG$signal: --resume"
    elif ! cmp -s "$folder/expected.all" "$folder/struck"; then
        complain "SIG$signal: other bytes after --resume"
    else
        echo "--resume: same bytes, $(value resumed_queries) of $queries queries were there"
        pass
    fi
}

command -v mpirun >/dev/null || { echo "skipped: mpirun is missing" && exit 77; }
"$program" encode --base "synth:count=$rows,dims=96,seed=1,clusters=100" --codec saq --bits 3 --metric l2 --shards 4 \
    --index "$folder/index" --quiet
compare_all
expect expected.all --k 10
for signal in "${signals[@]}"; do strike "$signal"; done
echo "$passed passed, $failed failed"
((failed == 0))
