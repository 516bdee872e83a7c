#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Codec raw: a search gives the bytes of the ground truth, whatever the number of ranks, shards,
# threads and queries of a batch, the kernel level and the way of merging.
# usage: check_raw.sh BITSWEEP_BINARY SOURCE_FOLDER
# ctest labels: asan
#
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
tools=$(dirname "$program")/tests
find_levels
find_ranks 2 3 5
is_short=${BITSWEEP_MAX_RANKS:+yes} # under sanitizers

# truth NAME BASE QUERIES METRIC K
truth() {
    check "ground truth $1" "$program" groundtruth --base "$2" --queries "$3" --metric "$4" --k "$5" \
        --out "$folder/$1" --force --quiet
}

# index NAME BASE METRIC SHARDS RANKS: made on so many ranks.
index() {
    check "encode $1, $4 shards, $5 ranks" on "$5" encode --base "$2" --codec raw --metric "$3" \
        --shards "$4" --index "$folder/$1" --force --quiet
}

# search WHAT RANKS TRUTH K OPTIONS...: the same bytes, said to be exact.
search() {
    local what="$1, $2 ranks, k $4: ${*:5}" ranks=$2 expected=$folder/$3 k=$4 fact
    shift 4
    check "search $what" on "$ranks" search --out "$folder/result" --k "$k" --force --quiet --json "$@"
    mv "$folder/stdout" "$folder/json"
    for fact in '"scan": "matrix"' '"refine": "exact"' '"codec": "raw"' "\"L\": $k" \
        "\"ranks\": $ranks"; do
        check "search $what: --json says $fact" json_says "$folder/json" "$fact"
    done
    check "search $what: result.json says so" grep -q '^  "refine": "exact",$' "$folder/result.json"
    check "search $what: the bytes of the ground truth" cmp "$expected" "$folder/result"
}

# every_way NAME QUERIES: indexes of NAME-1, NAME-4 and NAME-7 shards against the truths of $k; on one rank all of
# them, on others one. Between the names every pair of values of two axes is met.
turn=0
name_turn=0
every_way() {
    local name=$1 asked=$2 ranks shards ways=("1 1" "1 4" "1 7") threads batch level merge k
    local ks=(1 10 100 1000) batches=(1 7 1000) merges=(gather ladder) num_shards=(1 4 7)
    [[ $is_short ]] || ways+=("${ways[@]}")
    for ranks in "${ranks_axis[@]:1}"; do
        ways+=("$ranks ${num_shards[(${#ways[@]} + name_turn) % 3]}")
    done
    for ranks in "${ways[@]}"; do
        read -r ranks shards <<<"$ranks"
        turn=$((turn + 1))
        threads=$((turn / 2 % 2 + 1))
        k=${ks[(turn + 2 * name_turn) % 4]}
        batch=${batches[(turn + turn / 3 + 2 * name_turn) % 3]}
        level=${levels[(turn + turn / 3 * 2 + name_turn) % ${#levels[@]}]}
        merge=${merges[(turn + name_turn / 2) % 2]}
        search "$name-$shards" "$ranks" "$name-truth-$k" "$k" --index "$folder/$name-$shards" \
            --queries "$asked" --threads "$threads" --batch "$batch" --level "$level" --merge "$merge"
    done
    name_turn=$((name_turn + 1))
}

# Vectors of 45 dims, most of them several times, on both sides of every cut; the same bytes are
# numbers of both types.
check_ties() {
    local type metric shards ranks name k places
    "$tools/identity_data" write "$folder"
    for name in base query; do cp "$folder/$name.u8bin" "$folder/$name.i8bin"; done
    for type in u8bin i8bin; do
        for metric in l2 ip; do
            name=$type-$metric
            for k in 1 10 100 1000; do
                truth "$name-truth-$k" "$folder/base.$type" "$folder/query.$type" "$metric" "$k"
            done
            for shards in 1 4 7; do index "$name-$shards" "$folder/base.$type" "$metric" "$shards" 1; done
            every_way "$name" "$folder/query.$type"
        done
    done
    for ranks in "${ranks_axis[@]:1:2}"; do
        index "again-$ranks" "$folder/base.u8bin" l2 4 "$ranks"
        check "the same index of $ranks ranks" diff -r "$folder/u8bin-l2-4" "$folder/again-$ranks"
    done
    # A test that meets no tie at the last place would prove little.
    for name in u8bin i8bin; do
        places=$("$tools/identity_data" ties "$folder/base.$name" "$folder/$name-l2-truth-1000" 1 10 100)
        # shellcheck disable=SC2016
        check "ties of $name at places 1, 10 and 100: ${places//$'\n'/, }" \
            awk '$2 < 3 {exit 1}' <<<"$places"
    done
}

# What is given and of no effect, and float queries of whole numbers.
check_options() {
    local name=u8bin-l2 options
    for options in "--refine none" "--oversample 30" "--refine exact" "--scan matrix" "--query-rows 0:19"; do
        read -ra options <<<"$options"
        search options 1 "$name-truth-10" 10 --index "$folder/$name-4" --queries "$folder/query.u8bin" \
            "${options[@]}"
    done
    search floats 1 "$name-truth-10" 10 --index "$folder/$name-4" --queries "$folder/whole.fbin"
    search floats "${ranks_axis[-1]}" u8bin-ip-truth-10 10 --index "$folder/u8bin-ip-4" \
        --queries "$folder/whole.fbin"
    # Letters are numbers of both types.
    { printf '\3\0\0\0\55\0\0\0' && head -c 135 "$0"; } >"$folder/letters.u8bin"
    truth letters "$folder/base.i8bin" "$folder/letters.u8bin" l2 10
    search "other type" 1 letters 10 --index "$folder/i8bin-l2-4" --queries "$folder/letters.u8bin"
    check "verify" on "${ranks_axis[-1]}" verify "$folder/$name-4" --quiet
    check "info" "$program" info "$folder/$name-4"
    mv "$folder/stdout" "$folder/facts"
    check "info says raw" grep -q 'raw, l2, 8 bits a dimension, segments 45x8$' "$folder/facts"
    check "eval" "$program" eval --results "$folder/result" --groundtruth "$folder/letters" --ties --json
    mv "$folder/stdout" "$folder/facts"
    check "eval finds all" grep -q '"10-recall@10": 1.0' "$folder/facts"
    check "ties count" grep -q '"ties": "written"' "$folder/facts"
}

# Dims round the groups of 4, words of 32 and tiles; parts of files, whose ids stay; no source needed.
check_shapes() {
    local dims rows turn=0
    for dims in 1 3 31 32 33 64 100 1100; do
        for rows in 1 33 700; do
            turn=$((turn + 1))
            if [[ $is_short ]] && ((turn % 4 != 1)); then continue; fi
            "$program" synth --count "$rows" --dims "$dims" --type uint8 --out "$folder/base-$dims.u8bin" \
                --queries 5 --queries-out "$folder/query-$dims.u8bin" --force --quiet
            truth shape-truth "$folder/base-$dims.u8bin" "$folder/query-$dims.u8bin" l2 1
            index shape "$folder/base-$dims.u8bin" l2 1 1
            rm "$folder/base-$dims.u8bin"
            search "$dims dims, $rows rows, without the source" 1 shape-truth 1 --index "$folder/shape" \
                --queries "$folder/query-$dims.u8bin" --level "${levels[rows % ${#levels[@]}]}"
        done
    done
    check "a part" "$program" encode --base "$base" --rows 15000:15777 --codec raw --metric ip \
        --shards 3 --copy-vectors --index "$folder/part" --quiet
    check "verify the part" "$program" verify "$folder/part" --quiet
    check "truth of the part" "$program" groundtruth --base "$base" --rows 15000:15777 \
        --queries "$queries" --metric ip --k 20 --out "$folder/part-truth" --quiet
    search "a part" "${ranks_axis[-1]}" part-truth 20 --index "$folder/part" --queries "$queries"
}

check_ties
check_options
check_shapes

finish
