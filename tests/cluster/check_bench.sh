#!/usr/bin/env bash
# bench tune: a header for every level of this CPU that is formatted as the tree's, compiles alone in C
# and C++ and holds a row for each combination; the same rows as JSON; replaced only with --force.
# What was measured is not judged.
# ctest labels: asan
# usage: check_bench.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
bitsweep=$program
source_folder=$(realpath "$2")
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

# A use of the table, so that a wrong name or type of it does not compile.
compiles() {
    printf '#include "%s"\n#include "%s"\nuint32_t use(void);\nuint32_t use(void)\n{\n    return %s[0].dims;\n}\n' \
        "$1" "$1" "bsw_scan_tuning_$2" |
        "${@:3}" -fsyntax-only -Wall -Wextra -Werror -I"$source_folder" -
}

is_formatted() {
    cp "$source_folder/.clang-format" "$work"
    "$formatter" --dry-run -Werror "$1" && [[ $(tail -c 1 "$1" | wc -l) == 1 ]]
}

# The combinations, as both outputs name them.
has_rows() {
    diff <(sed -nE 's/^    \{([0-9]+), ([0-9]+), ([0-9]+|UINT32_MAX), [0-9]+, [0-9.]+f, [0-9.]+f\},$/\1 \2/p' "$1") \
        <(printf '%s\n' "${@:2}")
}

has_json_rows() {
    diff <(grep -oE '"(dims|bits)": [0-9]+' "$1" | grep -oE '[0-9]+$' | paste -d ' ' - -) \
        <(printf '%s\n' "${@:2}")
}

formatter=clang-format
if command -v clang-format-14 >/dev/null; then formatter=clang-format-14; fi
has_formatter=1
"$formatter" --version 2>/dev/null | grep -q 'version 14\.' || has_formatter=0

num_levels=0
for level in reference avx2 avx512; do
    header=$work/$level.h
    if ! tune --level $level --dims 64 --bits 8,1 --out "$header" >"$work/table" 2>"$work/stderr"; then
        grep -q 'this CPU reaches' "$work/stderr" && echo "$level: not on this CPU" && continue
        check "bench tune --level $level" cat "$work/stderr" /dev/null/none
        continue
    fi
    num_levels=$((num_levels + 1))
    check "$level: a row for each combination" has_rows "$header" '64 8' '64 1'
    check "$level: names the level" grep -q "tune --level $level --seconds 0.0001$" "$header"
    check "$level: a table of both" test "$(grep -cv '^#' "$work/table")" = 2
    check "$level: compiles as C" compiles "$header" $level cc -std=gnu17 -x c
    if command -v c++ >/dev/null; then
        check "$level: compiles as C++" compiles "$header" $level c++ -std=gnu++17 -x c++
    fi
    if ((has_formatter)); then check "$level: is formatted" is_formatted "$header"; fi
done
check "at least the reference was tuned" test $num_levels -gt 0

header=$work/reference.h
cp "$header" "$work/before"
if tune --out "$header" 2>/dev/null; then
    check "an existing file is refused" false
else
    check "an existing file is left alone" cmp "$header" "$work/before"
fi
tune --dims 32 --bits 1,2,3,4,5,6,7,8 --out "$header" --force --json --quiet >"$work/rows.json"
rows=('32 1' '32 2' '32 3' '32 4' '32 5' '32 6' '32 7' '32 8')
check "--force replaces it" has_rows "$header" "${rows[@]}"
check "--json has the rows" has_json_rows "$work/rows.json" "${rows[@]}"
if ((has_formatter)); then check "a table of many rows is formatted" is_formatted "$header"; fi
tune --level reference --dims 32,64 --bits 2 >"$work/stdout.h" 2>/dev/null
check "without --out the header is on stdout" has_rows "$work/stdout.h" '32 2' '64 2'

# What is checked in must be such headers too, not edited by hand into something else.
for level in reference avx2 avx512; do
    check "$level: the one of the tree compiles" compiles "$source_folder/kernels/scan_tuning_$level.h" \
        $level cc -std=gnu17 -x c
done

echo "$passed passed, $failed failed"
((failed == 0))
