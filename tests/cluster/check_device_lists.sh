#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Indexes with lists searched on an emulated device: the result files have the bytes of the CPU, for
# any codes, choice of lists, ranks, shards, batches and ways of merging; what memory they take is
# foretold; what a device cannot do is said in a line, and auto takes the CPU then.
# usage: check_device_lists.sh BITSWEEP_BINARY SOURCE_FOLDER
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
use_device "${3:-}"
find_ranks 2 4

check "rows" "$program" synth --count 1500 --dims 45 --clusters 40 --seed 4 --out "$folder/rows.fbin" \
    --queries 9 --queries-out "$folder/vectors.fbin"
vectors=$folder/vectors.fbin asked=(--queries "$folder/vectors.fbin")

# encode NAME ARGUMENTS: with 1 and with 3 shards.
encode() {
    local name=$1 shards
    shift
    for shards in 1 3; do
        check "encode $name.$shards" "$program" encode --base "$folder/rows.fbin" --lists 30 --calibrate off \
            --index "$folder/$name.$shards" --shards "$shards" --quiet "$@"
    done
}

# same_everywhere NAME ARGUMENTS: two searches of the many there are, by turns, or three; of one the device chooses
# lists and makes work items.
make_gpu_lists_tuning
turn=0
same_everywhere() {
    local name=$1 last=${ranks_axis[1]:-1}
    shift
    search_cpu "$name" "$@"
    case $((turn++ % 3)) in
    0)
        same "$name" 1 1 --batch 7 "$@"
        BITSWEEP_TUNING=$gpu_lists same "$name" "$last" 3 --merge ladder "$@"
        ;;
    1)
        BITSWEEP_TUNING=$gpu_lists same "$name" 1 3 --batch 1000 --merge gather "$@"
        same "$name" "$last" 3 --batch 1 "$@"
        ;;
    2)
        BITSWEEP_EMULATOR_ORDER=random BITSWEEP_TUNING=$gpu_lists same "$name" 1 3 --batch 2 --overlap on "$@"
        BITSWEEP_EMULATOR_ORDER=descending same "$name" 1 1 "$@"
        ;;
    esac
}

encode saq --metric l2 --segments 32x4,13x2
encode xfbq --metric cosine --codec xfbq --bits 1
encode sq8 --metric ip --codec sq8
encode l2 --metric l2 --bits 1.5 --residual yes
encode ip --metric ip --bits 2 --residual yes
encode cosine --metric cosine --bits 3 --residual yes

for name in saq xfbq sq8 l2 ip cosine; do
    same_everywhere "$name" --probe 5
    same_everywhere "$name" --probe all --refine none
done
same_everywhere saq --probe 9 --probe-ratio 1.1
same_everywhere saq --probe 9 --scan-dims 32 --oversample 9
same_everywhere xfbq --probe 12 --k 100 --refine none
same_everywhere cosine --probe 1 --k 100
same_everywhere l2 --probe 30 --k 1500 --oversample 1 --refine none

# Rows as queries, without themselves; a recall that is asked for.
rows=$vectors vectors=$folder/rows.fbin asked=(--queries "$folder/rows.fbin")
same_everywhere l2 --query-rows 700:708 --exclude-self --probe 4
vectors=$rows asked=(--queries "$rows")
check "a table" "$program" encode --base "$folder/rows.fbin" --metric l2 --lists 30 --calibrate 60 --shards 3 \
    --index "$folder/table.1" --quiet
search_cpu table --recall 0.9
cp -r "$folder/table.1" "$folder/table.3"
same table 1 3 --recall 0.9

# ---- made on the device --------------------------------------------------------------------------

# by_device BATCHES NAME ARGUMENTS: lists, work items and exact values of all batches, with a wait each.
by_device() {
    local batches=$1 name=$2
    shift 2
    search_cpu "$name" "$@"
    local batch=(--batch $(((9 + batches - 1) / batches)))
    if [[ "$*" == *"--batch "* ]]; then batch=(); fi
    BITSWEEP_TUNING=$gpu_lists same "$name" 1 1 "${batch[@]}" "$@"
    check "$name: $batches batches by the device" grep -q "\"gpu_lists\": $batches," "$folder/json"
    check "$name: a wait for each batch" grep -q "\"waits\": $batches," "$folder/json"
    check "$name: none for exact values" grep -q '"refine_waits": 0,' "$folder/json"
}
for name in saq xfbq sq8 l2 ip cosine; do
    by_device 1 "$name" --probe 9
    check "$name: 15 launches at most, not $(sum_of launches)" test "$(sum_of launches)" -le 15
done
by_device 3 l2 --probe 20 --probe-ratio 1.2 --k 50
by_device 3 cosine --probe 30
BITSWEEP_EMULATOR_ORDER=random by_device 1 saq --probe 30 --probe-ratio 0.5
BITSWEEP_EMULATOR_ORDER=descending by_device 2 saq --probe 9 --scan-dims 32 --oversample 9
# The next batch is on the device while one is merged.
by_device 3 saq --probe 9 --overlap on
check "two batches ahead" grep -q '"batches_ahead": 2,' "$folder/json"
same saq 1 1 --probe 9 --batch 3 --overlap off
check "two batches ahead, items by the host" grep -q '"batches_ahead": 2,' "$folder/json"
by_device 1 ip --probe 30 --k 100 --oversample 1
by_device 1 cosine --probe 2 --k 70
# Rows of bytes; many queries, with lists that few and that many of them look at; rows that are left out.
check "encode bytes.1" "$program" encode --base "$base" --rows 0:2000 --metric l2 --bits 3 --lists 40 --calibrate off \
    --index "$folder/bytes.1" --quiet
rows=$vectors
for name in l2 bytes; do
    vectors=$folder/rows.fbin
    if [[ $name == bytes ]]; then vectors=$base; fi
    asked=(--queries "$vectors")
    by_device 1 "$name" --query-rows 0:300 --probe 20 --batch 300
    check "$name, 300 queries: 15 launches at most, not $(sum_of launches)" test "$(sum_of launches)" -le 15
    by_device 1 "$name" --query-rows 700:717 --exclude-self --probe 4 --batch 17
done
vectors=$rows asked=(--queries "$rows")
# Rows that there is no room for are sent by the host, for which it waits.
search_cpu l2 --probe 9
BITSWEEP_TUNING=$gpu_lists same l2 1 1 --probe 9 --batch 9 --device-memory 2700K
check "rows that are sent" grep -qE '"gathered_bytes": [1-9]' "$folder/json"
check "rows that are sent: items by the device" grep -q '"gpu_lists": 1,' "$folder/json"
check "rows that are sent: a wait" grep -qE '"refine_waits": [1-9]' "$folder/json"
# One query at a time.
by_device 9 l2 --probe 9
check "l2: 12 launches a query at most, not $(sum_of launches)" test "$(sum_of launches)" -le 108
# The host's where the tuning does not say so.
search_cpu cosine --probe 30
same cosine 1 1 --probe 30
check "by the host" grep -q '"gpu_lists": 0,' "$folder/json"

# ---- merged on devices ---------------------------------------------------------------------------

# merged NAME RANKS SHARDS WAY ARGUMENTS: same, merged so on devices; the link is NCCL, or what stands
# in for it.
stand_in=$(dirname "$program")/tests/nccl_stand_in.so
merged() {
    local name=$1 ranks=$2 shards=$3 way=$4
    shift 4
    if ((ranks > ${ranks_axis[-1]})) || [[ $ranks -gt 1 && ! -e $stand_in ]]; then return 0; fi
    BITSWEEP_EMULATOR_NCCL=$stand_in same "$name" "$ranks" "$shards" "$@"
    check "$name, $ranks ranks, $shards shards: merged by $way" grep -q "\"merge\": \"$way\"" "$folder/json"
    check "$name, $ranks ranks, $shards shards: merged on devices" grep -q '"merge_on": "emulated"' "$folder/json"
}

# Keys of one bit tie; a shard for every rank, more, and one for all; lists of candidates as long as
# shards; lists of one row, and of none.
search_cpu xfbq --probe 12 --k 100 --refine none
merged xfbq 2 3 exchange --probe 12 --k 100 --refine none
merged xfbq 4 3 exchange --probe 12 --k 100 --refine none --batch 4 --overlap on
merged xfbq 2 3 gather --probe 12 --k 100 --refine none --merge gather --batch 1
merged xfbq 2 1 exchange --probe 12 --k 100 --refine none --batch 5
merged xfbq 1 3 gather --probe 12 --k 100 --refine none
search_cpu l2 --probe all --k 1500 --oversample 1 --refine none
merged l2 2 3 exchange --probe all --k 1500 --oversample 1 --refine none --batch 9 --device-memory 2M
search_cpu l2 --probe 7
merged l2 2 3 exchange --probe 7 --link nccl --batch 4
if [[ -e $stand_in && ${ranks_axis[-1]} -gt 1 ]]; then
    check "the link" grep -q '"link": "nccl"' "$folder/json"
fi
merged l2 4 3 gather --probe 7 --merge gather --overlap on --batch 2
BITSWEEP_TUNING=$gpu_lists merged l2 2 3 exchange --probe 7 --batch 4
BITSWEEP_TUNING=$gpu_lists merged l2 1 3 gather --probe 7 --batch 3 --overlap on
check "items by the device, for each batch and shard" grep -q '"gpu_lists": 9,' "$folder/json"
merged l2 1 3 gather --probe 7 --batch 3 --overlap off
check "a wait for each batch and shard" grep -q '"waits": 9,' "$folder/json"
merged l2 1 1 exchange --probe 7 --merge exchange
check "a wait for a batch" grep -q '"waits": 1,' "$folder/json"
check "few rows" "$program" encode --base "$base" --rows 0:41 --metric ip --bits 2 --lists 20 --calibrate off \
    --shards 3 --index "$folder/few.3" --quiet
rows=$vectors vectors=$queries asked=(--queries "$queries")
check "cpu, few rows" "$program" search --index "$folder/few.3" --queries "$vectors" --query-rows 0:9 --quiet \
    --device cpu --probe 2 --k 3 --out "$folder/expected" --force
merged few 2 3 exchange --query-rows 0:9 --probe 2 --k 3
merged few 4 3 gather --query-rows 0:9 --probe 2 --k 3 --merge gather --batch 4
vectors=$rows asked=(--queries "$rows")

# ---- memory --------------------------------------------------------------------------------------

# foretell NAME RANKS MEMORY ARGUMENTS: info says what each rank of the same search then uses, which has
# what is in search_only, too.
search_only=()
foretell() {
    local name=$1 ranks=$2 memory=$3 said used own
    shift 3
    own=("$@")
    if [[ "$1 $2" == "--probe all" ]]; then own=("${@:3}"); fi # without a table it is what info takes
    "$program" info "$folder/$name.3" --json --ranks "$ranks" --device-memory "$memory" --link "${link:-mpi}" "${own[@]}" \
        >"$folder/info"
    same "$name" "$ranks" 3 --device-memory "$memory" ${search_only[@]+"${search_only[@]}"} "$@"
    said=$(sed -n 's/^ *"used_bytes": \([0-9]*\),$/\1/p' "$folder/info" | tr '\n' ' ')
    used=$(sed -n 's/^ *"used_bytes": \([0-9]*\),$/\1/p' "$folder/json" | tr '\n' ' ')
    check "$name, $memory: $said foretold, $used used" test -n "$said" -a "$said" = "$used"
}
search_cpu l2 --probe 7
BITSWEEP_TUNING=$gpu_lists foretell l2 1 10M --probe 7
check "items by the device" grep -qE '"gpu_lists": [1-9]' "$folder/json"
BITSWEEP_TUNING=$gpu_lists foretell l2 1 220K --probe 7 # no room for that
check "items by the host" grep -q '"gpu_lists": 0,' "$folder/json"
foretell l2 1 10M --probe 7
check "merged on the device" grep -q '"merge_on": "emulated"' "$folder/json"
foretell l2 1 220K --probe 7 # the codes fit where the CPU merges
check "merged by the CPU" grep -q '"merge_on": "cpu"' "$folder/json"
refused 2 "--merge exchange: a GPU has too little memory for .* beside the codes of an index with lists: ask for fewer" \
    "$emulated" search --index "$folder/l2.3" --queries "$vectors" --quiet --out "$folder/found" --force --probe 7 \
    --device emulated --device-memory 220K --merge exchange
if [[ -e $stand_in && ${ranks_axis[-1]} -gt 1 ]]; then
    BITSWEEP_EMULATOR_NCCL=$stand_in link=auto foretell l2 2 2M --probe 7 --batch 5
    check "merged on devices" grep -q '"merge_on": "emulated"' "$folder/json"
fi
search_cpu xfbq --probe all
foretell xfbq 1 100K --probe all # lists of candidates shorter than a shard, a few queries at a time
check "a few queries at a time" grep -qE '"queries_at_a_time": [1-8],' "$folder/info"

# Codes that do not fit come from host memory, list by list, as far as queries look at them; with
# tables of lists too, merged on devices or not. Lists of queries are found on the device all the same.
copied() {
    check "$1: codes were copied" grep -qE '"copied_bytes": [1-9]' "$folder/json"
    check "$1: centroids on the device" grep -qE '"centroids_bytes": [1-9]' "$folder/info"
}
streams=3
encode l2long --metric l2 --bits 8 --residual yes
encode pq --metric l2 --codec pq --subspaces 9 --residual yes
for name in l2long pq; do
    for probe in "--probe 7" "--probe all --k 30"; do
        # shellcheck disable=SC2086
        search_cpu "$name" $probe
        # shellcheck disable=SC2086
        foretell "$name" 1 120K $probe --batch $((streams++))
        copied "$name, $probe"
    done
done
if [[ -e $stand_in && ${ranks_axis[-1]} -gt 1 ]]; then
    search_cpu l2long --probe 7
    search_only=(--overlap on)
    BITSWEEP_EMULATOR_NCCL=$stand_in link=auto foretell l2long 2 100K --probe 7 --batch 3
    copied "l2long, 2 ranks"
    check "l2long, 2 ranks: merged on devices" grep -q '"merge_on": "emulated"' "$folder/json"
fi

# ---- what a device cannot do ---------------------------------------------------------------------

# search_device ARGUMENTS
search_device() {
    "$emulated" search --index "$folder/l2.1" --queries "$vectors" --quiet --out "$folder/found" --force "$@"
}
refused 74 'emulated:0: [0-9]+ bytes of device memory are free, [0-9]+ are needed at least: .* block by block' \
    search_device --device emulated --device-memory 20K
refused 74 'rank 0: [0-9]+ bytes of device memory are free, [0-9]+ are needed at least: .* block by block' \
    "$program" info "$folder/l2.1" --device-memory 20K

# auto takes a device that has room for all codes, and else the CPU and says why.
search_cpu l2 --probe 7
BITSWEEP_EMULATOR_AUTO=1 device=auto same l2 1 3 --probe 7
BITSWEEP_EMULATOR_AUTO=1 search_device --probe 7 --device-memory 100K --json >"$folder/json"
check "auto without room: the bytes" cmp "$folder/expected" "$folder/found"
check "auto without room: a note" grep -qE '"note": "emulated:0: [0-9]+ bytes of device memory are free, and [0-9]+ bytes of codes' \
    "$folder/json"
check "auto without room: the CPU" grep -q '"device": "cpu"' "$folder/json"

finish
