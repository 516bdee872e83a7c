#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Product codes searched on an emulated device: the result files have the bytes of the CPU for every
# metric, type of table, size of codes, with and without lists and residuals, for any ranks, shards,
# batches and memory; what memory they take is foretold. With `cuda` as a third argument the device is
# GPU 0 and the program BITSWEEP_BINARY itself.
# usage: check_device_pq.sh BITSWEEP_BINARY SOURCE_FOLDER [cuda]
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
use_device "${3:-}"
find_ranks 2

check "rows" "$program" synth --count 1500 --dims 45 --clusters 30 --seed 4 --out "$folder/rows.fbin" \
    --queries 9 --queries-out "$folder/vectors.fbin"
asked=(--queries "$folder/vectors.fbin")

# encode NAME ARGUMENTS: with 1 and with 3 shards.
encode() {
    local name=$1 shards
    shift
    for shards in 1 3; do
        check "encode $name.$shards" "$program" encode --base "$folder/rows.fbin" --codec pq --calibrate off \
            --index "$folder/$name.$shards" --shards "$shards" --quiet "$@"
    done
}

# same_everywhere NAME ARGUMENTS: two searches of the many there are, by turns; of some the device chooses lists and
# makes work items, if there are any.
make_gpu_lists_tuning
turn=0
same_everywhere() {
    local name=$1 last=${ranks_axis[-1]}
    shift
    search_cpu "$name" "$@"
    case $((turn++ % 3)) in
    0)
        same "$name" 1 1 --batch 4 --overlap on "$@"
        BITSWEEP_EMULATOR_ORDER=random BITSWEEP_TUNING=$gpu_lists same "$name" "$last" 3 "$@"
        ;;
    1)
        BITSWEEP_TUNING=$gpu_lists same "$name" 1 3 "$@"
        same "$name" "$last" 3 --batch 1 "$@"
        ;;
    2) BITSWEEP_EMULATOR_ORDER=descending same "$name" 1 3 --batch 7 --check-every 0 "$@" ;;
    esac
}

tables=(float32 float16 e5m3 e4m4)
i=0
while read -r name metric bits arguments <&3; do
    read -ra own <<<"$arguments"
    encode "$name" --metric "$metric" --bits "$bits" "${own[@]}"
    probe=()
    if [[ $name == *lists* ]]; then probe=(--probe 5); fi
    for ((j = 0; j < 2; j++, i++)); do
        same_everywhere "$name" --table "${tables[(i + i / 4) % 4]}" "${probe[@]}" --refine none
    done
    same_everywhere "$name" --oversample 9 --table e5m3
    if [[ $name == *lists* ]]; then same_everywhere "$name" --table e4m4 --probe all --refine none --k 100; fi
done 3<<'END'
flat_l2 l2 8 --subspaces 11 --rotation none
flat_cosine cosine 4 --subspaces 7 --rotation random
lists_l2 l2 8 --subspaces 9 --rotation none --lists 20
lists_ip ip 4 --subspaces 23 --rotation none --lists 20
lists_whole l2 4 --subspaces 5 --rotation none --lists 20 --residual no
lists_cosine cosine 8 --subspaces 6 --rotation random --lists 20
END

# What memory it takes, with blocks of codes that come from the host where there is little.
for memory in 10M 115K; do
    "$emulated" info "$folder/flat_l2.3" --json --device-memory "$memory" >"$folder/info"
    search_cpu flat_l2 --table float16
    same flat_l2 1 3 --device-memory "$memory" --table float16
    said=$(sed -n 's/^ *"used_bytes": \([0-9]*\),$/\1/p' "$folder/info")
    used=$(sed -n 's/^ *"used_bytes": \([0-9]*\),$/\1/p' "$folder/json")
    check "$memory: $said foretold, $used used" test -n "$said" -a "$said" = "$used"
done
check "codes come in blocks" grep -qE '"streamed_bytes": [1-9]' "$folder/info"
"$emulated" info "$folder/lists_l2.3" --json --device-memory 10M --probe 5 >"$folder/info"
search_cpu lists_l2 --probe 5
same lists_l2 1 3 --device-memory 10M --probe 5
BITSWEEP_TUNING=$gpu_lists same lists_l2 1 3 --probe 5
check "work items by the device, for each shard" grep -q '"gpu_lists": 3,' "$folder/json"
for what in used codebooks; do
    said=$(sed -n "s/^ *\"${what}_bytes\": \([0-9]*\),\$/\1/p" "$folder/info")
    check "lists: $what: $said" test -n "$said" -a "${said:-0}" -gt 0
done

finish
