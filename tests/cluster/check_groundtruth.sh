#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ground truth against brute force by the definition, and the recall of codes where rows differ in length.
# usage: check_groundtruth.sh BITSWEEP_BINARY SOURCE_FOLDER
# ctest labels: asan
#
# With BITSWEEP_SHARED_DATA in the environment also TEXMEX' siftsmall against its own ground truth.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
bitsweep=$program
brute_force=$(dirname "$1")/tests/brute_force
find_levels

# check_truth NAME BASE ROWS QUERIES QUERY_ROWS METRIC K: of every level.
check_truth() {
    local name=$1 rows=$2 row_range=$3 asked=$4 query_range=$5 metric=$6 k=$7 level
    "$brute_force" truth "$rows" "$row_range" "$asked" "$query_range" "$metric" "$k" "$folder/expected"
    for level in "${levels[@]}"; do
        if "$bitsweep" groundtruth --base "$rows" --rows "$row_range" --queries "$asked" \
            --query-rows "$query_range" --metric "$metric" --k "$k" --out "$folder/found" --force \
            --quiet --level "$level" >"$folder/out" 2>&1 &&
            "$brute_force" compare "$folder/expected" "$folder/found" >"$folder/out" 2>&1; then
            pass "$name, $metric, $level"
        else
            fail "$name, $metric, $level" "$folder/out"
        fi
    done
}

# The comparison itself must find a wrong row and a wrong value.
check_comparison() {
    local what offset
    "$brute_force" truth "$base" 0:200 "$queries" 0:5 l2 10 "$folder/expected"
    for what in row:8 value:208; do # bytes: the first id, the first value
        offset=${what#*:}
        cp "$folder/expected" "$folder/wrong"
        printf '\xff\xff\xff\x3f' |
            dd of="$folder/wrong" bs=1 seek="$offset" conv=notrunc status=none
        if "$brute_force" compare "$folder/expected" "$folder/wrong" >"$folder/out" 2>&1; then
            fail "a wrong ${what%:*} was not found" "$folder/out"
        else
            pass "a wrong ${what%:*} is found"
        fi
    done
}

# recall_of JSON NAME
recall_of() {
    sed -n "s/^ *\"$2\": \([0-9.e+-]*\),\{0,1\}\$/\1/p" "$1" | head -n 1
}

# check_recall NAME FILE_OF_ROWS METRIC LEAST: codes of the defaults.
check_recall() {
    local name=$1 rows=$2 metric=$3 least=$4 recall=""
    if "$bitsweep" groundtruth --base "$rows" --queries "$queries" --metric "$metric" --k 10 \
        --out "$folder/truth" --force --quiet >"$folder/out" 2>&1 &&
        "$bitsweep" encode --base "$rows" --index "$folder/index" --metric "$metric" --force \
            --quiet >"$folder/out" 2>&1 &&
        "$bitsweep" search --index "$folder/index" --queries "$queries" --out "$folder/result" \
            --force --quiet >"$folder/out" 2>&1 &&
        "$bitsweep" eval --results "$folder/result" --groundtruth "$folder/truth" \
            --json >"$folder/out" 2>&1; then
        recall=$(recall_of "$folder/out" 10-recall@10)
    fi
    if awk -v r="${recall:-0}" -v l="$least" 'BEGIN {exit !(r >= l && r <= 1)}'; then
        pass "$name, $metric: 10-recall@10 $recall"
    else
        fail "$name, $metric: 10-recall@10 '$recall', not $least" "$folder/out"
    fi
}

check_siftsmall() {
    local data=${BITSWEEP_SHARED_DATA:-} recall=""
    if [[ ! -f $data/siftsmall_base.fvecs ]]; then
        echo "skipped: siftsmall: BITSWEEP_SHARED_DATA names no folder with siftsmall_base.fvecs"
        return
    fi
    # Theirs may order ties in another way. The .ivecs holds no values: --base computes them.
    if "$bitsweep" groundtruth --base "$data/siftsmall_base.fvecs" \
        --queries "$data/siftsmall_query.fvecs" --metric l2 --k 100 --out "$folder/siftsmall" \
        --quiet >"$folder/out" 2>&1 &&
        "$bitsweep" eval --results "$folder/siftsmall" \
            --groundtruth "$data/siftsmall_groundtruth.ivecs" --base "$data/siftsmall_base.fvecs" \
            --queries "$data/siftsmall_query.fvecs" --json >"$folder/all" 2>&1; then
        sed -n '/recalls_with_ties/,$p' "$folder/all" >"$folder/out"
        recall=$(recall_of "$folder/out" 100-recall@100)
    fi
    if awk -v r="${recall:-0}" 'BEGIN {exit r != 1}'; then
        pass "siftsmall: 100-recall@100 $recall"
    else
        fail "siftsmall: 100-recall@100 '$recall', not 1" "$folder/out"
    fi
}

check_comparison
"$brute_force" scale "$base" "$folder/scaled.fbin" 1
"$brute_force" scale "$queries" "$folder/scaled_query.fbin" 2
synth=synth:count=2500,dims=33,clusters=7
for metric in cosine ip l2; do
    check_truth "uint8" "$base" 0:2000 "$queries" 0:50 "$metric" 20
    check_truth "uint8, ids from 15000" "$base" 15000:15100 "$queries" 150:200 "$metric" 100
    check_truth "2 dims full of ties" synth:count=3000,dims=2,type=uint8 0:3000 \
        synth:count=50,dims=2,type=uint8,seed=2 0:50 "$metric" 40
    check_truth "float" "$synth" 0:2000 synth:count=60,dims=33,clusters=7,seed=1 10:60 "$metric" 20
    check_truth "scaled rows" "$folder/scaled.fbin" 0:2000 "$folder/scaled_query.fbin" 0:50 \
        "$metric" 20
    check_truth "uint8 rows, float queries" "$base" 100:700 "$folder/scaled_query.fbin" 0:50 \
        "$metric" 20
    check_recall "scaled rows" "$folder/scaled.fbin" "$metric" 0.95
done
check_siftsmall

finish
