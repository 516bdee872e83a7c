#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# eval: recalls of results made by hand, by ids and with ties, of exact values and of those written in
# the files, among rows so near that floats do not tell them apart; files that are not of the same
# search are refused.
# usage: check_eval.sh BITSWEEP_BINARY SOURCE_FOLDER
# ctest labels: asan
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
tests=$(dirname "$program")/tests
needs "$tests/brute_force" "$tests/hostile_rows"
cd "$folder"

# ---- files made by hand ----

# uint32 NUMBER...: little-endian; -1 also is an id.
uint32() {
    local n
    for n; do
        # shellcheck disable=SC2059
        printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((n & 255)) $((n >> 8 & 255)) $((n >> 16 & 255)) \
            $((n >> 24 & 255)))"
    done
}

# float32 NUMBER...: whole, 1 to 2^25 and even above 2^24.
float32() {
    local n exponent
    for n; do
        exponent=0
        while ((n >> (exponent + 1))); do exponent=$((exponent + 1)); done
        uint32 $(((127 + exponent) << 23 | (n << 23 >> exponent & 0x7fffff)))
    done
}

# neighbours FILE K "IDS" "VALUES": a result or a truth of one query or more.
neighbours() {
    local ids values
    read -ra ids <<<"$3"
    read -ra values <<<"$4"
    { uint32 $((${#ids[@]} / $2)) "$2" "${ids[@]}" && float32 "${values[@]}"; } >"$1"
}

# repeat COUNT NUMBER
repeat() {
    local i
    for ((i = 0; i < $1; i++)); do echo "$2"; done | tr '\n' ' '
}

# eval_of RESULT TRUTH OPTIONS...: into text and json, which must be had without a word on stderr.
eval_of() {
    check "eval $*" "$program" eval --results "$1" --groundtruth "$2" "${@:3}"
    mv stdout text
    check "eval $* --json" "$program" eval --results "$1" --groundtruth "$2" "${@:3}" --json
    mv stdout json
}

# recall NAME SHARE [SHARE_WITH_TIES]: what eval said; a share with ties is said where it is another.
recall() {
    check "$1 $2" grep -qE "^$1 +$2\$" text
    check "$1 $2 in JSON" test "$(share recalls "$1")" = "$2"
    if (($# < 3)); then
        check "$1 has no share with ties" test -z "$(share recalls_with_ties "$1")$(grep 'with ties  *[01]' text || true)"
        return
    fi
    check "$1 with ties $3 in JSON" test "$(share recalls_with_ties "$1")" = "$3"
    if [[ $2 == "$3" ]]; then
        check "$1 is said once" test "$(grep -c "^$1 " text)" = 1
    else
        check "$1 with ties $3" grep -qE "^$1 with ties +$3\$" text
    fi
}

# share OBJECT NAME: as text has it.
share() {
    sed -n "/^  \"$1\": {/,/}/s/^ *\"$2\": \([0-9.]*\),\{0,1\}\$/\1/p" json | while read -r number; do
        printf '%.4f\n' "$number"
    done
}

says() {
    check "JSON says $*" json_says json "$@"
}

# ---- near rows: ip of row i is 799 * 255 * 255 + i, which floats round to multiples of 4 ----

row() { # LAST: 800 bytes
    cat ones
    # shellcheck disable=SC2059
    printf "\\x$(printf %02x "$1")"
}
head -c 799 /dev/zero | tr '\0' '\377' >ones
# Rows 256 and 257 are copies of 206, the 50th best, and of 0.
{ uint32 258 800 && for ((i = 0; i < 256; i++)); do row $i; done && row 206 && row 0; } >base.u8bin
{ uint32 1 800 && row 1; } >q.u8bin
least=$((799 * 255 * 255))
# written FIRST LAST: the values of rows FIRST down to LAST, rounded, halves to a multiple of 8.
written() {
    local value
    for ((value = least + $1; value >= least + $2; value--)); do
        echo $((value % 8 == 2 ? value - 2 : (value + 2) / 4 * 4))
    done | tr '\n' ' '
}
neighbours truth 50 "$(seq -s ' ' 255 -1 206)" "$(written 255 206)"
with_rows=(--base base.u8bin --queries q.u8bin --metric ip)

# The best row and 49 that are not true, all within 1e-6 of the 50th.
neighbours near 50 "255 $(seq -s ' ' 205 -1 157)" "$(written 255 255) $(written 205 157)"
eval_of near truth
recall 50-recall@50 0.0200
says '"ties": "none"' '"ties_counted": 0'
eval_of near truth "${with_rows[@]}"
recall 50-recall@50 0.0200 0.0200
recall 1-recall@50 1.0000 1.0000
says '"ties": "exact"' '"ties_counted": 0'
# Rows 204 and 205 have the float of row 206, the 50th; its copy, 256, has its exact value.
eval_of near truth --ties
recall 50-recall@50 0.0200 0.0600
says '"ties": "written"' '"ties_counted": 2'

neighbours rounded 50 "$(seq -s ' ' 255 -1 207) 205" "$(written 255 207) $(written 205 205)"
neighbours copied 50 "$(seq -s ' ' 255 -1 207) 256" "$(written 255 207) $(written 206 206)"
eval_of rounded truth --ties
recall 50-recall@50 0.9800 1.0000
says '"ties_counted": 1'
eval_of rounded truth "${with_rows[@]}"
recall 50-recall@50 0.9800 0.9800
eval_of copied truth "${with_rows[@]}"
recall 50-recall@50 0.9800 1.0000
says '"ties_counted": 1'
check "its text says which ties count" grep -q 'by ids; with ties 1 more count, of the same exact value' text
eval_of copied truth
recall 50-recall@50 0.9800
says '"ties_counted": 0'

# ---- wider than k, two queries, many ties ----

neighbours wide 8 "0 10 11 1 12 13 14 15  20 5 21 22 1 0 2 -1" "9 7 7 8 7 7 7 7  9 6 7 7 8 9 7 5"
neighbours three 5 "0 1 2 3 4  0 1 2 3 4" "9 8 7 6 5  9 8 7 6 5"
eval_of wide three --k 3 --ties
recall 3-recall@3 0.1667 0.6667 # 1 of 3 and two tie; 0 of 3 and one ties
recall 3-recall@8 0.8333 1.0000 # 2 of 3 and six tie, one of which counts; all
recall 1-recall@3 0.5000 1.0000
recall 1-recall@8 1.0000 1.0000
says '"ties_counted": 1'
eval_of wide three --k 3
recall 3-recall@3 0.1667
eval_of wide three --k 1
recall 1-recall@1 0.5000
recall 1-recall@8 1.0000
eval_of wide three
recall 5-recall@5 0.3000
recall 5-recall@8 0.5000

# Cosines of integers: a row and its multiples are equally near. The 40th of many such against the first.
"$tests/hostile_rows" scaled 600 20 37 many.u8bin ask.u8bin
multiples=("$program" groundtruth --base many.u8bin --queries ask.u8bin --metric cosine --quiet)
"${multiples[@]}" --k 1 --out nearest
"${multiples[@]}" --k 40 --out forty
{
    uint32 20 1
    for id in $(od -An -v -td4 -w4 -j 8 -N 3200 forty | awk 'NR % 40 == 0'); do uint32 "$id"; done
    tail -c 80 nearest
} >fortieth
eval_of fortieth nearest --base many.u8bin --queries ask.u8bin
recall 1-recall@1 0.0000 1.0000

# ---- what cannot be told ----

# refuse CODE PATTERN ARGUMENTS
refuse() {
    refused "$1" "$2" "$program" eval "${@:3}"
}
{ uint32 50 && uint32 $(seq 255 -1 206); } >ids.ivecs
refuse 2 '--ties: ids.ivecs has no values; --base' --results near --groundtruth ids.ivecs --ties
refuse 2 '--base needs --metric' --results near --groundtruth truth --base base.u8bin --queries q.u8bin
eval_of near ids.ivecs "${with_rows[@]}"
recall 50-recall@50 0.0200 0.0200
neighbours beyond 50 "$(seq -s ' ' 307 -1 258)" "$(repeat 50 7)"
refuse 65 'beyond: query 0 has id 307, base.u8bin has 258 rows' --results beyond --groundtruth truth "${with_rows[@]}"
refuse 65 'beyond: query 0 has id 307' --results near --groundtruth beyond "${with_rows[@]}"

# ---- what the files say of themselves ----

"$program" synth --count 400 --dims 16 --out v.fbin --queries 30 --queries-out w.fbin --quiet
truth_of() { # FILE METRIC OPTIONS...
    "$program" groundtruth --base v.fbin --queries w.fbin --metric "$2" --out "$1" --quiet "${@:3}"
}
"$program" encode --base v.fbin --metric l2 --index i --quiet
search=("$program" search --index i --k 10 --quiet --out)
"${search[@]}" r --queries w.fbin
"${search[@]}" r.code --queries w.fbin --refine none
truth_of t l2
check "the digest of the queries is kept" test "$(grep -c '"queries_digest": "[0-9a-f]\{16\}"' r.json)" = 1
check "search and groundtruth keep the same" cmp <(grep -E 'first_query|digest' r.json) <(grep -E 'first_query|digest' t.json)

# differs PATTERN TRUTH RESULT OPTIONS...: refused, and taken with --force
differs() {
    refuse 2 "$1" --groundtruth "$2" --results "$3" "${@:4}"
    check "--force: $1" "$program" eval --groundtruth "$2" --results "$3" "${@:4}" --force
}
truth_of t.ip ip
truth_of t.rows l2 --rows 0:399
truth_of t.late l2 --rows 1:400
truth_of t.self l2 --exclude-self
truth_of t.part l2 --query-rows 0:20
"${search[@]}" r.part --queries w.fbin --query-rows 10:30
differs '^bitsweep: r has metric l2, t.ip has ip; --force' t.ip r
differs 'r covers rows 0:400, t.rows 0:399; --force' t.rows r
differs 'r covers rows 0:400, t.late 1:400; --force' t.late r
differs 't.self was made with --exclude-self, r without; --force' t.self r
differs 'r.part starts at query row 10, t.part at 0; --force' t.part r.part
"$program" convert --in w.fbin --out w.npy --type float32 --quiet
cp w.fbin other.fbin
flip other.fbin -1
"${search[@]}" r_npy --queries w.npy
"${search[@]}" r.other --queries other.fbin
check "a digest is of numbers, in any format" "$program" eval --results r_npy --groundtruth t
differs 'r.other and t have different queries .digests [0-9a-f]{16}, [0-9a-f]{16}.; --force' t r.other
differs 'other.fbin and r have different queries .*; --force uses' t r --base v.fbin --queries other.fbin
differs '--metric ip: the files say l2; --force' t r --base v.fbin --queries w.fbin --metric ip
refuse 65 'r has 30 queries, t.part has 20' --results r --groundtruth t.part --force
refuse 2 '--ties: r.code has estimates .refine none.; --base' --results r.code --groundtruth t --ties
check "estimates and the rows" "$program" eval --results r.code --groundtruth t --base v.fbin --queries w.fbin

# Estimates that no value can have, of queries that are rows: 0 and 1 are what they are written as.
values_of() { # FILE QUERIES K
    od -An -v -tf4 -w4 -j $((8 + 4 * $2 * $3)) "$1"
}
for metric in l2 cosine; do
    "$program" encode --base v.fbin --metric $metric --bits 2 --index own --force --quiet
    "$program" search --index own --queries v.fbin --k 10 --refine none --out own.$metric --quiet
done
check "no estimated distance is below 0" test "$(values_of own.l2 400 10 | awk '$1 < 0' | wc -l)" = 0
check "some are 0" test "$(values_of own.l2 400 10 | awk '$1 == 0' | wc -l)" -gt 10
check "no estimated cosine is beyond 1" test "$(values_of own.cosine 400 10 | awk '$1 > 1 || $1 < -1' | wc -l)" = 0
check "some are 1" test "$(values_of own.cosine 400 10 | awk '$1 == 1' | wc -l)" -gt 10

# Places of a search that no row is left for: a row of 400 is dropped.
cp v.fbin broken.fbin
put broken.fbin 8 '\0\0\xc0\x7f'
"$program" encode --base broken.fbin --metric l2 --index broken --drop-bad-rows --quiet
check "a search for all rows" "$program" search --index broken --queries w.fbin --k 400 --out all
cp stdout said
check "says what stayed empty" grep -q '^30 places stayed empty (id -1)' said
check "a search with an answer at each place" "$program" search --index broken --queries w.fbin --k 399 --out most
check "says nothing" test "$(grep -c 'stayed empty' stdout || true)" = 0

# What is not said is not compared: older files, and those of others.
for name in t t.self t.rows; do
    sed -e '/first_query/d' -e '/digest/d' "$name.json" >"old.$name.json"
    cp "$name" "old.$name"
    cp "$name" "bare.$name"
done
check "an older truth" "$program" eval --results r.other --groundtruth old.t
refuse 2 'covers rows' --results r --groundtruth old.t.rows
for name in bare.t.self bare.t.rows; do
    check "a truth that says nothing" "$program" eval --results r --groundtruth "$name"
done

# ---- a ground truth that is none ----

with_v=(--base v.fbin --queries w.fbin --metric l2)
eval_of r t "${with_v[@]}"
check "an exact truth has no nearer rows" grep -q '"nearer_rows": 0' json
check "and nobody speaks of them" test "$(grep -cE 'nearer|repeats|no neighbour' text || true)" = 0
"$tests/brute_force" scale v.fbin scaled.fbin 1
scaled=(--base scaled.fbin --queries w.fbin --k 10)
"$program" groundtruth "${scaled[@]}" --metric ip --out other.metric --quiet
"$program" groundtruth "${scaled[@]}" --metric l2 --rows 0:200 --out other.rows --quiet
"$program" groundtruth "${scaled[@]}" --metric l2 --out larger --quiet
rm other.metric.json other.rows.json larger.json # that say nothing of it
"$program" encode --base scaled.fbin --metric l2 --index scaled --quiet
"$program" search --index scaled --queries w.fbin --k 10 --out found --quiet
for name in other.metric other.rows; do
    eval_of found $name --base scaled.fbin --queries w.fbin
    check "$name: nearer rows are said" grep -qE \
        '^[1-9][0-9]* returned rows are nearer than the last true neighbour and not in the truth .of [0-9]+ queries' text
    check "$name: in JSON" grep -qE '"nearer_queries": [1-9]' json
done
{
    uint32 30 10
    for id in $(od -An -v -td4 -w4 -j 8 -N 1200 larger |
        awk 'NR % 10 == 0 {print -1; next} NR % 10 == 2 {print last; next} {print last = $1}'); do uint32 "$id"; done
    tail -c 1200 larger
} >short
eval_of found short
check "empty places are said" grep -q '^30 places of the truth have no neighbour (id -1): they count as missed$' text
check "repeated ids are said" grep -q '^the truth repeats 30 ids within a query' text
add_to_ids larger 5 400
refuse 65 'larger: query 0 has id [4-7][0-9]{2}, found covers rows 0:400; --force' --results found --groundtruth larger
check "--force compares them" "$program" eval --results found --groundtruth larger --force

# A part of a result, written by convert, says which, and no longer the digest of all.
"$program" convert --in t --out t.cut --rows 10:30 --quiet
check "a part of a truth" "$program" eval --results r.part --groundtruth t.cut
"$program" convert --in r --out r.cut --rows 5:25 --quiet
refuse 2 'r.cut starts at query row 5, t.part at 0' --results r.cut --groundtruth t.part

finish
