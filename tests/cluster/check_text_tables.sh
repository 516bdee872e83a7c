#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/papers/text_tables.py: a tiny run trains every model and prints the whole table.
# usage: check_text_tables.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_python
PATH=$(dirname "$program"):$PATH
if ! "$python" -c 'import sqlite3; sqlite3.connect(":memory:").execute("create virtual table t using fts5(x)")' 2>/dev/null; then
    echo "SQLite has no FTS5" && exit 77
fi
code=0
"$python" -B "$2/bench/papers/text_tables.py" --pairs "$2/tests/data/oewn_pairs.tsv" --out "$folder/out" --held-out 100 \
    --epochs 1 --batch 128 --seeds 1 >"$folder/said" 2>"$folder/stderr" || code=$?
check "exit code $code" test $code = 0
check "its sizes" grep -q '^1681 pairs, 100 held-out queries, 1781 documents; ' "$folder/said"
check "every line" test "$(grep -cE '^\| [A-Za-z].* \| [0-9]* \|( [0-9.]+ \|){5}$' "$folder/said")" = 13
check "words find something" grep -qE '^\| BM25 of words \|  \| 0\.[1-9]' "$folder/said"
finish
