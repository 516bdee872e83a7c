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

# Other back ends, where they are built in and have a device. `rays` are those that trace.
finders=(brute) rays=()
find_back_ends() {
    local name said
    for name in embree vulkan; do
        said=$(search "$folder/whole" "$folder/again" --entries radius --entries-by "$name" 2>&1 || true)
        if [[ -z $said ]]; then
            finders+=("$name") rays+=("$name")
        elif [[ $said == *"no back end $name"* || $said == *"no Vulkan driver"* ||
            $said == *"Vulkan devices traces rays"* ]]; then
            echo "skip: --entries-by $name: $said"
        else
            fail "--entries-by $name: $said"
        fi
    done
}

# tell ARGUMENT...: what a search tells.
tell() {
    "$program" search --index "$folder/one" --queries "$queries" --query-rows 0:20 --k 20 --refine none \
        --out "$folder/again" --threads 2 --force --quiet --json --entries radius "$@" >"$folder/facts"
}

# counted WHAT CONDITION ARGUMENT...: of numbers that a search tells: all, computed, within; e and l, the shares.
counted() {
    local what=$1 condition=$2 name
    shift 2
    check "$what" tell "$@"
    local numbers=()
    for name in entries_all entries_computed entries_within entries_share lookups_share; do
        numbers+=("$(sed -nE "s/^ *\"$name\": ([0-9.e-]+),?$/\1/p" "$folder/facts")")
    done
    check "$what: ${numbers[*]}" awk -v a="${numbers[0]}" -v c="${numbers[1]}" -v w="${numbers[2]}" -v e="${numbers[3]}" \
        -v l="${numbers[4]}" "BEGIN {exit !(a > 0 && ($condition))}"
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
    if ((${#finders[@]} == 1 && ${#rays[@]} == 0)) && [[ $metric == l2 && $bits == 8 ]]; then find_back_ends; fi
    check "all entries" search "$folder/one" "$folder/all" "${arguments[@]}"
    check "an infinite radius" search "$folder/one" "$folder/again" "${arguments[@]}" --entries radius --radius-scale inf
    check "the same bytes" cmp "$folder/all" "$folder/again"
    ways=("--mode H" "--mode H --miss inf --radius-scale 1.2" "--mode M" "--mode L --radii small")
    if [[ $metric == l2 ]]; then
        check "an infinite radius of the nearest" search "$folder/one" "$folder/again" "${arguments[@]}" --entries radius \
            --radii nearest --miss mean --radius-scale inf
        check "the same bytes" cmp "$folder/all" "$folder/again"
        ways+=("--radii nearest --miss mean" "--radii nearest --radius-scale 1.2" "--radii nearest --mode M")
    fi
    for way in "${ways[@]}"; do
        read -ra words <<<"$way --entries radius ${arguments[*]}"
        check "search, $what, $way" search "$folder/one" "$folder/first" "${words[@]}"
        check "radii leave something out, $what, $way" differ "$folder/first" "$folder/all"
        next_level
        check "search, $what, $way, 1 shard, $level" search "$folder/whole" "$folder/again" "${words[@]}" \
            --level "$level" --batch 7 --entries-by "${finders[turn % ${#finders[@]}]}"
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
    if [[ $metric != l2 ]]; then
        refused 2 "radii nearest is for l2" search "$folder/one" "$folder/x" "${arguments[@]}" --entries radius --radii nearest
    fi
    if [[ $metric == l2 && $bits == 8 ]]; then
        counted "what the nearest quarter leaves out" "c == a && e > 0.15 && e < 0.35 && l > 0.15 && l < 0.6" \
            --probe "$probe" --radii nearest --miss mean
        counted "what an infinite radius leaves out" "c == a && w == a && e == 1 && l == 1" --probe "$probe" \
            --radius-scale inf
        counted "what a radius leaves out" "c == a && w < a && e > 0.1 && e < 1 && l > 0.1 && l < 1" --probe "$probe"
        within=$(grep entries_within "$folder/facts")
        counted "the same in mode M" "e < 1 && l < 1" --probe "$probe" --mode M --batch 7
        check "as many entries within" grep -qF "$within" "$folder/facts"
        for finder in ${rays[@]+"${rays[@]}"}; do
            counted "what $finder leaves out" "c < a && c >= w" --probe "$probe" --radius-scale 0.5 --entries-by "$finder"
        done
    fi
    # Times of hits are near distances: keys change, what is found hardly does.
    for finder in ${rays[@]+"${rays[@]}"}; do
        check "by formula" search "$folder/one" "$folder/first" "${arguments[@]}" --entries radius
        check "by time, $what, $finder" search "$folder/one" "$folder/again" "${arguments[@]}" --entries radius \
            --entries-by "$finder" --hit-time
        check "keys by time, $what, $finder" differ "$folder/first" "$folder/again"
        near=$("$program" eval --results "$folder/again" --groundtruth "$folder/first" --json |
            sed -nE 's/.*"20-recall@20": ([0-9.]+).*/\1/p')
        check "the same rows by time, $what, $finder: $near" awk -v a="$near" 'BEGIN {exit !(a >= 0.99)}'
    done
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
refused 2 "hit-time is for --entries radius" search "$folder/one" "$folder/x" --hit-time
refused 2 "hit-time: brute traces no rays" search "$folder/one" "$folder/x" --entries radius --hit-time
refused 2 "hit-time: brute traces no rays" search "$folder/one" "$folder/x" --entries radius --hit-time --entries-by brute
refused 2 "hit-time is for --entries radius" "$program" sweep --base "$base" --queries "$queries" --metric l2 \
    --folder "$folder/sweep" --hit-time
refused 2 "'X'" search "$folder/one" "$folder/x" --entries radius --mode X
refused 2 "miss inf is for --mode H" search "$folder/one" "$folder/x" --entries radius --mode L --miss inf
refused 2 "miss mean is for --radii nearest" search "$folder/one" "$folder/x" --entries radius --miss mean
refused 2 "miss mean is for --mode H" search "$folder/one" "$folder/x" --entries radius --radii nearest --mode M --miss mean
refused 2 "table is for --entries all" search "$folder/one" "$folder/x" --entries radius --table e5m3
refused 2 "has no radii" search "$folder/plain" "$folder/x" --entries radius
refused 2 "codec saq has no entries" search "$folder/saq" "$folder/x" --entries radius
refused 2 "recall: " search "$folder/one" "$folder/x" --entries radius --recall 0.9
finish
