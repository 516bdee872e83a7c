#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Small batches on a GPU whose launches are one CUDA graph, and launch by launch: the same bytes as
# from the CPU, and the time of a batch.
# usage: bench/gpu_graphs.sh BITSWEEP_BINARY [PROGRAM DEVICE]
#
# PROGRAM and DEVICE are what is measured, BITSWEEP_BINARY and cuda:0 unless given. QUICK=1 in the
# environment takes few rows, for the emulator.
set -euo pipefail

(($# == 1 || $# == 3)) || {
    echo "usage: bench/gpu_graphs.sh BITSWEEP_BINARY [PROGRAM DEVICE]" >&2
    exit 2
}
program=$1 other=${2:-$1} device=${3:-cuda:0}
rows=500K repeat=10 most=2000 least=3 # queries of all batches, batches
if [[ -n ${QUICK:-} ]]; then rows=2K repeat=1 most=2 least=2; fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

# value NAME: a number of the last search, of its first rank.
value() {
    sed -n "s/^ *\"$1\": \([0-9.e+-]*\),\{0,1\}\$/\1/p" "$folder/json" | head -n 1
}

# search OUT PROGRAM ARGUMENTS
search() {
    local out=$1
    shift
    "$1" search --index "$folder/index" --k 10 --refine none --out "$folder/$out" --force --quiet --json \
        --queries "synth:count=$queries,dims=96,seed=2,clusters=100" "${@:2}" >"$folder/json" 2>"$folder/stderr"
}

# measure GRAPHS: adds microseconds of a batch's scan, and of all of it, to `line`; whether there were graphs is as
# GRAPHS says.
measure() {
    local graphs=$1 text found passes=$((repeat + 1))
    if ! search "$graphs" "$other" --device "$device" --batch "$batch" --graphs "$graphs" --warmup 1 \
        --repeat "$repeat" --check-every never; then
        text="$(head -n 1 "$folder/stderr")"
    elif ! cmp -s "$folder/expected" "$folder/$graphs"; then
        text="other bytes"
    else
        found=$(value graphs)
        text="$found graphs: $(sed -n 's/^ *"graphs_note": //p' "$folder/json")"
        if [[ $graphs == off ]]; then
            ((found != 0)) || text=""
        else
            ((found != num_batches * passes - 1)) || text=""
        fi
    fi
    if [[ -z $text ]]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED: batches of $batch, graphs $graphs: $text" >&2
    fi
    line+=$(awk -v scan="$(value scan_seconds)" -v all="$(value seconds)" -v n="$num_batches" \
        'BEGIN { printf "  %9.1f %9.1f", 1e6 * scan / n, 1e6 * all / n }')
}

"$program" encode --base "synth:count=$rows,dims=96,seed=1,clusters=100" --codec xfbq --bits 3 --metric cosine \
    --index "$folder/index" --quiet
echo "microseconds of a batch, xfbq of 3 bits x 96, $rows rows, $device"
echo "           graph: scan       all   no: scan       all"
for batch in 1 8 64; do
    num_batches=$((most / batch < 200 ? most / batch : 200))
    if ((num_batches < least)); then num_batches=$least; fi
    queries=$((num_batches * batch))
    search expected "$program" --device cpu
    line=$(printf 'batch %3d' "$batch")
    measure on
    measure off
    echo "$line"
done
echo "$passed passed, $failed failed"
((failed == 0))
