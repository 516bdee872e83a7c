#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Range searches: for every codec, with lists and without, the bytes of a search of all rows of which
# those within the value were taken, for any ranks, shards, threads and batches, with a mask too; by
# exact values with a margin, by those of the codes; own rows left out; what eval says of them; files
# of either form and wrong ones; what is refused.
# usage: check_range.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
# ctest labels: asan
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
# shellcheck source=tests/cluster/few_rows.sh
. "$(dirname "$0")/few_rows.sh"
find_python
find_ranks 3
most_ranks=${ranks_axis[-1]}
source=$2

mkdir "$folder/masks"
check "masks" "$python" "$source/tests/cluster/filter_masks.py" make "$folder/masks" $rows $num_queries
asked=(--queries "$folder/queries.u8bin")

# finds WHAT RANKS OPTIONS...: the bytes of $folder/expected.
finds() {
    local what=$1 ranks=$2
    shift 2
    check "$what, $ranks ranks, $*" on "$ranks" search "${asked[@]}" --out "$folder/found" --force --quiet "$@"
    check "$what, $ranks ranks, $*: the same bytes" cmp "$folder/expected" "$folder/found"
}

# expect NAME SHARE OPTIONS...: $within, which about so many rows of a query are within, and what those are.
expect() {
    local name=$1 share=$2
    shift 2
    check "$name: all rows" "$program" search --index "$folder/$name" "${asked[@]}" --k $rows --out "$folder/all" \
        --force --quiet "$@"
    within=$("$python" "$source/tests/cluster/range_results.py" choose "$folder/all" "$share")
    check "$name: rows within $within" "$python" "$source/tests/cluster/range_results.py" cut "$folder/all" "$within" \
        "$folder/expected"
}

turn=0
for code in "${codes[@]}"; do
    encode_code "$code"
    for share in 0.002 0.05; do
        expect "$name" $share "${search[@]}"
        here=(--index "$folder/$name" --within="$within" "${search[@]}")
        finds "$name" 1 "${here[@]}" --threads 1
        if ((turn % 2)); then finds "$name" "$most_ranks" "${here[@]}" --threads 2 --batch 7; fi
        turn=$((turn + 1))
    done
    # Values that the code gives are refined where the margin is so wide that all rows are candidates.
    [[ $name == saq || $name == residual || $name == ip ]] || continue
    expect "$name" 0.01 --oversample 200
    finds "$name, refined" "$most_ranks" --index "$folder/$name" --within="$within" --margin 1000 --batch 11
done

# Filters, of all queries and of each; own rows.
expect raw 0.05
for mask in some each; do
    check "$mask" "$python" "$source/tests/cluster/range_results.py" cut "$folder/all" "$within" "$folder/expected" \
        "$folder/masks/$mask.npy"
    finds "$mask" 1 --index "$folder/raw" --within="$within" --allow "$folder/masks/$mask.npy"
    finds "$mask" "$most_ranks" --index "$folder/raw_lists" --within="$within" --allow "$folder/masks/$mask.npy" \
        --batch 9
done
{ printf '\x28\0\0\0' && head -c $((8 + num_queries * 128)) "$base" | tail -c +5; } >"$folder/own.u8bin"
check "own rows" "$program" search --index "$folder/raw" --queries "$folder/own.u8bin" --within 0 --out "$folder/own" \
    --quiet
check "without them" "$program" search --index "$folder/raw" --queries "$folder/own.u8bin" --within 0 --exclude-self \
    --out "$folder/others" --quiet
check "own rows: $num_queries" "$python" "$source/tests/cluster/range_results.py" count "$folder/own" $num_queries
check "others: none" "$python" "$source/tests/cluster/range_results.py" count "$folder/others" 0

# What eval says.
"$program" search --index "$folder/raw" "${asked[@]}" --within="$within" --out "$folder/truth" --quiet
"$program" search --index "$folder/saq" "${asked[@]}" --within="$within" --out "$folder/exact" --quiet
"$program" search --index "$folder/saq" "${asked[@]}" --within="$within" --refine none --out "$folder/rough" --quiet
for result in exact rough; do
    check "eval, $result" "$program" eval --results "$folder/$result" --groundtruth "$folder/truth" --json
    cp "$folder/stdout" "$folder/$result.told"
    check "eval, $result: as NumPy has it" "$python" "$source/tests/cluster/range_results.py" judge "$folder/$result" \
        "$folder/truth" "$folder/$result.told"
done
cp "$folder/truth" "$folder/theirs"
check "a truth without facts" "$program" eval --results "$folder/exact" --groundtruth "$folder/theirs"
check "the form of 64 bits" "$python" "$source/tests/cluster/range_results.py" widen "$folder/truth" "$folder/theirs"
check "is read" "$program" eval --results "$folder/exact" --groundtruth "$folder/theirs"
refused 2 '^bitsweep: --k is for the best k' "$program" eval --results "$folder/exact" --groundtruth "$folder/truth" --k 3
"$program" search --index "$folder/raw" "${asked[@]}" --within 1 --out "$folder/other" --quiet
refused 2 'is of --within' "$program" eval --results "$folder/exact" --groundtruth "$folder/other"
head -c -4 "$folder/truth" >"$folder/theirs"
refused 65 'no result of a range search: its header says 40 queries' "$program" eval --results "$folder/exact" \
    --groundtruth "$folder/theirs"

# refused_with PATTERN OPTIONS...
refused_with() {
    local pattern=$1
    shift
    refused 2 "$pattern" "$program" search "${asked[@]}" --out "$folder/no" --quiet "$@"
    if compgen -G "$folder/no*" >/dev/null; then fail "$* leaves something"; else pass; fi
}
refused_with "--within 'x' is not a number" --index "$folder/raw" --within x
refused_with 'query 0 has more than 50 candidates within' --index "$folder/saq" --within 1e9 --max-candidates 50
refused_with 'query 0 has more than 1999 candidates within' --index "$folder/saq" --within 1e9 --max-candidates 1999
refused_with 'without --select histogram and queue' --index "$folder/xfbq" --within 0.5 --select histogram
refused_with 'without --oversample' --index "$folder/saq" --within 5 --oversample 3
refused_with 'begins anew' --index "$folder/saq" --within 5 --resume
refused_with 'without --allow-partial' --index "$folder/saq" --within 5 --allow-partial
if [[ -e $emulated ]]; then
    refused 2 'device emulated: --within' "$emulated" search --index "$folder/saq" "${asked[@]}" --within 5 \
        --out "$folder/no" --device emulated
fi
refused 2 "has any number of rows|any number of rows" "$program" search --index "$folder/saq" "${asked[@]}" --within 5 \
    --out "$folder/no.npz"
refused 2 'exists' "$program" search --index "$folder/saq" "${asked[@]}" --within 5 --out "$folder/truth"

finish
