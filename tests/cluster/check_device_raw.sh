#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Codec raw searched on an emulated device: the result files have the bytes of the CPU for uint8 and int8, both metrics
# it has, rows that tie and numbers at the ends of a type, with lists and without, for any ranks, shards, batches and
# memory; what memory they take is foretold. With `cuda` as a third argument the device is GPU 0 and the program BITSWEEP_BINARY itself.
# usage: check_device_raw.sh BITSWEEP_BINARY SOURCE_FOLDER [cuda]
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
use_device "${3:-}"
find_ranks 2 4

# ties ROWS SEED: rows of 37 dims as escapes of printf, of which every byte is one of 0, 127, 128 and 255; most rows come
# several times, every tenth is zeros. The same bytes are numbers of int8.
ties() {
    awk -v rows="$1" -v seed="$2" 'BEGIN {
        split("\\000 \\177 \\200 \\377", ends, " ")
        printf "\\%03o\\%03o\\000\\000\\045\\000\\000\\000", rows % 256, int(rows / 256)
        for (row = 0; row < rows; row++) {
            state = row % 10 == 0 ? 0 : (row * 7919 + seed) % 211 + 1
            for (i = 0; i < 37; i++) {
                state = state * 75 % 65537
                printf "%s", ends[state ? int(state / 64) % 4 + 1 : 1]
            }
        }
    }'
}
printf '%b' "$(ties 1503 1)" >"$folder/ties.u8bin"
printf '%b' "$(ties 21 5)" >"$folder/asked.u8bin"
check "bytes" test "$(stat -c %s "$folder/ties.u8bin")" = $((8 + 1503 * 37))
for name in ties asked; do cp "$folder/$name.u8bin" "$folder/$name.i8bin"; done

# encode NAME BASE METRIC ARGUMENTS: with 1 and with 3 shards.
encode() {
    local shards
    for shards in 1 3; do
        check "encode $1.$shards" "$program" encode --base "$2" --codec raw --metric "$3" --index "$folder/$1.$shards" \
            --shards "$shards" --quiet "${@:4}"
    done
}

# same_everywhere NAME ARGUMENTS: one or two searches of the many there are, by turns.
turn=0
same_everywhere() {
    local name=$1 last=${ranks_axis[-1]}
    shift
    search_cpu "$name" "$@"
    case $((turn++ % 4)) in
    0)
        same "$name" 1 1 --batch 1 --overlap on "$@"
        BITSWEEP_EMULATOR_ORDER=random same "$name" "$last" 3 "$@"
        ;;
    1)
        same "$name" 1 3 --merge ladder "$@"
        same "$name" "$last" 3 --batch 7 "$@"
        ;;
    2)
        same "$name" 1 1 --scan matrix "$@"
        same "$name" "${ranks_axis[1]:-1}" 3 --merge gather --batch 20 "$@"
        ;;
    3) same "$name" 1 3 --batch 17 --check-every 0 "$@" ;;
    esac
    check "$name: by bytes" json_says "$folder/json" '"scan": "matrix"' '"refine": "exact"'
}

for type in u8bin i8bin; do
    for metric in l2 ip; do
        asked=(--queries "$folder/asked.$type")
        encode "$type-$metric" "$folder/ties.$type" "$metric"
        for k in 1 10 1000; do same_everywhere "$type-$metric" --k "$k"; done
    done
done

# Real vectors: more queries than a block takes, several segments, codes that come in blocks.
asked=(--queries "$queries")
encode real "$base" l2 --rows 0:4003
same_everywhere real --k 10
search_cpu real --k 100
# foretold NAME MEMORY BLOCKS ARGUMENTS: with so much memory, of which info foretells what is used, codes come in blocks
# or not.
foretold() {
    local name=$1 memory=$2 blocks=$3 used
    shift 3
    same "$name" 1 3 "$@" --device-memory "$memory"
    "$program" info "$folder/$name.3" --json "$@" --device-memory "$memory" --link mpi >"$folder/info"
    used=$(sed -n 's/^ *"used_bytes": \([0-9]*\),$/\1/p' "$folder/info")
    if [[ $used == "$(sum_of used_bytes)" ]]; then pass; else complain "$name, $memory: $used bytes foretold" "$folder/json"; fi
    if ((($(sum_of copied_bytes) > 0) == blocks)); then pass; else complain "$name, $memory: blocks or none"; fi
}
foretold real 700K 1 --k 100
foretold real 30M 0 --k 100

asked=(--queries "$queries" --query-rows 0:12)
search_cpu real --k 20 --select queue --items 1
same real 1 1 --k 20 --select queue --items 1 --batch 5
search_cpu real --k 10
same real 1 1 --k 10 --warmup 1 --repeat 2 --batch 6 # as graphs, where launches are some

# With lists: of ties and of real vectors, chosen and itemised by the host and by the device, codes in blocks.
make_gpu_lists_tuning
for type in u8bin i8bin; do
    for metric in l2 ip; do
        asked=(--queries "$folder/asked.$type")
        encode "lists-$type-$metric" "$folder/ties.$type" "$metric" --lists 40 --calibrate off
        same_everywhere "lists-$type-$metric" --k 10 --probe 7
        BITSWEEP_TUNING=$gpu_lists same "lists-$type-$metric" 1 3 --k 10 --probe 7 --batch 11
        same_everywhere "lists-$type-$metric" --k 1000 --probe all
    done
done
asked=(--queries "$queries")
encode lists "$base" l2 --rows 0:4003 --lists 30 --calibrate off
search_cpu lists --k 10 --probe 6
BITSWEEP_TUNING=$gpu_lists same lists 1 1 --k 10 --probe 6 --check-every never
check "lists and items by the device" grep -q '"gpu_lists": 1,' "$folder/json"
check "a wait for a batch" grep -q '"waits": 1,' "$folder/json"
BITSWEEP_EMULATOR_ORDER=random same lists "${ranks_axis[-1]}" 3 --k 10 --probe 6 --batch 70
foretold lists 700K 1 --k 10 --probe 6
foretold lists 30M 0 --k 10 --probe 6
finish
