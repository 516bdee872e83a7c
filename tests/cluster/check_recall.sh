#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Recall on 20,000 real descriptors: of the code alone, of the candidates, of the refined answer; and
# the same answer from replicas.
# usage: check_recall.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"

# judge WHAT COMMAND...: passed if the command succeeds.
judge() {
    local what=$1
    shift
    if "$@"; then
        pass
    else
        complain "$what"
    fi
}

# is A OPERATOR B: of decimal numbers.
is() {
    awk -v a="$1" -v b="$3" -v operator="$2" \
        'BEGIN {exit !(operator == ">=" ? a >= b : a - b < 0.0011 && b - a < 0.0011)}'
}

# recall NAME OPTIONS...: searches the index and prints the recall of that name, of the true 10.
recall() {
    local name=$1
    shift
    "$program" search --index "$folder/index" --queries "$queries" --out "$folder/result" --force \
        --quiet "$@"
    "$program" eval --results "$folder/result" --groundtruth "$folder/truth-$metric" --k 10 --json |
        sed -n "s/.*\"$name\": \([0-9.]*\).*/\1/p"
}

# Gates are about 0.02 below what was measured: by code alone, 10 of 10 and 10 of 50, and refined.
# The candidates to refine are the first 50 by code, so the last two columns should agree.
echo "codec bits metric  10-recall@10 (gate)  10-recall@50  refined (gate)"
while read -r codec bits metric gate refined_gate rotation; do
    if [[ ! -e $folder/truth-$metric ]]; then
        "$program" groundtruth --base "$base" --queries "$queries" --metric "$metric" \
            --out "$folder/truth-$metric" --quiet
    fi
    "$program" encode --base "$base" --codec "$codec" --bits "$bits" --metric "$metric" \
        --index "$folder/index" --force --quiet ${rotation:+--rotation "$rotation"}
    if [[ $codec == xfbq ]]; then # SIFT is rotated unasked
        "$program" info "$folder/index" --json >"$folder/json"
        judge "xfbq: no rotation ${rotation:-random}" grep -q "\"rotation\": \"${rotation:-random}\"" "$folder/json"
    fi
    by_code=$(recall 10-recall@10 --refine none)
    candidates=$(recall 10-recall@50 --refine none --k 50)
    refined=$(recall 10-recall@10)
    printf '%-5s %4s %-6s  %12s %6s  %12s  %7s %6s\n' "$codec" "$bits" "$metric" "$by_code" "($gate)" \
        "$candidates" "$refined" "($refined_gate)"
    what="$codec, $bits bits, $metric"
    judge "$what: 10-recall@10 by code" is "${by_code:-0}" ">=" "$gate"
    judge "$what: 10-recall@10 refined" is "${refined:-0}" ">=" "$refined_gate"
    judge "$what: refinement loses candidates" is "${refined:-0}" "=" "${candidates:-1}"
done <<'GATES'
xfbq 3   cosine 0.60 0.95
xfbq 3   cosine 0.42 0.78 none
saq  1.5 cosine 0.67 0.98
saq  2   cosine 0.76 0.99
saq  3   cosine 0.86 0.99
saq  4   cosine 0.90 0.99
saq  2   ip     0.78 0.99
saq  3   ip     0.85 0.99
saq  4   ip     0.90 0.99
saq  2   l2     0.77 0.99
saq  3   l2     0.85 0.99
saq  4   l2     0.90 0.99
GATES

has_mpi=1
if command -v mpirun >/dev/null && "$run" -n 2 -- --version >/dev/null 2>&1; then
    echo "replicas: 3, 5 and 8 ranks over 2 shards against 1 rank"
    "$program" encode --base "$base" --metric l2 --shards 2 --index "$folder/index" --force --quiet
    "$program" search --index "$folder/index" --queries "$queries" --out "$folder/alone" --quiet
    for ranks in 3 5 8; do
        ((ranks <= ${BITSWEEP_MAX_RANKS:-8})) || continue
        "$run" -n "$ranks" search --index "$folder/index" --queries "$queries" --batch 70 \
            --out "$folder/replicas" --force --quiet --json >"$folder/json" || true
        judge "$ranks ranks give other results" cmp "$folder/alone" "$folder/replicas"
        judge "$ranks ranks did not run" grep -q "^  \"ranks\": $ranks," "$folder/json"
    done
else
    has_mpi=0
    echo "mpirun is missing or this build has no MPI: replicas are skipped"
fi

finish
