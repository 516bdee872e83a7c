#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Codec sq8: the same index and results for any number of ranks, threads, kernel levels, queries of
# a batch and way of scanning; most of the true neighbours by code alone, all of them refined.
# usage: check_sq8.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_levels
find_ranks 2 3

check "rows" "$program" synth --count 5000 --dims 45 --clusters 20 --seed 4 --out "$folder/base.fbin" \
    --queries 60 --queries-out "$folder/queries.fbin"

# recall RESULT LEAST: 10-recall@10 against the truth of the metric.
recall() {
    local found
    found=$("$program" eval --results "$1" --groundtruth "$folder/truth" --k 10 --json |
        sed -nE 's/.*"10-recall@10": ([0-9.]+).*/\1/p')
    check "recall of $1: $found, at least $2" awk -v a="$found" -v b="$2" 'BEGIN {exit !(a >= b)}'
}

# next_level: by turns, another one for the same ranks and scan under the next metric.
turn=0
next_level() {
    level=${levels[(turn + turn / 15) % ${#levels[@]}]}
    turn=$((turn + 1))
}

for metric in cosine ip l2; do
    check "ground truth, $metric" "$program" groundtruth --base "$folder/base.fbin" \
        --queries "$folder/queries.fbin" --metric "$metric" --k 10 --out "$folder/truth" --force --quiet
    check "encode, $metric" "$program" encode --base "$folder/base.fbin" --codec sq8 --metric "$metric" \
        --index "$folder/one" --shards 3 --force --quiet
    for ranks in "${ranks_axis[@]}"; do
        next_level
        check "encode, $metric, $ranks ranks, $level" on "$ranks" encode --base "$folder/base.fbin" \
            --codec sq8 --metric "$metric" --index "$folder/other" --shards 3 --level "$level" --threads 2 --force --quiet
        for file in manifest.pb shard-00000-of-00003.codes shard-00002-of-00003.codes; do
            check "$file is the same" cmp "$folder/one/$file" "$folder/other/$file"
        done
    done
    for refine in none exact; do
        check "search, $metric, refine $refine" "$program" search --index "$folder/one" \
            --queries "$folder/queries.fbin" --k 10 --refine "$refine" --out "$folder/first" --force --quiet
        for ranks in "${ranks_axis[@]}"; do
            for scan in planes matrix; do
                next_level
                check "search, $metric, refine $refine, $ranks ranks, $scan, $level" on "$ranks" search \
                    --index "$folder/one" --queries "$folder/queries.fbin" --k 10 --refine "$refine" \
                    --scan "$scan" --level "$level" --batch 7 --threads 2 --out "$folder/again" --force --quiet
                check "the same bytes" cmp "$folder/first" "$folder/again"
            done
        done
        if [[ $refine == none ]]; then recall "$folder/first" 0.93; else recall "$folder/first" 1; fi
    done
done
finish
