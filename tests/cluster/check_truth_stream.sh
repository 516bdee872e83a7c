#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# groundtruth as a stream: the same bytes for any ranks and blocks, --exclude-self, --split, and ids beyond 2^31.
# usage: check_truth_stream.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_ranks 3 8

# check WHAT COMMAND: passes if it succeeds.
check() {
    local what=$1
    shift
    if "$@" >"$folder/output" 2>&1; then pass; else complain "$what" "$folder/output"; fi
}

# truth OUT ARGUMENTS: on one rank.
truth() {
    local out=$1
    shift
    "$program" groundtruth "$@" --out "$folder/$out" --force --quiet
}

# ids FILE K: a line a query.
ids() {
    od -An -v -t d4 -j 8 -w$((4 * $2)) "$1" | head -n "$3"
}

"$(dirname "$program")/tests/identity_data" write "$folder"

# ---- ranks and blocks ----

turn=0
for type in fbin u8bin; do
    for metric in l2 ip cosine; do
        arguments=(--base "$folder/base.$type" --queries "$folder/query.$type" --metric "$metric" --k 150
            --drop-bad-rows)
        truth expected "${arguments[@]}"
        block=$((7 + turn * 31)) ranks=${ranks_axis[$(((turn + turn / 3) % ${#ranks_axis[@]}))]}
        dropped=0
        if [[ $type-$metric = u8bin-cosine ]]; then dropped=45; fi # on several ranks
        check "$type, $metric, $ranks ranks, blocks of $block" "$run" -n "$ranks" groundtruth \
            "${arguments[@]}" --block-rows "$block" --out "$folder/found" --force --json
        cp "$folder/output" "$folder/facts"
        check "$type, $metric, $ranks ranks: dropped rows" grep -q "\"dropped_rows\": $dropped," "$folder/facts"
        check "$type, $metric, $ranks ranks, blocks of $block: the same bytes" \
            cmp "$folder/expected" "$folder/found"
        turn=$((turn + 1))
    done
done

# ---- a row is no neighbour of itself ----

# without_self K FIRST COUNT: of the k + 1 best of row FIRST and those behind it, the k that are another row.
without_self() {
    ids "$folder/all" $(($1 + 1)) "$3" | awk -v k="$1" -v self="$2" '{
        kept = 0
        for (i = 1; i <= NF && kept < k; i++) if ($i != self) printf " %d%s", $i, ++kept == k ? "\n" : ""
        self++
    }'
}

# A corpus in which most rows have copies, whose place before or after them ids decide.
for type in fbin u8bin; do
    arguments=(--base "$folder/base.$type" --rows 100:900 --queries "$folder/base.$type" --metric l2)
    truth all "${arguments[@]}" --query-rows 90:300 --k 9
    for ranks in 1 "${ranks_axis[1]:-1}"; do
        check "$type, $ranks ranks, --exclude-self" "$run" -n "$ranks" groundtruth "${arguments[@]}" \
            --query-rows 90:300 --k 8 --exclude-self --out "$folder/others" --force --quiet
        check "$type, $ranks ranks: the facts say so" grep -q '"exclude_self": true' "$folder/others.json"
        check "$type, $ranks ranks: all rows but oneself" \
            cmp <(without_self 8 90 210) <(ids "$folder/others" 8 210 | awk '{for (i = 1; i <= NF; i++)
                printf " %d%s", $i, i == NF ? "\n" : ""}')
    done
done
# refuse_k PATTERN ARGUMENTS: exit code 2, one line, and no file but the journals' folder is there.
refuse_k() {
    local pattern=$1 code=0
    shift
    mkdir "$folder/none"
    "$run" -n "${ranks_axis[1]:-1}" groundtruth "$@" --metric l2 --out "$folder/none/truth" --quiet \
        >"$folder/line" 2>&1 || code=$?
    check "$pattern: exit code $code" test $code = 2
    check "$pattern: one line" test "$(wc -l <"$folder/line")" = 1
    check "$pattern: says so" grep -q -- "$pattern" "$folder/line"
    check "$pattern: nothing is left" rmdir "$folder/none"
}
tiny=(--base "$folder/tiny.fbin" --queries "$folder/tiny.fbin")
truth others "${tiny[@]}" --metric l2 --k 12 --exclude-self
check "of 13 rows 12 are others" test "$(ids "$folder/others" 12 13 | awk '{n += NF} END {print n}')" = 156
refuse_k '--k 13: .*tiny.fbin has 13 rows only, one of them the query$' "${tiny[@]}" --k 13 --exclude-self
# Queries that are no rows of the base exclude nothing.
truth others "${tiny[@]}" --rows 0:9 --query-rows 9:13 --metric l2 --k 9 --exclude-self
refuse_k '--k 9: .*has 9 rows only, one of them the query$' "${tiny[@]}" --rows 0:9 --query-rows 8:13 --k 9 \
    --exclude-self
# Rows that are dropped are known at the end, when there are lists, and journals of them.
cp "$folder/tiny.fbin" "$folder/bad.fbin"
dims=$(od -An -t u4 -j 4 -N 4 "$folder/bad.fbin" | tr -d ' ')
for row in 3 7; do
    printf '\x00\x00\xc0\x7f' |
        dd of="$folder/bad.fbin" bs=1 seek=$((8 + 4 * row * dims)) conv=notrunc status=none # NaN
done
bad=(--base "$folder/bad.fbin" --queries "$folder/tiny.fbin" --drop-bad-rows --block-rows 2)
export BITSWEEP_JOURNAL_SECONDS=0
truth others "${bad[@]}" --metric l2 --k 11
refuse_k '--k 12: .*bad.fbin has 13 rows only, 2 of them dropped$' "${bad[@]}" --k 12
refuse_k '--k 11: .*has 13 rows only, 2 of them dropped, one of them the query$' "${bad[@]}" --k 11 --exclude-self
refuse_k '--k 12: .*, 2 of them dropped$' "${bad[@]}" --k 12 --resume
unset BITSWEEP_JOURNAL_SECONDS

# ---- files for cuvs-bench ----

check "--split" "$program" groundtruth --base "$folder/base.fbin" --queries "$folder/query.fbin" --metric l2 \
    --k 10 --split --out "$folder/split" --quiet
bytes=$((19 * 10 * 4))
check "its ids" cmp <(head -c $((8 + bytes)) "$folder/split") "$folder/split.neighbors.ibin"
check "its distances" cmp <(head -c 8 "$folder/split" && tail -c "$bytes" "$folder/split") \
    "$folder/split.distances.fbin"
rm "$folder/split"
code=0
"$program" groundtruth --base "$folder/base.fbin" --queries "$folder/query.fbin" --metric l2 --split \
    --out "$folder/split" --quiet >"$folder/line" 2>&1 || code=$?
check "an older one is kept" test "$code" = 2
check "and named" grep -q 'split.neighbors.ibin: exists' "$folder/line"

# ---- ids beyond 2^31 ----

rows=synth:count=6G,dims=9
first=4999999990
truth wide --base "$rows" --rows $first:$((first + 200)) --queries "$rows" \
    --query-rows $((first + 50)):$((first + 53)) --metric l2 --k 2 --block-rows 33
check "each is its own nearest" test \
    "$(od -An -v -t d8 -j 16 -w16 "$folder/wide" | head -n 3 | awk '{printf "%s ", $1}')" \
    = "$((first + 50)) $((first + 51)) $((first + 52)) "
code=0
"$program" groundtruth --base "$rows" --rows $first:$((first + 200)) --queries "$rows" --query-rows 0:1 \
    --metric l2 --split --out "$folder/none" --quiet >"$folder/line" 2>&1 || code=$?
check "--split has no such ids" test "$code" = 2

finish
