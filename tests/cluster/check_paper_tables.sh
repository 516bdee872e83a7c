#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/papers/xfbq_tables.py and rbegir_tables.py: tiny runs print every table, and what must hold in them does.
# usage: check_paper_tables.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_python
PATH=$(dirname "$program"):$PATH

# tables SCRIPT ARGUMENTS
tables() {
    local code=0
    "$python" -B "$source/bench/papers/$1" --out "$folder/out" "${@:2}" >"$folder/said" 2>"$folder/stderr" || code=$?
    check "$1: exit code $code" test $code = 0
}

# column LINE NUMBER: of the line that begins so; cells are counted from 2.
column() {
    awk -F ' *[|] *' -v line="$1" -v n="$2" 'index($2, line) == 1 {print $n; exit}' "$folder/said"
}

# above NAME A B [MORE]
above() {
    check "$1: $2 above $3" awk -v a="$2" -v b="$3" 'BEGIN {exit !(a != "" && b != "" && a + 0 > b + 0)}'
}

source=$2
tables xfbq_tables.py --rows 3000 --num-queries 50
check "five tables" test "$(grep -c '^| ---' "$folder/said")" = 5
check "no empty cell" test "$(grep -cE '\| +\|' "$folder/said" || true)" = 0
above "a scale shortens angles" "$(column '3 bits, rotated, scale 1' 6)" "$(column '3 bits, rotated, scale 1 /' 6)"
above "bits of rows" "$(column '4 x 4, random' 4)" "$(column '2 x 4, random' 4)"
above "bits of queries" "$(column '4 x 4, random' 4)" "$(column '4 x 2, random' 4)"
above "a rotation" "$(column '3 x 4, random' 4)" "$(column '3 x 4, none' 4)"
check "5 % of the range is enough" test "$(awk -F ' *[|] *' '$3 == "5 %" {print ($4 > 0.99)}' "$folder/said")" = 1

tables rbegir_tables.py --rows 20000 --num-queries 50
check "two tables" test "$(grep -c '^| ---' "$folder/said")" = 2
kept=$(column 'a thread keeps 1' 3) predicted=$(column 'a thread keeps 1' 4)
check "as many as the closed form says" awk -v a="$kept" -v b="$predicted" 'BEGIN {exit !(b > 0.5 && (a - b) ^ 2 < 1e-3)}'
above "a longer queue" "$(column 'a thread keeps 2' 3)" "$kept"
finish
