#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Exact values on a device against those of the CPU, byte for byte: refinement in search, with raw
# rows on the device and gathered by the host, and groundtruth. The device is emulated:
# bitsweep_emulated is the program with the kernels compiled for the CPU.
# usage: check_device_exact.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
use_device emulated
find_ranks 2 4

# on_device RANKS ARGUMENTS: runs there; compares with $folder/expected.
on_device() {
    device_finds "$1 ranks: ${*:2}" "$1" "$kind" "${@:2}"
}

# on_cpu ARGUMENTS: what is to be found.
on_cpu() {
    "$program" "$@" --quiet --device cpu --force --out "$folder/expected"
}

# fails CODE PATTERN ARGUMENTS
fails() {
    refused "$1" "$2" "$emulated" "${@:3}" --quiet --device emulated --force --out "$folder/none"
}

data=$2/tests/data
"$program" synth --count 900 --dims 37 --clusters 20 --seed 3 --out "$folder/base.fbin" --queries 6 \
    --queries-out "$folder/query.fbin" --quiet
declare -A base=([fbin]=$folder/base.fbin [u8bin]=$data/sift20k_base.u8bin)
declare -A query=([fbin]=$folder/query.fbin [u8bin]=$data/sift20k_query.u8bin)
declare -A row_bytes=([fbin]=148 [u8bin]=128)

# ---- search --------------------------------------------------------------------------------------

# refined TYPE METRIC K: raw rows on the device, then gathered; numbers of ranks in turn.
turn=0
refined() {
    local type=$1 metric=$2 ranks shards k raw=$((900 * row_bytes[$1]))
    for shards in 1 3; do
        "$program" encode --base "${base[$type]}" --rows 0:900 --codec saq --bits 3 --metric "$metric" \
            --index "$folder/$type.$metric.$shards" --shards "$shards" --quiet
    done
    for k in $3 300; do
        local search=(--queries "${query[$type]}" --query-rows 0:6 --k "$k")
        local ranks=${ranks_axis[$((turn++ % ${#ranks_axis[@]}))]}
        local index=$folder/$type.$metric.$((ranks == 1 && turn % 2 ? 1 : 3))
        on_cpu search --index "$folder/$type.$metric.1" "${search[@]}"
        on_device "$ranks" search --index "$index" "${search[@]}" --batch 4
        if (($(sum_of raw_bytes) < raw || $(sum_of gathered_bytes) > 0)); then
            complain "raw rows are not on the device: $ranks ranks, $index"
        fi
        on_device "$ranks" search --index "$index" "${search[@]}" --device-memory 60K
        if (($(sum_of raw_bytes) > raw * 9 / 10 || $(sum_of gathered_bytes) == 0)); then
            complain "no raw rows were gathered: $ranks ranks, $index"
        fi
    done
    turn=$((turn + 1))
}

for metric in l2 ip cosine; do
    refined fbin "$metric" 1
    refined u8bin "$metric" 10
done

# Too little memory for refinement there: the CPU's, the same bytes.
"$program" synth --count 100 --dims 500 --out "$folder/wide.fbin" --quiet
"$program" encode --base "$folder/wide.fbin" --codec saq --bits 3 --metric l2 --quiet \
    --index "$folder/wide"
on_cpu search --index "$folder/wide" --queries "$folder/wide.fbin" --query-rows 0:3 --k 3
on_device 1 search --index "$folder/wide" --queries "$folder/wide.fbin" --query-rows 0:3 --k 3 \
    --device-memory 60K
if (($(sum_of raw_bytes) + $(sum_of gathered_bytes) > 0)); then
    complain "refined with next to no memory"
fi

# A source that changed: found while rows are loaded, and when they are gathered.
cp "${base[fbin]}" "$folder/changed.fbin"
"$program" encode --base "$folder/changed.fbin" --codec saq --bits 3 --metric l2 --quiet \
    --index "$folder/changed"
dd if=/dev/zero of="$folder/changed.fbin" bs=148 seek=1 count=880 conv=notrunc status=none
for memory in 0 60K; do
    fails 65 'changed.fbin: rows [0-9]+ to [0-9]+ are not those' search --index "$folder/changed" \
        --queries "${query[fbin]}" --device-memory "$memory"
done

# ---- groundtruth ---------------------------------------------------------------------------------

# Bytes as int8, and as halves, of which some are NaN or infinite. The header of .npy is 128 bytes.
cp "${base[u8bin]}" "$folder/base.i8bin"
cp "${query[u8bin]}" "$folder/query.i8bin"
{
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' \
        "{'descr': '<f2', 'fortran_order': False, 'shape': (900, 33), }"
    dd if="${base[u8bin]}" bs=4 skip=2 count=$((900 * 33 / 2)) status=none | tr '\200-\237' '|'
} >"$folder/base.npy"
{
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' \
        "{'descr': '<f2', 'fortran_order': False, 'shape': (6, 33), }"
    dd if="${query[u8bin]}" bs=4 skip=2 count=$((6 * 33 / 2)) status=none | tr '\100-\377' '\60'
} >"$folder/query.npy"
base[i8bin]=$folder/base.i8bin query[i8bin]=$folder/query.i8bin
base[npy]=$folder/base.npy query[npy]=$folder/query.npy

# neighbours ROWS QUERIES METRIC: with all memory in one block and group, and with little in several
# of both.
ks=(10 1 300)
neighbours() {
    local rows=$1 asked=$2 metric=$3 memory
    local truth=(groundtruth --base "$rows" --rows "${range:-3:871}" --queries "$asked" --query-rows 0:6
        --metric "$metric" --k "${ks[$((turn % 3))]}" --drop-bad-rows)
    on_cpu "${truth[@]}"
    for memory in 0 ${4:-100K}; do
        on_device "${ranks_axis[$((turn++ % ${#ranks_axis[@]}))]}" "${truth[@]}" \
            --device-memory "$memory" --threads $((turn % 3 + 1))
    done
    turn=$((turn + 2))
}

for metric in l2 ip cosine; do
    for type in fbin u8bin i8bin npy; do neighbours "${base[$type]}" "${query[$type]}" "$metric"; done
    neighbours "${base[u8bin]}" "${query[i8bin]}" "$metric"
done

# Lists that are cut, and whose limits go from block to block.
range=3:3500 neighbours "${base[u8bin]}" "${query[u8bin]}" ip 60K
range=3:3500 neighbours "${base[u8bin]}" "${query[i8bin]}" l2 60K

# Whatever the order in which threads and blocks run.
BITSWEEP_EMULATOR_ORDER=random neighbours "${base[u8bin]}" "${query[u8bin]}" cosine
BITSWEEP_EMULATOR_ORDER=descending neighbours "${base[fbin]}" "${query[fbin]}" l2

# One more is looked for, since a row may be among its own neighbours.
truth=(groundtruth --base "${base[fbin]}" --queries "${base[fbin]}" --query-rows 400:420 --metric l2 --k 5
    --exclude-self)
on_cpu "${truth[@]}"
on_device "${ranks_axis[-1]}" "${truth[@]}"

# More ranks than rows; an emulated device is never chosen unasked.
truth=(groundtruth --base "${base[fbin]}" --rows 0:3 --queries "${query[fbin]}" --metric l2 --k 2)
on_cpu "${truth[@]}"
on_device "${ranks_axis[-1]}" "${truth[@]}"
"$emulated" "${truth[@]}" --out "$folder/found" --force --quiet --json >"$folder/json"
if grep -q '^  "device": "cpu"' "$folder/json"; then pass; else complain "auto took a device"; fi

truth=(groundtruth --base "${base[fbin]}" --queries "${query[fbin]}" --metric l2 --k 10)
fails 74 'emulated:0: 5000 bytes of device memory are free, [0-9]+ are needed at least' "${truth[@]}" \
    --device-memory 5000
# The same row is complained about, whatever the blocks.
truth=(groundtruth --base "${base[npy]}" --queries "${query[npy]}" --metric l2)
line=$("$program" "${truth[@]}" --out "$folder/none" --quiet 2>&1) || true
if [[ $line != *"base.npy: row "*" has a NaN or Inf"* ]]; then complain "no half is bad: $line"; fi
for memory in 0 60K; do fails 65 "^$line\$" "${truth[@]}" --device-memory "$memory"; done
truth=(groundtruth --base "${base[fbin]}" --queries "${query[fbin]}" --metric l2 --k 10)
BITSWEEP_EMULATOR_FAIL=3 fails 74 'emulated:0: .*LaunchFailure' "${truth[@]}"

finish
