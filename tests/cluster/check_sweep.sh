#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sweep: passes go on until they can be trusted; losses add up and are those of searches made by hand, of every codec and selection; stopped,
# killed and resumed, on one rank and two, it has the rows of an undisturbed run in all but times, and
# does nothing twice; plans; plots and report are there; what it refuses.
# usage: check_sweep.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
tests=$(dirname "$program")/tests
needs "$tests/brute_force"
cd "$folder"
export OMP_NUM_THREADS=1

"$program" synth --count 3000 --dims 32 --clusters 20 --out base.fbin --queries 40 --queries-out q.fbin --quiet
common=(--base base.fbin --queries q.fbin --metric cosine --query-bits 4 --repeat 1 --measure 0 --items 16)
grid=(--codec "xfbq,saq,rbe" --bits "1.5,2" --k 5 --oversample "1,4" --select "threshold,queue")

# column FILE NAME: that column, a line a row.
column() {
    awk -F, -v name="$2" 'NR == 1 {for (i = 1; i <= NF; i++) if ($i == name) c = i; next} {print $c}' "$1"
}

# same_rows A B: but for times, memory and what follows from them.
same_rows() {
    local name
    for name in algorithm parameters index_name dataset bits true_bits lists residual query_bits select extra_distance count \
        oversample candidates probe probe_ratio lists_a_query rows_a_query recall recall_counts ceiling selected \
        loss_code loss_selection loss_refinement bytes_per_vector indexsize; do
        cmp <(column "$1" $name) <(column "$2" $name) || return 1
    done
}

# ---- the whole grid ----

check "sweep" "$program" sweep "${common[@]}" "${grid[@]}" --folder a
cp stdout said
check "points of an earlier run are not there to be named" grep -q '^16 points: a/report.html' said
check "what is left out is said" grep -q '^4 points left out: codec xfbq with 1.5 bits' said
check "of rbe, too" grep -q '^4 points left out: codec rbe with 1.5 bits' said
check "32 dims have no 1.5 bits" test "$(paste <(column a/sweep.csv bits) <(column a/sweep.csv true_bits) | sort -u |
    tr '\t\n' '  ')" = "1.5 1 2 2 "
check "encode, 1.5 bits" "$program" encode --base base.fbin --metric cosine --bits 1.5 --index one
cp stdout said.encode
check "encode says so" grep -q '^bits: 1 a dimension, not 1.5: groups of 32 of the 32 dims take whole bits$' \
    said.encode
check "encode, 1 bit" "$program" encode --base base.fbin --metric cosine --bits 1 --index one --force
check "which is what was asked for" test "$(grep -c '^bits:' stdout || true)" = 0
check "the table says so" grep -qE '^saq-1.5-q4-k5-x1-threshold +1 +0\.' said
check "the report, too" grep -q '<td>saq-1.5</td><td>1.000</td>' a/report.html
if command -v gnuplot >/dev/null; then
    check "and the plots" grep -q '1 bit/dim' a/sweep-pareto.svg
    check "which know no 1.5" test "$(grep -c '1\.5 bits/dim' a/sweep-pareto.svg || true)" = 0
fi
check "a pass each where no time is asked for" test "$(column a/sweep.csv passes | sort -u)" = 1
check "the kernels that ran are named" grep -q '^searched on: cpu, CPU kernels [a-z]' said
check "more passes, until they took long enough" "$program" sweep --base base.fbin --queries q.fbin --metric cosine --bits 2 \
    --oversample 1 --repeat 1 --folder timed
cp stdout said
check "which are counted" awk "BEGIN {exit !($(column timed/sweep.csv passes) > 1 &&
    $(column timed/sweep.csv cpu_seconds_a_query) > 0 && $(column timed/sweep.csv cores_share) <= 1)}"
check "one point is one point" grep -q '^1 point: timed/report.html' said
check "a recall that is asked for" "$program" sweep --base base.fbin --queries q.fbin --metric cosine --bits 2,6 \
    --oversample 1,5 --measure 0 --repeat 1 --target 0.5,1 --folder asked
grep -A2 -E '^recall 0.5, k 10, fewest bytes' stdout | sed -n 's/^    bitsweep //p' >lines
check "has an encode and a search line" test "$(cut -d' ' -f1 lines | tr '\n' ' ')" = "encode search "
while read -ra line; do check "${line[0]} as the sweep has it" "$program" "${line[@]}"; done <lines
check "eval" "$program" eval --results result --groundtruth asked/groundtruth --json
check "and that recall" grep -q "$(printf '%.4f' "$(python3 -c 'import json
print(json.load(open("asked/sweep.json"))["answers"][0]["fewest_bytes"]["recall"])')")" <("$program" eval --results result \
    --groundtruth asked/groundtruth)
check "1 in the report" grep -q '^<h3>Recall 1, k 10</h3>$' asked/report.html
refused 2 '^bitsweep: --target: 1.5 is no recall' "$program" sweep "${common[@]}" --folder c --target 1.5
check "16 rows" test "$(column a/sweep.csv recall | wc -l)" = 16
check "rbe has the 7 query bits of its model" test "$(column a/sweep.csv parameters | grep -c '^rbe-2-q7-')" = 4
check "one model" test "$(find a -maxdepth 1 -name '*.rbe')" = a/index-rbe-2.rbe

check "train" "$program" train --base base.fbin --metric cosine --code-dims 32 --document-planes 2 --query-planes 7 \
    --model own.rbe
check "the model is the one that train learns" cmp a/index-rbe-2.rbe own.rbe

# losses FILE
losses() {
    paste <(column "$1" recall) <(column "$1" loss_code) <(column "$1" loss_selection) \
        <(column "$1" loss_refinement) <(column "$1" select) | awk '
        {sum = $1 + $2 + $3 + $4; if (sum < 1 - 1e-9 || sum > 1 + 1e-9) exit bad = 1}
        $2 < 0 || $3 < -0.05 || $4 < -1e-9 || $4 > 1e-9 || ($5 == "threshold" && $3 != 0) {exit bad = 1}
        {code += $2; selection += $3}
        END {exit bad || NR == 0 || code == 0 || selection == 0}'
}
# A row that a queue misses makes room for another, by chance a true one: a loss a little below 0.
check "losses add up, none of threshold's selection or of exact refinement, some of the others" losses a/sweep.csv

"$tests/brute_force" truth base.fbin 0:3000 q.fbin 0:40 cosine 5 expected

# ids FILE: of a result, a line a query.
ids() {
    local k
    k=$(od -An -tu4 -j 4 -N 4 "$1" | tr -d ' ')
    od -An -v -td4 -j 8 -N $((40 * k * 4)) -w$((k * 4)) "$1"
}

# by_hand INDEX COLUMNS OPTIONS...: how many of 5 true neighbours such a search has in its first columns, by
# ids alone: the rows have no ties.
swept=a
by_hand() {
    local index=$1 columns=$2 query_bits=(--query-bits 4)
    shift 2
    [[ $index != rbe-* ]] || query_bits=()
    "$program" search --index "$swept/index-$index" --queries q.fbin --out hand --force --quiet "${query_bits[@]}" "$@"
    awk -v columns="$columns" '
        NR == FNR {for (i = 1; i <= 5; i++) is_true[FNR, $i]; next}
        {for (i = 1; i <= columns; i++) found += (FNR, $i) in is_true}
        END {printf "%.4f\n", found / (5 * FNR)}' <(ids expected) <(ids hand)
}

# of INDEX OVERSAMPLE SELECT NAME: a row's value, as eval prints it.
of() {
    local file=a/sweep.csv
    paste <(column $file index_name) <(column $file oversample) <(column $file select) <(column $file "$4") |
        awk -v row="$1 $2 $3" '$1 " " $2 " " $3 == row {printf "%.4f\n", $4}'
}
for index in xfbq-2 saq-1.5 rbe-2; do
    # All rows in the order of their codes: nothing is selected.
    check "ceiling of $index" test "$(of $index 4 queue ceiling)" = \
        "$(by_hand $index 20 --k 3000 --refine none --level reference)"
    check "candidates of $index" test "$(of $index 4 queue selected)" = \
        "$(by_hand $index 20 --k 20 --refine none --select queue --items 16)"
    check "answer of $index" test "$(of $index 4 queue recall)" = \
        "$(by_hand $index 5 --k 5 --oversample 4 --select queue --items 16)"
done
check "the ceiling rises with the candidates" \
    awk "BEGIN {exit !($(of xfbq-2 1 threshold ceiling) < $(of xfbq-2 4 threshold ceiling))}"

check "without bits pq joins" "$program" sweep --base base.fbin --queries q.fbin --metric l2 --k 5 --oversample 1 \
    --repeat 1 --measure 0 --folder usual
check "at its usual bits" test "$(column usual/sweep.csv index_name | tr '\n' ' ')" = "saq-1 saq-2 saq-3 saq-4 pq-8 "
check "recalls of a table" "$program" sweep --base base.fbin --queries q.fbin --metric l2 --k 5 --oversample 1,20 --repeat 1 \
    --measure 0 --codec saq --bits 3 --lists 20 --recall 0.8,0.99 --target 0.01 --folder recalls
cp stdout said
check "what was asked" test "$(column recalls/sweep.csv recall_asked | xargs)" = "0.8 0.99"
check "what a table cannot is said" test "$(grep -c '^1 point left out: recall .* with oversample 1: no search' said)" = 2
# shellcheck disable=SC2016 # awk's own
check "fewer lists" awk -F, 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i; next} $at["lists_a_query"] >= 20 {exit 1}' \
    recalls/sweep.csv
# shellcheck disable=SC2016
check "losses add up" awk -F, 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i; next}
    {d = $at["loss_code"] + $at["loss_selection"] + $at["loss_refinement"] - 1 + $at["recall"]; bad += d * d > 1e-9}
    END {exit bad > 0}' recalls/sweep.csv
check "the line to copy" grep -qE 'search --index index-saq-3-l20 .* --oversample 20 .* --recall 0.(8|99) ' recalls/sweep.json
"$program" search --index recalls/index-saq-3-l20 --queries q.fbin --k 5 --oversample 20 --recall 0.8 --out byhand --quiet
check "by hand the same" test "$("$program" eval --results byhand --groundtruth recalls/groundtruth |
    sed -n 's/^5-recall@5  *//p')" = "$(printf '%.4f' "$(column recalls/sweep.csv recall | head -n 1)")"
refused 2 'no point of the grid is possible: recall 0.99 with oversample 1: no search' "$program" sweep --base base.fbin \
    --queries q.fbin --metric l2 --k 5 --oversample 1 --codec saq --bits 3 --lists 20 --recall 0.99 --folder unreached
check "pq of several sizes" "$program" sweep --base base.fbin --queries q.fbin --metric l2 --k 5 --oversample 1 --repeat 1 \
    --measure 0 --codec pq:8,saq:2 --subspaces 4,8,99 --target 0.01 --folder parts
cp stdout said
check "saq has none" test "$(column parts/sweep.csv index_name | tr '\n' ' ')" = "pq-8-m4 pq-8-m8 saq-2 "
check "a byte each" test "$(column parts/sweep.csv bytes_per_vector | head -n 2 | tr '\n' ' ')" = "4 8 "
check "what cannot be is said" grep -q '^1 point left out: subspaces 99: rows have [0-9]* dims' said
check "the line to copy has them" grep -q 'encode .*--subspaces [48] --index index-pq-8-m' parts/report.html

part=(--base base.fbin --queries base.fbin --metric l2 --k 5 --bits 2 --oversample "1,4" --repeat 1 --measure 0)
check "queries of the corpus" "$program" sweep "${part[@]}" --query-rows 10:40 --folder own
cp stdout said
check "are warned of" grep -q '^warning: 30 queries are rows of the base: ' said
check "rows, queries, and no query among its neighbours" "$program" sweep "${part[@]}" --rows :500 --query-rows 10:40 \
    --exclude-self --folder ofpart --target 0.01
cp stdout said
check "no warning then" test "$(grep -c '^warning' said || true)" = 0
grep -A2 -m 1 ', fewest bytes' said | sed -n 's/^    bitsweep //p' >lines
"$program" groundtruth --base base.fbin --queries base.fbin --metric l2 --k 5 --rows :500 --query-rows 10:40 --exclude-self \
    --out part-truth --quiet
check "its ground truth" cmp ofpart/groundtruth part-truth
while read -ra line; do check "${line[0]} of the part" "$program" "${line[@]}" --force; done <lines
check "the same recall by hand" grep -q " $(sed -n 's/.*, fewest bytes.* recall \([0-9.]*\), .*/\1/p' said)" \
    <("$program" eval --results result --groundtruth part-truth)
check "a ground truth that was given" "$program" sweep "${part[@]}" --rows :500 --query-rows 10:40 --exclude-self \
    --folder given --groundtruth part-truth
refused 2 'part-truth .*the sweep' "$program" sweep "${part[@]}" --rows :500 --query-rows 10:40 --folder c --groundtruth part-truth
refused 2 'begun with rows 0:500' "$program" sweep "${part[@]}" --rows :400 --query-rows 10:40 --exclude-self --folder ofpart \
    --resume

# ---- a plan: histogram selection, raw, a model that is given ----

cat >plan <<'END'
# candidates within D_K + E of at most L
codec=xfbq select=threshold,histogram extra-distance=0,10,1000
codec=saq,xfbq oversample=4
codec=rbe bits=1,2
END
check "a plan" "$program" sweep "${common[@]}" --plan plan --bits 2 --k 5 --oversample 4 --groundtruth a/groundtruth \
    --model a/index-rbe-2.rbe --folder h
check "points of a plan, each once" test "$(column h/sweep.csv parameters | tr '\n' ' ')" = \
    "xfbq-2-q4-k5-x4-threshold xfbq-2-q4-k5-x4-histogram-e0 xfbq-2-q4-k5-x4-histogram-e10 \
xfbq-2-q4-k5-x4-histogram-e1000 saq-2-q4-k5-x4-threshold rbe-2-q7-k5-x4-threshold "
# histogram E COLUMN
histogram() {
    paste <(column h/sweep.csv parameters) <(column h/sweep.csv "$2") |
        awk -v name="xfbq-2-q4-k5-x4-histogram-e$1" '$1 == name {printf "%.4f\n", $2}'
}
candidates=(--select histogram --histogram-k 5 --max-candidates 20 --extra-distance)
for extra in 0 10; do
    check "candidates within $extra" test "$(histogram $extra selected)" = \
        "$(by_hand xfbq-2 20 --k 20 --refine none "${candidates[@]}" $extra)"
    check "answer within $extra" test "$(histogram $extra recall)" = \
        "$(by_hand xfbq-2 5 --k 5 --select histogram --max-candidates 20 --extra-distance $extra)"
done
check "selection loses less with more extra distance, nothing in the end" awk "BEGIN {
    exit !($(histogram 0 loss_selection) > $(histogram 10 loss_selection) && $(histogram 10 loss_selection) > 0 &&
        $(histogram 1000 loss_selection) == 0)}"
check "the model that was given makes the codes that were learned" test \
    "$(column h/sweep.csv ceiling | tail -n 1)" = "$(column a/sweep.csv ceiling | tail -n 1)"

# ---- lists: an index each; what its searches look at are points ----

cp a/groundtruth nearest
cp a/groundtruth.json nearest.json
listed=("${common[@]}" --codec saq --bits 2 --k 5 --oversample 4 --groundtruth nearest --residual no)
ways=(--lists "0,20" --probe "0,1,20" --probe-ratio "0,1.2")
check "lists" "$program" sweep "${listed[@]}" "${ways[@]}" --folder l
point=saq-2-l20-q4-k5-x4-threshold
check "points of lists" test "$(column l/sweep.csv parameters | tr '\n' ' ')" = "saq-2-q4-k5-x4-threshold \
$point $point-r1.2 $point-p1 $point-p1-r1.2 $point-p20 $point-p20-r1.2 "
# lists_of ROW COLUMNS...: of the rows in that order.
lists_of() {
    local row=$1 name values=()
    shift
    for name; do values+=("$(column l/sweep.csv "$name" | sed -n "${row}p")"); done
    echo "${values[*]}"
}
check "all rows without lists" test "$(lists_of 1 lists probe lists_a_query rows_a_query)" = "0 0 0 3000"
check "all rows of all lists" test "$(lists_of 2 lists probe lists_a_query rows_a_query)" = "20 0 20 3000"
check "one list" test "$(lists_of 4 lists probe probe_ratio lists_a_query)" = "20 1 0 1"
check "fewer rows" awk -v rows="$(lists_of 4 rows_a_query)" 'BEGIN {exit !(rows > 30 && rows < 500)}'
check "fewer still within a ratio" awk -v a="$(lists_of 7 rows_a_query)" 'BEGIN {exit !(a > 30 && a < 3000)}'
for row in 2 6; do
    check "all lists find what there is without, row $row" test "$(lists_of 1 recall ceiling selected)" = \
        "$(lists_of $row recall ceiling selected)"
done
check "the ceiling is that of all rows" test "$(column l/sweep.csv ceiling | sort -u | wc -l)" = 1
swept=l
check "candidates of one list" test "$(printf %.4f "$(lists_of 4 selected)")" = \
    "$(by_hand saq-2-l20 20 --k 20 --refine none --probe 1)"
check "answer of one list" test "$(printf %.4f "$(lists_of 5 recall)")" = \
    "$(by_hand saq-2-l20 5 --k 5 --oversample 4 --probe 1 --probe-ratio 1.2)"
swept=a
sums() {
    paste <(column "$1" recall) <(column "$1" loss_code) <(column "$1" loss_selection) <(column "$1" loss_refinement) |
        awk '{sum = $1 + $2 + $3 + $4; if (sum < 1 - 1e-9 || sum > 1 + 1e-9) exit bad = 1
            lists += $3}
            END {exit bad || !(lists > 0)}'
}
check "losses of lists add up" sums l/sweep.csv
check "one index with lists" test "$(echo l/index-*)" = "l/index-saq-2 l/index-saq-2-l20"
check "its time has that of the lists" awk -v build="$(lists_of 2 train_seconds)" 'BEGIN {exit !(build > 0)}'
check "some of its points" "$program" sweep "${listed[@]}" --lists 0,20 --folder m
check "and the others" "$program" sweep "${listed[@]}" "${ways[@]}" --folder m --resume
cp stdout said
check "which are not done twice" grep -q '^7 points, 2 of them measured by an earlier run' said
check "the same rows of lists" same_rows l/sweep.csv m/sweep.csv
refused 2 'no point .* probe 3: there are 2 lists' "$program" sweep "${listed[@]}" --lists 2 --probe 3 --folder c
check "all lists, by the word" "$program" sweep "${listed[@]}" --lists 20 --probe all,1 --folder l --resume
cp stdout said
check "which is 0" grep -q '^2 points, 2 of them measured by an earlier run' said
refused 2 '^bitsweep: --probe: all is there twice$' "$program" sweep "${listed[@]}" --lists 20 --probe 0,all --folder c
refused 2 "^bitsweep: --probe 'some' is not a whole number .*, nor all$" "$program" sweep "${listed[@]}" --lists 20 \
    --probe some --folder c
refused 2 '^bitsweep: --probe: no index of this sweep has lists; --lists makes some$' "$program" sweep "${listed[@]}" \
    --lists 0 --probe 99999 --folder c
refused 2 '^bitsweep: --probe-ratio: no index .* has lists' "$program" sweep "${listed[@]}" --probe-ratio 1.2 --folder c
refused 2 'begun with residual no' "$program" sweep "${listed[@]/%no/yes}" --lists 20 --folder l --resume
check "residuals" "$program" sweep "${listed[@]/%no/auto}" --lists "0,20" --probe 3 --folder o
check "of the index with lists" test "$(column o/sweep.csv residual | tr '\n' ' ')" = "0 1 "
check "which has no more rows" test "$(column l/sweep.csv residual | sort -u)" = 0

# The name of its corpus is hard to write down.
name="<b>\"&, '.u8bin"
"$program" synth --count 500 --dims 16 --type uint8 --out "$name" --queries 10 --queries-out q.u8bin --quiet
raw=("$program" sweep --base "$name" --queries q.u8bin --codec raw --metric l2 --folder r --repeat 1)
check "raw" "${raw[@]}"
check "raw is exact, one point" test "$(grep -c '^   "recall": 1.0' r/sweep.json)" = 1
check "its name in CSV" grep -qF ",\"<b>\"\"&, '.u8bin\"," r/sweep.csv
check "in HTML" grep -qF "<td>&lt;b&gt;\"&amp;, '.u8bin</td>" r/report.html
check "in the command" grep -qF "base '&lt;b&gt;\"&amp;, '\\''.u8bin'" r/report.html
check "nowhere as it is" test "$(grep -c '<b>' r/report.html || true)" = 0

# ---- near-duplicates and copies: ties count when asked for, and only equal exact values ----

# 100 rows, each 4 times, best last; the value of one is within 1e-6 of the next one's.
near=$folder/near.u8bin
{
    printf '\x90\x01\0\0\x20\x03\0\0'
    for ((row = 0; row < 400; row++)); do
        head -c 799 /dev/zero | tr '\0' '\377'
        # shellcheck disable=SC2059
        printf "\\x$(printf %02x $((row % 100)))"
    done
} >"$near"
{ printf '\1\0\0\0\x20\x03\0\0' && head -c 799 /dev/zero | tr '\0' '\377' && printf '\10'; } >near-query.u8bin
# A ground truth of the last of four copies; a result has the first.
{
    printf '\1\0\0\0\2\0\0\0\x8f\x01\0\0\x2b\x01\0\0' # rows 399, 299
    printf '\0\0\0\0\0\0\0\0'                           # values that nobody looks at
} >near-truth
near=("$program" sweep --base "$near" --queries near-query.u8bin --metric ip --codec raw --k 2 --repeat 1
    --groundtruth near-truth)
check "copies, by ids" "${near[@]}" --folder ids
check "are not found" test "$(column ids/sweep.csv recall) $(column ids/sweep.csv recall_counts)" = "0 ids"
check "the report says so" grep -q 'by ids alone' ids/report.html
check "and the JSON" test "$(grep -c '"recall_counts": "ids"' ids/sweep.json)" = 2
check "ties counted" "${near[@]}" --folder ties --ties
check "are found" test "$(column ties/sweep.csv recall) $(column ties/sweep.csv ceiling)" = "1 1"
check "as ties" test "$(column ties/sweep.csv recall_counts)" = "ids and ties"
check "the report says that, too" grep -q 'with ties: a returned row' ties/report.html
# 99, 199, 299 and 399 are nearer than 398: it is no second neighbour.
put near-truth 12 '\x8e\x01\0\0'
for count in "" --ties; do
    refused 65 'near-truth: a search finds 2 rows that are nearer than its neighbours, at 2 places' \
        "${near[@]}" --folder none --force ${count:+"$count"}
done

# ---- a ground truth that is none ----

"$tests/brute_force" scale base.fbin scaled.fbin 1
truth=("$program" groundtruth --base scaled.fbin --queries q.fbin --k 5 --quiet --out)
sweep_by=("$program" sweep --base scaled.fbin --queries q.fbin --metric l2 --codec saq --bits 2 --k 5 --oversample 4
    --repeat 1 --folder none --force --groundtruth)
for name in good shifted larger double; do "${truth[@]}" $name --metric l2; done
"${truth[@]}" metric --metric ip
"${truth[@]}" part --metric l2 --rows 0:2000
add_to_ids shifted 200 1
add_to_ids larger 5 3000
cp double first
dd if=first of=double bs=1 skip=8 seek=12 count=4 conv=notrunc status=none
cp good missing
put missing 12 '\xff\xff\xff\xff'
rm {metric,part,shifted,larger,double}.json # which would say some of it
check "a good one" "${sweep_by[@]}" good
check "has nothing nearer" grep -q '"nearer_rows": 0' none/sweep.json
check "and nobody speaks of it" test "$(grep -c nearer stdout || true)" = 0
for name in metric part; do
    refused 65 "$name: a search finds [0-9]* rows that are nearer than its neighbours, at 200 places: it is of other" \
        "${sweep_by[@]}" $name
done
refused 65 'shifted: (a search finds|query [0-9]+ has id 3000)' "${sweep_by[@]}" shifted
refused 65 'larger: query 0 has id [3-5][0-9]{3}, scaled.fbin has 3000 rows' "${sweep_by[@]}" larger
refused 65 'double: query 0 has id [0-9]* twice' "${sweep_by[@]}" double
refused 65 'missing: query 0 has fewer than 5 neighbours' "${sweep_by[@]}" missing
# A row that stands in for a nearer one, as float32 may have it.
cp good near
rm -f near.json
put near $((8 + 4 * 4)) "$(printf '\\x%02x' 0 0 0 0)"
check "one place" "${sweep_by[@]}" near
cp stdout said
check "is said" grep -q '^the ground truth is not exact: [1-9] rows of the first answers are nearer' said

# ---- indexes are those that encode makes, with what a check of their codes leads to ----

"$program" synth --count 3000 --dims 96 --spectrum 0.625 --out steep.fbin --queries 20 --queries-out steep-q.fbin --quiet
mkdir made # as deep as the indexes of a sweep, since an index says where its source is
encode_steep=("$program" encode --base steep.fbin --metric l2 --bits 1 --check)
check "encode" "${encode_steep[@]}" auto --index made/encoded
cp stdout said
check "another way to train wins" grep -q '32x3,64x0' said
check "which needs the check" "${encode_steep[@]}" off --index made/unchecked
cp stdout said
check "as nothing else" grep -q ', 96x1:' said
check "sweep" "$program" sweep --base steep.fbin --queries steep-q.fbin --metric l2 --bits 1 --oversample 1 --repeat 1 \
    --folder steep
for file in manifest.pb shard-00000-of-00001.codes; do
    check "the same $file" cmp made/encoded/$file steep/index-saq-1/$file
done
check "good codes have no warning" test "$(grep -c '^warning' stdout || true)" = 0
"$program" synth --count 1000 --dims 64 --out cloud.fbin --queries 20 --queries-out cloud-q.fbin --quiet
check "poor codes" "$program" sweep --base cloud.fbin --queries cloud-q.fbin --metric l2 --bits 1 --oversample 1 \
    --repeat 1 --folder cloud
cp stdout said
warning='warning: index-saq-1: 10-recall@50 of the sample 0\.[0-9]+: too few bits'
check "have one" grep -qE "^$warning" said
check "in the report, too" grep -qE "^<p>$warning" cloud/report.html
check "and in the JSON" grep -qE '"check_cause": "too few bits' cloud/sweep.json

# ---- the report ----

check "JSON with all rows" test "$(grep -c '"loss_refinement": [0-9]' a/sweep.json)" = 16
check "shapes" test "$(grep -cE '"(rows": 3000|dims": 32|num_queries": 40),' a/sweep.json)" = 3
check "STATUS.json" grep -q '"status": "complete"' a.json
check "no step is left" test -z "$(find a -maxdepth 1 -name 'step.*')"
check "one file" test "$(grep -cE 'src=|href="[^#]|@import' a/report.html || true)" = 0
check "the command, alone in its paragraph" test \
    "$(grep -cE '^<p><code>bitsweep sweep .*--folder a</code></p>$' a/report.html)" = 1
check "tables of facts: the job, the environment, the columns" test "$(grep -o '<table class="facts">' a/report.html | wc -l)" = 3
check "the answer comes first" test "$(grep -oE '<h2>[^<]*' a/report.html | head -n 1)" = "<h2>Which code for which recall"
check "what all points share is said once" grep -q '^<p>All points have .*count 5' a/report.html
check "and is no column" test "$(grep -cE '<th>(count|lists)</th>' <(grep '<tr><th>recall</th><th>qps</th>' a/report.html) || true)" = 0
check "recall, speed and bytes stand in front" grep -q '^<tr><th>recall</th><th>qps</th><th>bytes_per_vector</th>' a/report.html
check "16 rows and the head" test "$(grep -c '^<tr[^>]*><t[hd]>' a/report.html)" -ge 17
if command -v gnuplot >/dev/null; then
    for plot in pareto bytes ceiling; do
        check "$plot as SVG" grep -q '<svg' a/sweep-$plot.svg
        check "$plot as PNG" test "$(head -c 4 a/sweep-$plot.png | tail -c 3)" = PNG
    done
    check "three plots in the report" test "$(grep -c '<svg' a/report.html)" = 3
fi

# ---- stopped, killed, resumed ----

cp -r a/groundtruth a/groundtruth.json .
# Time to be stopped in: of several ranks SIGTERM lets go on for a second.
slow=("${common[@]/%1/400}") # --repeat 400
resumed=(sweep "${slow[@]}" "${grid[@]}" --groundtruth groundtruth --folder b --resume)

# until_rows N FOLDER: until there are so many rows, or for 40 s.
until_rows() {
    local tries
    for ((tries = 0; tries < 2000; tries++)); do
        if [[ -e $2/sweep.csv ]] && (($(wc -l <"$2/sweep.csv") > $1)); then return; fi
        sleep 0.02
    done
}
for signal in KILL TERM; do
    if [[ $signal == KILL ]]; then expected=137 rows=2; else expected=75 rows=5; fi
    "$program" "${resumed[@]}" >out 2>err &
    sweep=$!
    until_rows "$rows" b
    kill -STOP "$sweep" 2>/dev/null || true # it would be done before it is looked at
    cp b/sweep.csv before.csv
    if [[ $signal == TERM ]]; then
        since=$SECONDS
        refused 2 '^bitsweep: b: another sweep is at work there$' "$program" "${resumed[@]}"
        check "at once" test $((SECONDS - since)) -lt 10
    fi
    kill "-$signal" "$sweep" 2>/dev/null || true
    kill -CONT "$sweep" 2>/dev/null || true
    code=0
    wait "$sweep" 2>/dev/null || code=$?
    check "SIG$signal: exit code $code" test $code = "$expected"
done
check "one line" test "$(wc -l <err)" = 1
check "resume" "$program" "${resumed[@]}"
check "the same rows" same_rows a/sweep.csv b/sweep.csv
check "nothing of a step is left" test -z "$(find b -name 'step.*' -o -name '*.tmp*')"
check "nothing twice" cmp <(column before.csv qps) <(column b/sweep.csv qps | head -n "$(column before.csv qps | wc -l)")
check "rows were there before" test "$(column before.csv qps | wc -l)" -ge 3
check "a larger grid" "$program" sweep "${slow[@]}" --codec saq --bits 2 --k 4,5 --oversample 4 \
    --groundtruth groundtruth --folder b --resume
cp stdout said
check "says what of it was there" grep -q '^2 points, 1 of them measured by an earlier run' said
check "has what it had, and more" test "$(column b/sweep.csv recall | wc -l)" = 17

# ---- what is refused ----

refused 2 '^bitsweep: a: has a finished sweep, of 16 points: --resume measures only .*, --force measures all .*again$' \
    "$program" sweep "${common[@]}" "${grid[@]}" --folder a
mkdir unfinished
cp b/sweep.journal unfinished
refused 2 'unfinished: has an unfinished sweep, of 17 points: --resume' "$program" sweep "${common[@]}" "${grid[@]}" \
    --folder unfinished
cp base.fbin other.fbin
flip other.fbin 8
refused 2 'begun with base ' "$program" sweep --base other.fbin "${common[@]:2}" "${grid[@]}" --folder a --resume
refused 2 'shards' "$program" sweep "${common[@]}" "${grid[@]}" --folder a --resume --shards 2
refused 2 'recall-counts' "$program" sweep "${common[@]}" "${grid[@]}" --folder a --resume --ties
for options in "l2" "cosine --exclude-self" "cosine --rows 0:2999"; do
    read -ra options <<<"$options"
    "$program" groundtruth --base base.fbin --queries q.fbin --k 5 --out other --force --quiet --metric "${options[@]}"
    refused 2 'other .*the sweep' "$program" sweep "${common[@]}" --folder c --groundtruth other
done
refused 2 "'lsh' is none of xfbq, saq, rbe, raw" "$program" sweep "${common[@]}" --folder c --codec lsh
refused 2 'no point .* raw knows' "$program" sweep "${common[@]}" --folder c --codec raw
refused 2 'launcher: .*on its own ranks.*run.sh -n 4 sweep' "$program" sweep "${common[@]}" --folder c --launcher "$run -n 2"
echo 'codec=saq bits=9' >wrong
refused 65 '^bitsweep: wrong: line 1: bits: 9 is not in 1 .. 8$' "$program" sweep "${common[@]}" --folder c --plan wrong
refused 65 'no bitsweep model' "$program" sweep "${common[@]}" --folder c --codec rbe --model base.fbin
refused 2 'model' "$program" sweep "${common[@]}" "${grid[@]}" --folder a --resume --model a/index-rbe-2.rbe
refused 2 'no point .* whole bits' "$program" sweep "${common[@]}" --folder c --codec xfbq --bits 1.5
refused 2 'twice' "$program" sweep "${common[@]}" --folder c --k 5,5
refused 65 '40 queries, base.fbin has 3000' "$program" sweep --base base.fbin --queries base.fbin --metric cosine --folder c \
    --groundtruth groundtruth
again=("$program" sweep "${common[@]}" --codec saq --bits 2 --folder a --resume)
truncate -s 20 a/index-saq-2/manifest.pb
refused 65 '^bitsweep: search: .*index-saq-2' "${again[@]}" --k 4
rm -r a/index-saq-2 a/groundtruth
check "an index and a ground truth that are gone are made again" "${again[@]}" --k 4

# ---- without gnuplot, under mpirun ----

touch r/step.notes r/mine.tmp.1 r/step.result.json r/sweep.csv.tmp.1
check "without gnuplot" env PATH=/nowhere "${raw[@]}" --resume
cp stdout said
check "says so" grep -q 'gnuplot is missing' said
check "no plot is left" test -z "$(find r -name '*.svg' -o -name '*.png')"
check "files of steps go, of others stay" test "$(cd r && echo step.* ./*.tmp.*)" = "step.notes ./mine.tmp.1"
mkdir bin
printf '#!/bin/sh\necho "<svg>" >sweep-pareto.svg\n' >bin/gnuplot
chmod +x bin/gnuplot
refused 74 'sweep-pareto.svg: gnuplot has not written' env PATH="$PWD/bin" "${raw[@]}" --resume
find_ranks 2
if ((has_mpi)); then
    check "one rank of mpirun" "$run" -n 1 sweep "${common[@]}" --bits 2 --oversample 1,2 --folder d --resume
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    mpirun=(mpirun --quiet --oversubscribe -n 2)
    check "two ranks of mpirun" "${mpirun[@]}" "$program" sweep "${common[@]}" --bits 2 --oversample 1,2 --folder e
    check "the same rows from them" same_rows d/sweep.csv e/sweep.csv
    check "lists on two ranks" "$run" -n 2 sweep "${listed[@]}" "${ways[@]}" --shards 2 --folder n
    check "the same rows of lists from them" cmp <(column l/sweep.csv recall) <(column n/sweep.csv recall)
    check "which look at the same" cmp <(column l/sweep.csv rows_a_query) <(column n/sweep.csv rows_a_query)
    # The same rows from two ranks, of every codec and selection, and after a kill.
    parallel=("$run" -n 2 sweep "${slow[@]}" "${grid[@]}" --shards 2 --resume)
    "$program" sweep "${common[@]}" "${grid[@]}" --shards 2 --folder f --quiet
    "${parallel[@]}" --folder g >out 2>err &
    sweep=$!
    until_rows 1 g
    kill -KILL "$sweep" 2>/dev/null || true
    wait "$sweep" 2>/dev/null || true
    check "goes on on two ranks" "${parallel[@]}" --folder g
    check "the same rows from two ranks" same_rows f/sweep.csv g/sweep.csv
    check "two ranks" test "$(column g/sweep.csv ranks | sort -u)" = 2
    check "says so" grep -q '"ranks": 2,' g/sweep.json
    refused 2 'begun with ranks' "$program" sweep "${parallel[@]:4}" --folder g
    # An error of rank 0 alone, and one of a step, end all of them.
    refused 2 'whole bits' "${mpirun[@]}" "$program" sweep "${common[@]}" --folder c --codec xfbq --bits 1.5
    truncate -s 20 g/index-saq-2/manifest.pb
    refused 65 'search: .*index-saq-2' "$run" -n 2 sweep "${slow[@]}" --codec saq --bits 2 --k 4 --shards 2 --folder g --resume
    # A stop.
    for signal in TERM USR1; do
        "${parallel[@]}" --folder "h$signal" >out 2>err &
        sweep=$!
        until_rows 2 "h$signal"
        kill "-$signal" "$sweep" 2>/dev/null || true
        code=0
        wait "$sweep" 2>/dev/null || code=$?
        check "SIG$signal on two ranks: exit code $code" test $code = 75
        check "resumed" "${parallel[@]}" --folder "h$signal"
        check "the same rows after SIG$signal" same_rows f/sweep.csv "h$signal/sweep.csv"
    done
fi

finish
