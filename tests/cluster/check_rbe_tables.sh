#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/papers/rbe_tables.sh: a tiny run trains every model and prints every table; tables and gates of the
# paper's own numbers are the paper's; a gate that fails is the exit code.
# usage: check_rbe_tables.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
script=$2/bench/papers/rbe_tables.sh

# check TEXT COMMAND
check() {
    local text=$1
    shift
    if "$@" >"$folder/messages" 2>&1; then
        pass "$text"
    else
        complain "$text"
        tail -n 60 "$folder/messages" "$folder/stdout" >&2
    fi
}

# tables CODE ARGUMENTS: the script, with that exit code.
tables() {
    local code=$1 got=0
    shift
    bash "$script" "$@" >"$folder/stdout" 2>"$folder/stderr" || got=$?
    ((got == code))
}

has() {
    grep -qE -- "$1" "$folder/stdout"
}

# ---- a run ----

code=0
bash "$script" --rows 1500 --seeds 1 --epochs 1 --jobs 2 "$folder/out" >"$folder/stdout" 2>"$folder/stderr" || code=$?
gates=$(grep -cE '^(ok|FAILED): .* < .*difference -?[0-9.]+ \+- 0.0000$' "$folder/stdout" || true)
check "five gates" test "$gates" = 5
fails=$(grep -c '^FAILED: ' "$folder/stdout" || true)
check "the exit code is the gates'" test "$code" = $((fails > 0))
check "a line a training" test "$(grep -cP '^[^#\t]+\t1(\t[0-9.]+){5}$' "$folder/out/runs.tsv")" = 18
check "figures of each model" test "$(cut -f 3-5 "$folder/out/runs.tsv" | sort -u | wc -l)" = 19
for table in 2 4 5 6; do check "table $table" has "^Table $table: "; done
check "it is kept" cmp "$folder/stdout" "$folder/out/tables.txt"
check "nothing is left behind" test "$(cd "$folder/out" && echo *)" = "runs.tsv tables.txt"

# ---- the paper's numbers, twice with a little noise ----

# paper_runs WEIGHTS_OF_RBE_3: the last ROC AUC.
paper_runs() {
    local model loss auc
    while read -r model loss auc; do
        awk -v OFS='\t' -v m="$model" -v l="$loss" -v a="$auc" \
            'BEGIN {print m, 1, l, l, a + 1e-4, 0.5, 3; print m, 2, l, l, a - 1e-4, 0.5, 3}'
    done <<END
m_1 0.0293 0.8044
m_2 0.0481 0.7719
m_3 0.0425 0.7846
m_5 0.0311 0.8011
rbe_2 0.0333 0.7972
rbe* 0.0312 0.8005
rbe_3 0.0294 $1
m_2:straight 0.05 0.7700
rbe_2:straight 0.04 0.7900
rbe*:straight 0.04 0.7900
rbe_3:straight 0.04 0.7900
m_2:annealing 0.05 0.7730
rbe_2:annealing 0.04 0.7950
rbe*:annealing 0.04 0.8007
rbe_3:annealing 0.04 0.8014
rbe_2:flat 0.04 0.7886
rbe*:flat 0.04 0.7926
rbe_3:flat 0.04 0.7945
END
}

paper_runs 0.8034 >"$folder/paper.tsv"
check "the paper passes the gates" tables 0 --report "$folder/paper.tsv" "$folder/paper"
check "lift of rbe*" has '^rbe\*  *3/2  0.0312  0.0312  0.8005 \+- 0.0001    80.30 .* 80.30$'
check "lift of m_5" has '^m_5  *32/2  .* 83.33 .* 83.33$'
check "lift of m_2" has '^m_2  *1/1  .* -64.14 .* -64.14$'
check "lift of residual weights" has '^rbe_2   0.7886 .* 43.43 .* 43.43$'
check "estimators" has '^rbe_3   0.7900 \+- 0.0001  0.8034 \+- 0.0001  0.8014 \+- 0.0001 .* 0.8034  0.8014$'
check "the gap" has 'm_2 to rbe_2 127.78 % \(paper 127.78\), .* 16.67 % \(16.67\), rbe_3 to m_1 5.05 % \(5.05\)'

paper_runs 0.7945 >"$folder/other.tsv"
check "a gate fails" tables 1 --report "$folder/other.tsv" "$folder/other"
check "it is named" has '^FAILED: no weights < weights, rbe_3: 0.7945 < 0.7945, difference 0.0000'
check "no other does" test "$(grep -c '^FAILED' "$folder/stdout")" = 1
grep -v '^m_3' "$folder/paper.tsv" >"$folder/less.tsv"
check "a model without a run" tables 2 --report "$folder/less.tsv" "$folder/less"
check "an unknown option" tables 2 --rate 3 "$folder/less"

finish
