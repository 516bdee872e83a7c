#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Entries within a radius, codec pq: the same index and results for any number of ranks, threads, shards,
# kernel levels, back ends and queries of a batch; with an infinite radius the bytes of full tables; what
# cannot be is refused.
# usage: check_selective.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_levels
find_ranks 2

turn=0
next_level() {
    level=${levels[turn % ${#levels[@]}]}
    turn=$((turn + 1))
}

# make INDEX SHARDS LEVEL ARGUMENT...: of some of the rows
make() {
    local index=$1 shards=$2 level=$3
    shift 3
    "$@" encode --base "$base" --rows 0:1200 --codec pq --entries radius --metric "$metric" --bits "$bits" \
        --rotation none --lists "$lists" --residual "$residual" --calibrate off --index "$index" --shards "$shards" \
        --level "$level" --threads 2 --force --quiet
}

differ() {
    ! cmp -s "$1" "$2"
}

# search INDEX OUT ARGUMENT...
search() {
    local index=$1 out=$2
    shift 2
    "$program" search --index "$index" --queries "$queries" --query-rows 0:20 --k 20 --refine "$refine" --out "$out" \
        --threads 2 --force --quiet "$@"
}

refine=none
while read -r metric bits lists residual probe <&3; do
    what="$metric, $bits bits, $lists lists, residual $residual"
    check "encode, $what" make "$folder/one" 2 auto "$program"
    if ((bits == 4)); then # others only cost more
        check "encode, $what, reference, ${ranks_axis[-1]} ranks" make "$folder/other" 2 reference on "${ranks_axis[-1]}"
        check "the same manifest" cmp "$folder/one/manifest.pb" "$folder/other/manifest.pb"
    fi
    check "encode, $what, 1 shard" make "$folder/whole" 1 auto "$program"
    arguments=()
    ((lists == 0)) || arguments=(--probe "$probe")
    check "all entries" search "$folder/one" "$folder/all" "${arguments[@]}"
    check "an infinite radius" search "$folder/one" "$folder/again" "${arguments[@]}" --entries radius --radius-scale inf
    check "the same bytes" cmp "$folder/all" "$folder/again"
    finder=embree # another back end, where there is one
    refused_it=$(search "$folder/one" "$folder/again" --entries radius --entries-by embree 2>&1 || true)
    [[ $refused_it != *"no back end"* ]] || finder=brute
    for way in "--mode H" "--mode H --miss inf --radius-scale 1.2" "--mode M" "--mode L --radii small"; do
        read -ra words <<<"$way --entries radius ${arguments[*]}"
        check "search, $what, $way" search "$folder/one" "$folder/first" "${words[@]}"
        check "radii leave something out, $what, $way" differ "$folder/first" "$folder/all"
        next_level
        check "search, $what, $way, 1 shard, $level" search "$folder/whole" "$folder/again" "${words[@]}" \
            --level "$level" --batch 7 --entries-by "$finder"
        check "the same bytes" cmp "$folder/first" "$folder/again"
        for ranks in "${ranks_axis[@]:1}"; do
            next_level
            check "search, $what, $way, $ranks ranks, $level" on "$ranks" search --index "$folder/one" \
                --queries "$queries" --query-rows 0:20 --k 20 --refine none --out "$folder/again" --force --quiet \
                --level "$level" --threads 1 "${words[@]}"
            check "the same bytes" cmp "$folder/first" "$folder/again"
        done
    done
    check "the exact neighbours" "$program" groundtruth --base "$base" --rows 0:1200 --queries "$queries" \
        --query-rows 0:20 --metric "$metric" --k 20 --out "$folder/truth" --force --quiet
    refine=exact
    check "refined" search "$folder/one" "$folder/first" "${arguments[@]}" --entries radius
    refine=none
    recall=$("$program" eval --results "$folder/first" --groundtruth "$folder/truth" --json |
        sed -nE 's/.*"20-recall@20": ([0-9.]+).*/\1/p')
    check "recall of $what: $recall" awk -v a="$recall" 'BEGIN {exit !(a >= 0.9)}'
done 3<<'CASES'
l2 8 16 auto 8
ip 4 16 auto 16
cosine 8 0 auto 0
l2 4 8 no 8
CASES

check "radii, an index's codebooks taken over" "$program" encode --base "$base" --rows 0:1200 --codec pq --metric l2 \
    --lists 8 --residual no --model "$folder/one" --calibrate off --index "$folder/model" --shards 2 --force --quiet
check "the same manifest" cmp "$folder/one/manifest.pb" "$folder/model/manifest.pb"
check "an index without radii" "$program" encode --base "$base" --rows 0:1200 --codec pq --metric l2 --subspaces 8 \
    --rotation none --index "$folder/plain" --quiet
check "an index of other codes" "$program" encode --base "$base" --rows 0:1200 --codec saq --metric l2 \
    --index "$folder/saq" --quiet

encode=("$program" encode --base "$base" --rows 0:1200 --metric l2 --index "$folder/none" --quiet)
refused 2 "subspaces 32: --entries radius has 2 dims each, 64 for" "${encode[@]}" --codec pq --entries radius --subspaces 32
refused 2 "entries is for --codec pq" "${encode[@]}" --codec saq --entries radius
refused 2 "model brings its own" "${encode[@]}" --codec pq --entries radius --model "$folder/one"
refused 2 "mode is for --entries radius" search "$folder/one" "$folder/x" --mode M
refused 2 "radius-scale is for --entries radius" search "$folder/one" "$folder/x" --entries all --radius-scale 1
for scale in 0 -1 nan 1e-12 2e9; do
    refused 2 "radius-scale" search "$folder/one" "$folder/x" --entries radius --radius-scale "$scale"
done
refused 2 "'X'" search "$folder/one" "$folder/x" --entries radius --mode X
refused 2 "miss inf is for --mode H" search "$folder/one" "$folder/x" --entries radius --mode L --miss inf
refused 2 "table is for --entries all" search "$folder/one" "$folder/x" --entries radius --table e5m3
refused 2 "has no radii" search "$folder/plain" "$folder/x" --entries radius
refused 2 "codec saq has no entries" search "$folder/saq" "$folder/x" --entries radius
refused 2 "recall: " search "$folder/one" "$folder/x" --entries radius --recall 0.9
finish
