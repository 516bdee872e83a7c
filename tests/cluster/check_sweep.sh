#!/usr/bin/env bash
# sweep: losses add up and are those of searches made by hand; stopped, killed and resumed it has the
# rows of an undisturbed run in all but times, and does nothing twice; plots and report are there;
# what it refuses.
# usage: check_sweep.sh BITSWEEP_BINARY SOURCE_FOLDER
# ctest labels: asan
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
cd "$folder"
export OMP_NUM_THREADS=1

"$program" synth --count 3000 --dims 32 --clusters 20 --out base.fbin --queries 40 --queries-out q.fbin --quiet
common=(--base base.fbin --queries q.fbin --query-bits 4 --repeat 1 --items 16)
grid=(--codec "xfbq,saq" --bits "1.5,2" --k 5 --oversample "1,4" --select "threshold,queue")

# column FILE NAME: that column, a line a row.
column() {
    awk -F, -v name="$2" 'NR == 1 {for (i = 1; i <= NF; i++) if ($i == name) c = i; next} {print $c}' "$1"
}

# same_rows A B: but for times, memory and what follows from them.
same_rows() {
    local name
    for name in algorithm index_name dataset bits query_bits select count oversample candidates recall ceiling \
        selected loss_code loss_selection loss_refinement bytes_per_vector indexsize; do
        cmp <(column "$1" $name) <(column "$2" $name) || return 1
    done
}

# ---- the whole grid ----

check "sweep" "$program" sweep "${common[@]}" "${grid[@]}" --folder a
cp stdout said
check "what is left out is said" grep -q '^4 points left out: codec xfbq with 1.5 bits' said
check "12 rows" test "$(column a/sweep.csv recall | wc -l)" = 12

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

# by_hand INDEX OPTIONS...: the one recall@R that eval says of such a search.
by_hand() {
    local index=$1
    shift
    "$program" search --index "a/index-$index" --queries q.fbin --query-bits 4 --out hand --force --quiet "$@"
    "$program" eval --results hand --groundtruth a/groundtruth --k 5 --base base.fbin --queries q.fbin |
        awk '/^5-recall@/ {value = $2} END {print value}'
}

# of INDEX OVERSAMPLE SELECT NAME: a row's value, as eval prints it.
of() {
    local file=a/sweep.csv
    paste <(column $file index_name) <(column $file oversample) <(column $file select) <(column $file "$4") |
        awk -v row="$1 $2 $3" '$1 " " $2 " " $3 == row {printf "%.4f\n", $4}'
}
for index in xfbq-2 saq-1.5; do
    check "ceiling of $index" test "$(of $index 4 queue ceiling)" = "$(by_hand $index --k 20 --refine none)"
    check "candidates of $index" test "$(of $index 4 queue selected)" = \
        "$(by_hand $index --k 20 --refine none --select queue --items 16)"
    check "answer of $index" test "$(of $index 4 queue recall)" = \
        "$(by_hand $index --k 5 --oversample 4 --select queue --items 16)"
done
check "the ceiling rises with the candidates" \
    awk "BEGIN {exit !($(of xfbq-2 1 threshold ceiling) < $(of xfbq-2 4 threshold ceiling))}"

# ---- the report ----

check "JSON with all rows" test "$(grep -c '"loss_refinement": [0-9]' a/sweep.json)" = 12
check "shapes" test "$(grep -cE '"(rows": 3000|dims": 32|num_queries": 40),' a/sweep.json)" = 3
check "STATUS.json" grep -q '"status": "complete"' a.STATUS.json
check "no step is left" test -z "$(find a -maxdepth 1 -name 'step.*')"
check "one file" test "$(grep -cE 'src=|href="[^#]|@import' a/report.html || true)" = 0
check "12 rows and the head" test "$(grep -c '^<tr[^>]*><t[hd]>' a/report.html)" -ge 13
if command -v gnuplot >/dev/null; then
    for plot in pareto bytes ceiling; do
        check "$plot as SVG" grep -q '<svg' a/sweep-$plot.svg
        check "$plot as PNG" test "$(head -c 4 a/sweep-$plot.png | tail -c 3)" = PNG
    done
    check "three plots in the report" test "$(grep -c '<svg' a/report.html)" = 3
fi

# ---- stopped, killed, resumed ----

cp -r a/groundtruth a/groundtruth.json .
resumed=(sweep "${common[@]}" "${grid[@]}" --groundtruth groundtruth --folder b --resume)

# until_rows N: until there are so many rows, or the sweep is at its end.
until_rows() {
    local tries
    for ((tries = 0; tries < 2000; tries++)); do
        if [[ -e b/sweep.csv ]] && (($(wc -l <b/sweep.csv) > $1)); then return; fi
        sleep 0.02
    done
}
for signal in KILL TERM; do
    if [[ $signal == KILL ]]; then expected=137 rows=2; else expected=75 rows=6; fi
    "$program" "${resumed[@]}" >out 2>err &
    sweep=$!
    until_rows "$rows"
    cp b/sweep.csv before.csv
    kill "-$signal" "$sweep" 2>/dev/null || true
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
check "a larger grid" "$program" sweep "${common[@]}" --codec saq --bits 2 --k 4,5 --oversample 4 \
    --groundtruth groundtruth --folder b --resume
check "has what it had, and more" test "$(column b/sweep.csv recall | wc -l)" = 13

# ---- what is refused ----

# refused CODE PATTERN ARGUMENTS: one line on stderr
refused() {
    local code=$1 pattern=$2 got=0
    shift 2
    "$@" >stdout 2>stderr || got=$?
    if ((got == code)) && grep -qE "$pattern" stderr && (($(wc -l <stderr) == 1)); then
        pass
    else
        complain "$*: exit code $got"
    fi
}
refused 2 'resume|force' "$program" sweep "${common[@]}" "${grid[@]}" --folder a
refused 2 'shards' "$program" sweep "${common[@]}" "${grid[@]}" --folder a --resume --shards 2
refused 2 'rbe' "$program" sweep "${common[@]}" --folder c --codec rbe
refused 2 'no point .* whole bits' "$program" sweep "${common[@]}" --folder c --codec xfbq --bits 1.5
refused 2 'twice' "$program" sweep "${common[@]}" --folder c --k 5,5
refused 65 '40 queries, base.fbin has 3000' "$program" sweep --base base.fbin --queries base.fbin --folder c \
    --groundtruth groundtruth
again=("$program" sweep "${common[@]}" --codec saq --bits 2 --folder a --resume)
truncate -s 20 a/index-saq-2/manifest.pb
refused 65 '^bitsweep: search: .*index-saq-2' "${again[@]}" --k 4
rm -r a/index-saq-2
check "an index that is gone is made again" "${again[@]}" --k 4

# ---- without gnuplot, under mpirun ----

check "without gnuplot" env PATH=/nowhere "$program" sweep "${common[@]}" --bits 2 --oversample 1 --folder d
cp stdout said
check "says so" grep -q 'gnuplot is missing' said
find_ranks 2
if ((has_mpi)); then
    check "one rank of mpirun" "$run" -n 1 sweep "${common[@]}" --bits 2 --oversample 1,2 --folder d --resume
    refused 2 'one rank' "$run" -n 2 sweep "${common[@]}" --bits 2 --folder e
fi

echo "$passed checks passed, $failed failed"
((failed == 0))
