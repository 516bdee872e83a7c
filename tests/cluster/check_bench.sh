#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench memory and bench kernels: tables, documents, what is refused, and that a wrong value ends in exit
# code 70. bench tune: a table for every level of this CPU with a row for each combination, which leaves those of
# others in its file; the same rows as JSON; files that hold no tables are refused by it and by searches. What was
# measured is not judged.
# ctest labels: asan
# usage: check_bench.sh BITSWEEP_BINARY
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
bitsweep=$program
work=$folder

# check TEXT COMMAND
check() {
    local text=$1
    shift
    if "$@" >"$work/messages" 2>&1; then
        pass "$text"
    else
        complain "$text" "$work/messages"
    fi
}

tune() {
    "$bitsweep" bench tune --seconds 0.0001 "$@" </dev/null
}

# has_table FILE LEVEL BITS DIMS...: the last table is the level's, with these rows, each with as many
# figures as bits.
has_table_of() {
    awk -v level="$2" -v bits="$3" -v dims="${*:4}" '
        $1 == "table" {is_it = $2 == level; sub(/#.*/, ""); num = NF - 4; $1 = $2 = $3 = $4 = ""; has = $0; rows = ""}
        $1 == "row" {rows = rows " " $2; if (NF != 5 + num) is_it = 0}
        END {gsub(/ +/, " ", has); gsub(/^ | $/, "", has); exit !(is_it && has == bits && rows == " " dims)}' "$1"
}

has_json_rows() {
    diff <(grep -oE '"(dims|bits)": [0-9]+' "$1" | grep -oE '[0-9]+$' | paste -d ' ' - -) \
        <(printf '%s\n' "${@:2}")
}

find_levels
# Under sanitizers kernelcheck has all of them.
if [[ -n ${BITSWEEP_MAX_RANKS:-} ]]; then levels=("${levels[-1]}"); fi
tables=$work/tables
for level in "${levels[@]}"; do
    tune --level "$level" --dims 64 --bits 8,1 --write "$tables" >"$work/table" 2>"$work/stderr" ||
        complain "bench tune --level $level" "$work/stderr"
    check "$level: a row for each combination" has_table_of "$tables" "$level" '8 1' 64
    check "$level: figures of both" test "$(grep -cv '^#' "$work/table")" = 2
done
check "a table for each level" test "$(grep -c '^table ' "$tables")" = "${#levels[@]}"

# Everything but the table of the highest level.
others() {
    awk -v level="${levels[-1]}" '$1 == "table" {is_it = $2 == level && $3 != "another"} !(is_it && $1 != "#")' "$1"
}

{
    echo '# mine'
    cat "$tables"
    printf 'table %s another 1 1\nrow 32 1 0 0 -' "${levels[-1]}"
} >"$work/before"
cp "$work/before" "$tables"
tune --dims 32 --bits 1,2,3,4,5,6,7,8 --write "$tables" --json --quiet >"$work/rows.json"
rows=('32 1' '32 2' '32 3' '32 4' '32 5' '32 6' '32 7' '32 8')
check "a table is written anew" has_table_of "$tables" "${levels[-1]}" '1 2 3 4 5 6 7 8' 32
check "all else in the file stays" cmp <(others "$work/before") <(others "$tables")
check "--json has the rows" has_json_rows "$work/rows.json" "${rows[@]}"
tune --level reference --dims 32,64 --bits 2 >"$work/stdout" 2>/dev/null
check "without --write the table is on stdout" has_table_of "$work/stdout" reference 2 32 64
check "commands read it" env BITSWEEP_TUNING="$tables" "$bitsweep" bench memory --min 64K --max 64K

# ---- the reports of bench memory and bench kernels ---------------------------------------------------

# has_table FILE ROWS: a header, a row of units below it, rows of as many numbers as columns, all checked
# and right, and a footer that says so. The words of the first columns have blanks in them, so what is
# counted are the columns behind: all but the first two.
has_table() {
    awk -v rows="$2" '
        /^# command: bitsweep bench / {command = 1}
        /^# +0  / {rank = 1}
        /^# .* errors$/ {header = NR}
        /^# .* values$/ {units = NR}
        /^  / {num++; if ($NF != 0) wrong++}
        /^# [0-9]+ rows, [0-9]+ checked: no wrong value, OK$/ {total = $2; checked = $4}
        /^# average of .* (GB\/s|%)/ {average = 1}
        END {
            good = command && rank && header && units == header + 1 && num == rows && !wrong
            exit !(good && total == rows && checked == rows && average)
        }' "$1"
}

# has_document FILE ROWS: of --json; nothing else is printed.
has_document() {
    json_says "$1" "\"bench\": \"$3\"" && [[ $(head -c 1 "$1") == '{' && $(grep -c '"errors": 0' "$1") == "$2" ]] &&
        grep -q '"wrong_values": 0' "$1" && grep -q '"passed": true' "$1" && grep -q '"usable_cpus": ' "$1"
}

# refuses CODE TEXT OPTIONS...: one line that says so, nothing on stdout.
refuses() {
    local code=0
    "$bitsweep" bench "${@:3}" >"$work/stdout" 2>"$work/stderr" || code=$?
    [[ $code == "$1" && ! -s $work/stdout && $(wc -l <"$work/stderr") == 1 ]] && grep -q -- "$2" "$work/stderr"
}

# ends CODE TEXT COMMAND...: with rows on stdout, and one line on stderr.
ends() {
    local code=0
    "${@:3}" >"$work/stdout" 2>"$work/stderr" || code=$?
    [[ $code == "$1" && $(wc -l <"$work/stderr") == 1 ]] && grep -q -- "$2" "$work/stderr" &&
        grep -q FAILED "$work/stdout"
}

tiny=(--repeat 1 --warmup 0 --threads 2)
num_kernels=27
for level in "${levels[@]}"; do
    "$bitsweep" bench memory --level "$level" "${tiny[@]}" --min 2K --max 70K --factor 8 >"$work/memory"
    check "memory, $level: 4 peaks and 4 ways at 2 sizes" has_table "$work/memory" 12
    "$bitsweep" bench kernels --level "$level" "${tiny[@]}" --dims 70 --queries 5 --min 100 --max 300 --step 200 \
        >"$work/kernels"
    if [[ $level == reference ]]; then # is not compared with itself
        check "kernels, $level: nothing to compare" test "$(grep -c 'N/A$' "$work/kernels")" = $((2 * num_kernels))
    else
        check "kernels, $level: all kernels at 2 sizes" has_table "$work/kernels" $((2 * num_kernels))
    fi
done
check "rows are whole bundles" grep -qE ' dots +128 +1 ' "$work/kernels"
"$bitsweep" bench kernels "${tiny[@]}" --family matrix_scan --segments 40x4,30x1 --dims 70 --bits 8 --query-bits 7 \
    --queries 33 --max 2K >"$work/kernels"
check "kernels of one family, codes of two segments" test "$(grep -c '^  matrix_scan' "$work/kernels")" = 4
for metric in cosine ip; do # l2 is above
    "$bitsweep" bench kernels "${tiny[@]}" --family refine --metric $metric --dims 33 --queries 3 --max 2K >"$work/kernels"
    check "exact values, $metric" grep -q "^# 1 rows" "$work/kernels"
done

"$bitsweep" bench memory "${tiny[@]}" --max 32K --json >"$work/json" 2>"$work/stderr"
check "memory --json" has_document "$work/json" 8 memory
"$bitsweep" bench memory "${tiny[@]}" --max 32K --check off --least 0.000001 >"$work/memory"
check "--check off" test "$(grep -c 'N/A$' "$work/memory")" = 8
check "--least that is met" grep -q 'at least 1e-06 asked: OK' "$work/memory"
check "--least that is not" ends 70 '--least asks for' "$bitsweep" bench memory "${tiny[@]}" --max 32K --least 1e9

mkfifo "$work/pipe"
echo 'row 32' >"$work/damaged"
check "a file of no tables to write to" refuses 65 'damaged: line 1: neither' tune --write "$work/damaged"
check "it stays as it is" test "$(<"$work/damaged")" = 'row 32'
BITSWEEP_TUNING=$work/damaged check "commands refuse it" refuses 65 'damaged: line 1: neither' memory
BITSWEEP_TUNING=$work/none check "a file that is not there" refuses 74 'none: ' memory
check "dims that begin with 0" refuses 2 '--dims' tune --dims 032
check "bench alone" refuses 2 'one of: '
check "an unknown bench" refuses 2 "no bench 'disk'" disk
check "an unknown option" refuses 2 '--size' memory --size 3
check "a factor of 1" refuses 2 '--factor 1' memory --factor 1
check "a size that is none" refuses 2 '--min' memory --min 3X
check "sizes in no order" refuses 2 '--min 70000 is above --max 32000' memory --min 70K --max 32K
check "less than a block" refuses 2 'below 1024' memory --min 512
check "a family that is none" refuses 2 '--family' kernels --family sorting
check "more rows than a shard" refuses 2 '2^32 rows' kernels --max 5G
check "segments of other dims" refuses 2 'dims' kernels --segments 3x3
check "more bits than a query has" refuses 2 '--query-bits 8' kernels --query-bits 8

# The program of the benches lies beside the other one, which starts it.
mkdir "$work/beside"
cp "$bitsweep" "$work/beside/bitsweep"
bitsweep=$work/beside/bitsweep check "without bitsweep-bench" refuses 2 'bitsweep-bench: cannot be started: No such file' memory
cp "$bitsweep-bench" "$work/beside"
check "with it" test "$("$work/beside/bitsweep" bench --version)" = "$("$bitsweep" --version)"

# A bit that flips in what is checked is found.
faulty=$(dirname "$bitsweep")/tests/bitsweep_faults
if [[ -x $faulty && ${levels[-1]} != reference ]]; then
    # The checks of bench memory: reading, reading pages, copying, writing.
    for job in 'flip:1 memory --max 32K' 'flip:3 memory --max 32K' 'flip:4 memory --max 32K' \
        'flip:1 kernels --family plane_scan --max 2K' 'flip:1 kernels --family merge --max 2K'; do
        # shellcheck disable=SC2086
        check "$job: it is found" ends 70 '1 wrong values in 1 of' env "BITSWEEP_FAIL=${job%% *}" "$faulty" \
            bench ${job#* } "${tiny[@]}"
    done
fi

on3() {
    on 3 "$@"
}

find_ranks 3
if ((has_mpi)); then
    on3 bench memory "${tiny[@]}" --max 32K >"$work/memory"
    check "memory on 3 ranks" has_table "$work/memory" 8
    check "a line for each rank" test "$(grep -cE '^# +[012]  ' "$work/memory")" = 3
    on3 bench kernels "${tiny[@]}" --family merge --max 2K --json >"$work/json"
    check "kernels on 3 ranks" grep -q '"rank": 2' "$work/json"
    bitsweep=on3 check "a bad option on 3 ranks: one line" refuses 2 '--factor 1' memory --factor 1
fi

finish
