#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Rows found by their tags: the bytes of a search with the masks that NumPy makes of the same tags, flat and with lists,
# for any ranks and batches and an emulated device, of tags that follow Zipf; within a value, too; after append, delete
# and compact; ground truth by tags; a result that is not gone on with by other tags; what is wrong is refused.
# usage: check_tags.sh BITSWEEP_BINARY SOURCE_FOLDER
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
tags=$folder/tags

mkdir "$tags"
check "tags" "$python" "$2/tests/cluster/tag_files.py" make "$tags" $rows $num_queries
ten=(--queries "$folder/queries.u8bin" --k 10)

# expect INDEX OPTIONS...: $folder/expected, of a search with masks.
expect() {
    local index=$1
    shift
    check "$index: with masks" "$program" search --index "$folder/$index" "${ten[@]}" --out "$folder/expected" --force \
        --quiet "$@"
}

# finds WHAT RANKS OPTIONS...: the same bytes by tags.
finds() {
    local what=$1 ranks=$2
    shift 2
    check "$what, $ranks ranks, $*" on "$ranks" search "${ten[@]}" --out "$folder/found" --force --quiet \
        --query-tags "$tags/query.spmat" "$@"
    check "$what, $ranks ranks, $*: the same bytes" cmp "$folder/expected" "$folder/found"
}

codes=("flat|--bits 2" "raw|--codec raw" "lists|--bits 2 --lists 20")
for code in "${codes[@]}"; do
    IFS='|' read -r name how <<<"$code"
    read -ra how <<<"$how"
    check "encode $name" "$program" encode --base "$folder/rows.u8bin" --metric l2 --index "$folder/$name" --shards 3 \
        --calibrate off --tags "$tags/base.spmat" --quiet "${how[@]}"
    search=()
    [[ $name != lists ]] || search=(--probe 5)
    expect "$name" --allow "$tags/masks.npy" "${search[@]}"
    finds "$name" 1 --index "$folder/$name" "${search[@]}"
    finds "$name" "$most_ranks" --index "$folder/$name" "${search[@]}" --batch 7
    if [[ -e $emulated && $name != raw ]]; then
        check "$name, emulated" "$emulated" search --index "$folder/$name" "${ten[@]}" --out "$folder/found" --force \
            --quiet --query-tags "$tags/query.spmat" "${search[@]}" --device emulated
        check "$name, emulated: the same bytes" cmp "$folder/expected" "$folder/found"
    fi
done
expect raw --within 150000 --allow "$tags/masks.npy"
finds "within" "$most_ranks" --index "$folder/raw" --within 150000 --batch 9
"$program" info "$folder/raw" >"$folder/info"
check "info says that there are tags" grep -q 'rows have tags' "$folder/info"
check "verify" "$program" verify "$folder/lists" --quiet

# The truth by tags is that by masks, and eval knows that both are of the same rows.
check "truth by masks" "$program" groundtruth --base "$folder/rows.u8bin" "${ten[@]}" --metric l2 --out "$folder/truth" \
    --allow "$tags/masks.npy" --quiet
check "truth by tags" on "$most_ranks" groundtruth --base "$folder/rows.u8bin" "${ten[@]}" --metric l2 \
    --out "$folder/tagged" --tags "$tags/base.spmat" --query-tags "$tags/query.spmat" --quiet
check "the same bytes" cmp "$folder/truth" "$folder/tagged"
check "raw" "$program" search --index "$folder/raw" "${ten[@]}" --query-tags "$tags/query.spmat" --out "$folder/exact" \
    --quiet
check "raw: the truth" cmp "$folder/truth" "$folder/exact"
check "eval" "$program" eval --results "$folder/exact" --groundtruth "$folder/tagged"

# Generations: rows in two parts have the answers of the whole; of every other row those of the masks of these.
{ printf '\xe8\x03\0\0' && head -c $((8 + rows * 64)) "$folder/rows.u8bin" | tail -c +5; } >"$folder/first.u8bin"
check "encode half" "$program" encode --base "$folder/first.u8bin" --metric l2 --codec raw --index "$folder/living" \
    --tags "$tags/first.spmat" --copy-vectors --quiet
refused 2 'its rows have tags: give --tags for new ones' "$program" append --index "$folder/living" \
    --base "$folder/rows.u8bin" --rows 1000: --quiet
refused 2 'tags of 2000 rows, there are 1000' "$program" append --index "$folder/living" --base "$folder/rows.u8bin" \
    --rows 1000: --tags "$tags/base.spmat" --quiet
check "append" "$program" append --index "$folder/living" --base "$folder/rows.u8bin" --rows 1000: \
    --tags "$tags/second.spmat" --copy-vectors --quiet
expect raw --allow "$tags/masks.npy"
finds "two parts" "$most_ranks" --index "$folder/living"
"$python" -c 'print(*range(1, 2000, 2))' >"$folder/odd.txt"
check "delete" "$program" delete --index "$folder/living" --rows "$folder/odd.txt" --quiet
check "by masks" "$program" search --index "$folder/living" "${ten[@]}" --allow "$tags/masks.npy" --out "$folder/expected" \
    --force --quiet
finds "half of them deleted" 1 --index "$folder/living"
check "compact" "$program" compact --index "$folder/living" --keep 0 --quiet
check "by masks" "$program" search --index "$folder/living" "${ten[@]}" --allow "$tags/live.npy" --out "$folder/expected" \
    --force --quiet
finds "compacted" 1 --index "$folder/living"
check "the first part's tags are gone" test ! -e "$folder/living/rows.tags"

# wrong FILE PATTERN
wrong() {
    refused 65 "$2" "$program" search --index "$folder/raw" "${ten[@]}" --query-tags "$tags/$1" --out "$folder/no" --quiet
    if [[ -e $folder/no ]]; then fail "$1: a result"; else pass; fi
}
wrong short.spmat 'short.spmat: no sparse matrix: its header says 40 rows, 60 tags'
wrong empty.spmat 'no sparse matrix: its header says 0 rows'
wrong few_tags.spmat 'few_tags.spmat: 59 tags, rows have 60'
wrong few_queries.spmat 'tags of 39 queries, there are 40'
wrong falls.spmat 'entries of row [0-9]+ are'
wrong high.spmat 'has tag 60: there are 60'
refused 65 'no sparse matrix' "$program" encode --base "$folder/rows.u8bin" --metric l2 --index "$folder/no" \
    --tags "$tags/short.spmat" --quiet
refused 2 'tags of 1000 rows, there are 2000' "$program" encode --base "$folder/rows.u8bin" --metric l2 \
    --index "$folder/no" --tags "$tags/first.spmat" --quiet
check "an index without tags" "$program" encode --base "$folder/rows.u8bin" --metric l2 --index "$folder/bare" --quiet
refused 2 'bare: its rows have no tags: encode --tags gives some' "$program" search --index "$folder/bare" "${ten[@]}" \
    --query-tags "$tags/query.spmat" --out "$folder/no" --quiet
refused 2 '^bitsweep: --tags: rows of .*bare have none' "$program" append --index "$folder/bare" \
    --base "$folder/rows.u8bin" --tags "$tags/base.spmat" --quiet
refused 2 'give one of them' "$program" search --index "$folder/raw" "${ten[@]}" --query-tags "$tags/query.spmat" \
    --allow "$tags/masks.npy" --out "$folder/no" --quiet
refused 2 'go together' "$program" groundtruth --base "$folder/rows.u8bin" "${ten[@]}" --metric l2 --out "$folder/no" \
    --query-tags "$tags/query.spmat" --quiet
printf 'x' | dd of="$folder/raw/rows.tags" bs=1 seek=300 conv=notrunc status=none
refused 65 'rows.tags: is damaged' "$program" search --index "$folder/raw" "${ten[@]}" --query-tags "$tags/query.spmat" \
    --out "$folder/no" --quiet
rm "$folder/raw/rows.tags"
refused 65 'rows.tags: missing from the index' "$program" search --index "$folder/raw" "${ten[@]}" \
    --query-tags "$tags/query.spmat" --out "$folder/no" --quiet

finish
