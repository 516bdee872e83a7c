#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An index, a result and a ground truth that an earlier build has written (tests/data/format-1): still
# read, verified, searched and compared, byte for byte. A program that no longer reads them has to say
# so by the version of the format. format-2 is of the first build that orders by exact values: rows
# whose integer keys float32 does not tell apart.
# usage: check_format.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
data=$2/tests/data/format-1
find_levels
find_ranks 2

# Every level on one rank, the best on two.
ways=("${levels[@]/%/ 1}")
((${#ranks_axis[@]} == 1)) || ways+=("${levels[-1]} 2")

# facts FILE.json: without how its run ended, which those builds wrote to a file of its own.
facts() {
    sed '/^  "run": {/,/^  }/d' "$1" | sed ':all; N; $!b all; s/,\n}/\n}/'
}

check "verify" "$program" verify --index "$data/index" --quiet
check "verify --quiet prints nothing" test ! -s "$folder/stdout"
for way in "${ways[@]}"; do
    read -r level ranks <<<"$way"
    check "search, $level, $ranks ranks" on "$ranks" search --index "$data/index" --queries "$data/queries.fbin" \
        --k 5 --oversample 4 --level "$level" --out "$folder/result" --force --quiet
    check "result, $level, $ranks ranks" cmp "$folder/result" "$data/result.bin"
    # That build did not keep which queries these are.
    check "result.json, $level, $ranks ranks" \
        cmp <(facts "$folder/result.json" | grep -vE '"(first_query|queries_digest)":') "$data/result.bin.json"
done
check "the queries' digest" grep -q '"queries_digest": "9bb899b995615104",' "$folder/result.json"
# The rows are in the index: 120 of 40 dims, the copy of a file that is not here.
"$program" eval --results "$data/result.bin" --groundtruth "$data/truth.bin" --k 5 --json >"$folder/eval"
check "recall" grep -q '"5-recall@5": 1.0' "$folder/eval"

data=$2/tests/data/format-2
check "verify, format-2" "$program" verify --index "$data/index" --quiet
check "format-2: known answers are there" grep -q 'known  *4 answers' <("$program" info "$data/index")
for way in "${ways[@]}"; do
    read -r level ranks <<<"$way"
    check "raw search, $level, $ranks ranks" on "$ranks" search --index "$data/index" \
        --queries "$data/queries.u8bin" --k 20 --level "$level" --out "$folder/result" --force --quiet
    check "raw result, $level, $ranks ranks" cmp "$folder/result" "$data/result.bin"
    check "groundtruth, $level, $ranks ranks" on "$ranks" groundtruth --base "$data/base.u8bin" --metric ip \
        --queries "$data/queries.u8bin" --k 20 --level "$level" --out "$folder/truth" --force --quiet
    check "truth, $level, $ranks ranks" cmp "$folder/truth" "$data/truth.bin"
done
# Copies of rows in the order of the source; today they lie list after list. The same answers.
data=$2/tests/data/lists-1
check "verify, lists-1" "$program" verify --index "$data/index" --quiet
check "lists-1: the order of its copies" grep -q ', copied$' <("$program" info "$data/index")
old=(--base "synth:count=300,dims=16,clusters=9,seed=9" --metric l2 --lists 7 --bits 2 --shards 2 --calibrate off)
check "lists-1, made again" "$program" encode "${old[@]}" --copy-vectors --index "$folder/lists" --quiet
check "its order" grep -q ', copied list after list$' <("$program" info "$folder/lists")
for index in "$data/index" "$folder/lists"; do
    for way in "${ways[@]}"; do
        read -r level ranks <<<"$way"
        check "lists, $level, $ranks ranks" on "$ranks" search --index "$index" --queries "$data/queries.fbin" \
            --k 5 --probe 3 --oversample 4 --level "$level" --out "$folder/lists.bin" --force --quiet
        check "result of lists, $level, $ranks ranks" cmp "$folder/lists.bin" "$data/result.bin"
    done
done

# Codes alone, without the rows. format-3: sq8 of version 1 under cosine, whose queries keep the middle; format-4: rules of
# coding of version 4.
for data in "$2"/tests/data/format-3/sq8 "$2"/tests/data/format-4/{sq8,saq,xfbq}; do
    check "verify, ${data#"$2/tests/data/"}" "$program" verify --index "$data/index" --quiet
    for way in "${ways[@]}"; do
        read -r level ranks <<<"$way"
        check "codes, $level, $ranks ranks" on "$ranks" search --index "$data/index" --queries "$data/queries.fbin" \
            --k 5 --refine none --level "$level" --out "$folder/codes.bin" --force --quiet
        check "result of codes, $level, $ranks ranks" cmp "$folder/codes.bin" "$data/result.bin"
    done
done

data=$2/tests/data/format-2
check "raw result.json" cmp <(facts "$folder/result.json") "$data/result.bin.json"
check "truth.json" cmp <(facts "$folder/truth.json") "$data/truth.bin.json"

finish
