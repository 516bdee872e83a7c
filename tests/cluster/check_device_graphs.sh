#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Batches whose launches are one graph: the bytes and counts of launches one by one, for batches of
# several lengths, ranks, shards and codecs, and where graphs are refused at any point. The device is
# emulated; what graphs are is in tests/emulation/emulated_graphs.hpp.
# usage: check_device_graphs.sh BITSWEEP_BINARY SOURCE_FOLDER
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
needs "$emulated"
find_ranks 2
stand_in=$(dirname "$program")/tests/nccl_stand_in.so
if [[ -e $stand_in ]]; then export BITSWEEP_EMULATOR_NCCL=$stand_in; fi

# search RANKS INDEX ARGUMENTS: 12 queries in batches of 5, 5 and 2, twice. No self-checks, whose scans have
# shapes too.
search() {
    local ranks=$1 index=$2
    shift 2
    BITSWEEP=$emulated timeout -k 5 60 "$run" -n "$ranks" search --index "$folder/$index" --queries "$queries" \
        --query-rows 0:12 --k 20 --batch 5 --repeat 2 --check-every never --quiet --json --force --out "$folder/found" \
        --device emulated "$@" >"$folder/json" 2>"$folder/stderr"
}

# expect NAME: what the CPU finds.
expect() {
    "$program" search --index "$folder/$1" --queries "$queries" --query-rows 0:12 --k 20 --quiet --force \
        --device cpu --out "$folder/expected" "${@:2}"
}

# same GRAPHS RANKS INDEX ARGUMENTS: the expected bytes, and so many graphs a rank; `counts` is then what was
# counted of the work. 6 batches a rank are 4 graphs: of either length the first goes launch by launch.
same() {
    local graphs=$1 ranks=$2 index=$3 what="$2 ranks, $3, ${*:4}" found
    shift 3
    if ! search "$ranks" "$index" "$@" || [[ -s $folder/stderr ]]; then
        complain "$what"
    elif ! cmp -s "$folder/expected" "$folder/found"; then
        complain "$what: other bytes"
    else
        found=$(sum_of graphs)
        if ((found == graphs * ranks)); then pass; else complain "$what: $found graphs and not $graphs a rank"; fi
    fi
    counts="$(sum_of samples) $(sum_of segments) $(sum_of overflows) $(sum_of waits) $(sum_of batch_allocations)"
}

# both RANKS INDEX ARGUMENTS: with graphs and without.
both() {
    local with
    same 4 "$@" --graphs on
    with=$counts
    same 0 "$@" --graphs off
    if [[ $counts == "$with" ]]; then pass; else complain "$*: counted $with with graphs, $counts without"; fi
}

"$program" encode --base "$base" --rows 0:2003 --index "$folder/xfbq" --codec xfbq --bits 3 --shards 6 --quiet
"$program" encode --base "$base" --rows 0:2003 --index "$folder/saq" --codec saq --bits 2 --metric l2 --shards 2 \
    --stage 0 --quiet
"$program" encode --base "$base" --rows 0:6007 --index "$folder/long" --codec xfbq --bits 1 --quiet
"$program" encode --base "$base" --rows 0:2003 --index "$folder/pq" --codec pq --metric l2 --calibrate off \
    --shards 2 --quiet

expect xfbq
for ranks in "${ranks_axis[@]}"; do
    both "$ranks" xfbq --scan planes
    both "$ranks" xfbq --scan matrix --overlap on
    both "$ranks" xfbq --merge gather --overlap off
    if ((ranks > 1)); then both "$ranks" xfbq --merge exchange --overlap on; fi
done
expect saq
both 1 saq
expect pq
both 1 pq
expect long --refine none
both 1 long --refine none --device-memory 600K # limits from a sample, several segments
if ((${counts%% *} > 0)); then pass; else complain "no sample was taken"; fi
for order in descending random; do BITSWEEP_EMULATOR_ORDER=$order same 4 1 long --refine none --graphs on; done

# By themselves as the GPU's tuning says, which is off unless a file says on.
same 0 1 long --refine none
echo 'device 8.6 graphs=on' >"$folder/tuning"
BITSWEEP_TUNING=$folder/tuning same 4 1 long --refine none
BITSWEEP_TUNING=$folder/tuning same 0 1 long --refine none --graphs off

# What the host looks at in between goes launch by launch: codes in blocks, and queues.
expect xfbq
same 0 1 xfbq --graphs on --device-memory 60K

# ---- refused -------------------------------------------------------------------------------------

# refuse VARIABLE NUMBER GRAPHS: from that time on. The report says why.
refuse() {
    export "$1=$2"
    same "$3" 1 xfbq --graphs on
    unset "$1"
    if grep -q '"graphs_note": "emulated:0: graph: ' "$folder/json"; then pass; else complain "$1: no note"; fi
}
refuse BITSWEEP_EMULATOR_NO_CAPTURE 1 0
refuse BITSWEEP_EMULATOR_NO_CAPTURE 2 3 # the shorter batch's
refuse BITSWEEP_EMULATOR_NO_GRAPH 1 0
refuse BITSWEEP_EMULATOR_NO_GRAPH_LAUNCH 3 2
same 4 1 xfbq --graphs on
if grep -q '"graphs_note": null' "$folder/json"; then pass; else complain "a note of graphs that were there"; fi

finish
