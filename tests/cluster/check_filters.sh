#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Searches of some rows alone: for every codec, with lists and without, the bytes of a search of all
# rows of which those were left out that the mask has not, for any ranks, shards, threads, batches
# and an emulated device, one mask of all queries or one a query; every format of --allow; a search
# of some lists that finds as much as without a filter; ground truth of the same rows, which eval
# compares with no others; a resumed search has the same mask; what is wrong is refused.
# usage: check_filters.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
# shellcheck source=tests/cluster/few_rows.sh
. "$(dirname "$0")/few_rows.sh"
find_python
find_ranks 3
most_ranks=${ranks_axis[-1]}
masks=$folder/masks

mkdir "$masks"
check "masks" "$python" "$2/tests/cluster/filter_masks.py" make "$masks" $rows $num_queries
asked=(--queries "$folder/queries.u8bin") ten=(--queries "$folder/queries.u8bin" --k 10)

# find NAME OUT OPTIONS...
find() {
    local name=$1 out=$2
    shift 2
    "$program" search --index "$folder/$name" "${ten[@]}" --out "$folder/$out" --force --quiet "$@"
}

# expect NAME MASK OPTIONS...: $folder/expected, of a search of all rows.
expect() {
    local name=$1 mask=$2
    shift 2
    check "$name: all rows" "$program" search --index "$folder/$name" "${asked[@]}" --k $rows --out "$folder/all" \
        --force --quiet "$@"
    check "$name: rows that the mask has" "$python" "$source/tests/cluster/filter_masks.py" filter "$folder/all" \
        "$masks/$mask.npy" 10 "$folder/expected"
}

# finds WHAT RANKS OPTIONS...: the bytes of $folder/expected.
finds() {
    local what=$1 ranks=$2
    shift 2
    check "$what, $ranks ranks, $*" on "$ranks" search "${ten[@]}" --out "$folder/found" --force --quiet "$@"
    check "$what, $ranks ranks, $*: the same bytes" cmp "$folder/expected" "$folder/found"
}

# on_device WHAT OPTIONS...
on_device() {
    local what=$1
    shift
    [[ -e $emulated ]] || return 0
    check "$what, emulated" "$emulated" search "${ten[@]}" --out "$folder/found" --force --quiet \
        --device emulated "$@"
    check "$what, emulated: the same bytes" cmp "$folder/expected" "$folder/found"
}

source=$2
turn=0
for code in "${codes[@]}"; do
    encode_code "$code"
    for mask in some few stretch each; do
        expect "$name" "$mask" "${search[@]}"
        what="$name, $mask"
        here=(--index "$folder/$name" --allow "$masks/$mask.npy" "${search[@]}")
        finds "$what" 1 "${here[@]}" --threads 1
        if ((turn % 2)); then finds "$what" "$most_ranks" "${here[@]}" --threads 2 --batch 7; fi
        if ((turn % 3 == 0)) && [[ $name != raw_lists ]]; then on_device "$what" "${here[@]}" --batch 16; fi
        turn=$((turn + 1))
    done
done

# Selections and scans of one codec.
for search in "--select histogram --extra-distance 4" "--scan planes" "--scan matrix"; do
    read -ra search <<<"$search"
    "$program" search --index "$folder/xfbq" "${ten[@]}" --allow "$masks/some.npy" --out "$folder/expected" \
        --force --quiet "${search[@]}"
    finds "xfbq" "$most_ranks" --index "$folder/xfbq" --allow "$masks/some.npy" --batch 9 "${search[@]}"
    on_device "xfbq" --index "$folder/xfbq" --allow "$masks/some.npy" "${search[@]}"
done

# Refined candidates are the exact neighbours of allowed rows, of which there are 100 here.
expect raw some
finds "refined" 1 --index "$folder/saq" --allow "$masks/some.npy" --oversample 30

# Formats.
expect raw some
for file in ids_int32.npy ids_int64.npy ids_uint32.npy ids_uint64.npy ids_column.npy ids.u32bin ids.ivecs column.ivecs; do
    finds "$file" 1 --index "$folder/raw" --allow "$masks/$file"
done

# refused_by FILE PATTERN
refused_by() {
    refused "${3:-65}" "$2" find raw out --allow "$masks/$1"
}
refused_by bad_high.npy 'bad_high.npy: id 2000: ids are 0 to 1999'
refused_by bad_negative.npy 'id -1: ids are 0 to 1999'
refused_by bad_huge.npy 'id 18446744073709551615: ids are'
refused_by bad_rows.npy 'bad_rows.npy: one mask of 1999 rows: there are 2000 rows'
refused_by bad_masks.npy '39 masks of 2000 rows: .* one for each of the 40 queries'
refused_by bad_type.npy "type '<f4': bool"
refused_by bad_ids.npy '2 x 3 ids: must be one row or one column'
refused_by bad_order.npy 'Fortran order'
refused_by bad_short.npy 'bytes, its header says'
refused_by bad.u32bin '16 bytes, its header says 28'
refused_by bad.ivecs 'no whole records of 3 ids'
refused_by bad.txt 'must end in .npy, .u32bin or .ivecs' 2
refused_by missing.npy 'missing.npy' 74

# Some lists: what queries may find is found about as well as all rows are, also where it is elsewhere.
recall_of() {
    "$program" eval --results "$folder/$1" --groundtruth "$folder/truth" --k 10 --json |
        sed -nE 's/.*"10-recall@10": ([0-9.]+).*/\1/p'
}
check "truth of all" "$program" groundtruth --base "$folder/rows.u8bin" "${ten[@]}" --metric l2 --out "$folder/truth" \
    --quiet
find raw_lists out --probe 4
all=$(recall_of out)
for mask in some stretch each; do
    check "truth, $mask" on "$most_ranks" groundtruth --base "$folder/rows.u8bin" "${ten[@]}" --metric l2 \
        --out "$folder/truth" --allow "$masks/$mask.npy" --force --quiet
    find raw out --allow "$masks/$mask.npy"
    check "truth, $mask: as codec raw finds it" cmp "$folder/truth" "$folder/out"
    find raw_lists out --probe 4 --allow "$masks/$mask.npy"
    check "recall, $mask: $(recall_of out), at least $all" awk -v a="$(recall_of out)" -v b="$all" \
        'BEGIN {exit !(a >= b - 0.03)}'
    cp "$folder/out" "$folder/expected"
    finds "some lists, $mask" "$most_ranks" --index "$folder/raw_lists" --probe 4 --allow "$masks/$mask.npy" --batch 11
    find saq_lists expected --probe 4 --allow "$masks/$mask.npy"
    on_device "some lists, $mask" --index "$folder/saq_lists" --probe 4 --allow "$masks/$mask.npy"
done

# What was found among other rows is not compared, nor gone on with.
find raw out
refused 2 'not of the same rows: give both the same --allow' "$program" eval --results "$folder/out" \
    --groundtruth "$folder/truth"
find raw out --allow "$masks/some.npy"
refused 2 'not of the same rows' "$program" eval --results "$folder/out" --groundtruth "$folder/truth"

finish
