#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Changes of the data that change no neighbour must cost no recall, whatever the code, the metric and the kind of data:
# other units, a translation, a turn, another order, more zeros, copies, an outlier. Changes that are wrong on
# purpose must be noticed. metamorphic.py says how, hard_data.py has the data.
# usage: check_metamorphic.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# BITSWEEP_METAMORPHIC_SEED: the number of the first case (1), from which they count up; a number always is the same
# case. BITSWEEP_METAMORPHIC_CASES: how many (150, half of all codes with all changes, about a minute; 16 with QUICK=1),
# or all.
# BITSWEEP_METAMORPHIC_MINUTES: how long, instead. A case that fails prints the line that repeats it.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"

library=$(dirname "$program")/libbitsweep.so
needs "$library"
find_python
source=$(realpath "$2")
export BITSWEEP_LIBRARY=$library PYTHONPATH=$source/python PYTHONDONTWRITEBYTECODE=1
first=${BITSWEEP_METAMORPHIC_SEED:-1}
minutes=${BITSWEEP_METAMORPHIC_MINUTES:-0}
cases=${BITSWEEP_METAMORPHIC_CASES:-}
if [[ ! $cases ]]; then
    cases=0
    if [[ $minutes == 0 ]]; then cases=${QUICK:+16} cases=${cases:-150}; fi
fi

# table_is_written KIND: bench/peers/hard_data_table.py judges a kind that is easy, without FAISS as well.
table_is_written() {
    "$python" "$source/bench/peers/hard_data_table.py" --rows 800 --queries 20 --dims 32 --lists 8 --kinds "$1" \
        >"$folder/table" 2>"$folder/stderr" && (($(grep -cE "^\\| $1 \\|" "$folder/table") == 3))
}

if "$python" "$source/tests/cluster/metamorphic.py" "$first" "$cases" "$minutes"; then
    pass "cases from $first"
else
    complain "cases from $first" /dev/null
fi
if table_is_written sparse; then pass; else complain "hard_data_table.py: $(tail -n 1 "$folder/table")"; fi
finish
