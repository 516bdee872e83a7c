#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which code to take with lists: product codes beside saq, by bytes, recall, speed and the time to make an index: a table
# for docs/product_codes.md, on stdout.
# usage: bench/code_choice.sh BITSWEEP BASE QUERIES FOLDER [LISTS [ROWS]]
#
# FOLDER keeps indexes, their times and the ground truth for the next run. Times are CPU time of one thread: rates are of
# all queries less those of the first 16, the least of RUNS (3).
set -euo pipefail

if (($# < 4)); then
    echo "usage: bench/code_choice.sh BITSWEEP BASE QUERIES FOLDER [LISTS [ROWS]]" >&2
    exit 2
fi
program=$1 base=$2 queries=$3 folder=$4 lists=${5:-1024} rows=${6:-} runs=${RUNS:-3}
targets=(0.90 0.95 0.99)
probes=(4 8 16 32 64 128)
codes=("pq --subspaces 16" "pq --subspaces 32 --bits 4" "pq --subspaces 32" "pq --subspaces 64 --bits 4" "saq --bits 1"
    "saq --bits 1.5" "saq --bits 2" "saq --bits 3")
few=16
part=()
[[ -z $rows ]] || part=(--rows "0:$rows")
mkdir -p "$folder"
truth=$folder/truth-${rows:-all}
[[ -e $truth ]] || "$program" groundtruth --base "$base" ${part[@]+"${part[@]}"} --queries "$queries" --metric l2 --k 10 \
    --out "$truth" --threads 1 --quiet >/dev/null
num_queries=$("$program" info "$queries" --json | sed -nE 's/^ *"(rows|count)": ([0-9]+),?$/\2/p' | head -n 1)

# seconds COMMAND...: its CPU time.
seconds() {
    TIMEFORMAT='%U %S'
    { time "$@" >/dev/null; } 2>&1 | tail -n 1 | awk '{print $1 + $2}'
}

# least ARGUMENT...: CPU time of a search, the least of some.
least() {
    for ((run = 0; run < runs; run++)); do
        seconds "$program" search --queries "$queries" --k 10 --oversample 10 --batch 10000 --out "$folder/result" \
            --force --quiet --threads 1 --check-every never "$@"
    done | sort -g | head -n 1
}

# points INDEX: lines of recall and rate.
points() {
    local probe all some recall
    for probe in "${probes[@]}"; do
        ((probe <= lists)) || continue
        some=$(least --index "$1" --probe "$probe" --query-rows 0:$few)
        all=$(least --index "$1" --probe "$probe")
        recall=$("$program" eval --results "$folder/result" --groundtruth "$truth" --json |
            sed -nE 's/.*"10-recall@10": ([0-9.]+).*/\1/p')
        awk -v n=$((num_queries - few)) -v a="$all" -v s="$some" -v r="$recall" \
            'BEGIN { t = a - s; print r, n / (t > 1e-3 ? t : 1e-3) }'
    done
}

# rates TARGET...: of points, between neighbours by the logarithm of the rate; a dash where none is as high.
rates() {
    awk -v targets="$*" '
        { r[NR] = $1; q[NR] = $2 }
        END {
            n = split(targets, t, " ")
            for (i = 1; i <= n; i++) {
                found = ""
                for (j = NR; j >= 1; j--) if (r[j] >= t[i]) {
                    share = j > 1 && r[j - 1] < t[i] ? (r[j] - t[i]) / (r[j] - r[j - 1]) : 0
                    found = j > 1 ? q[j] ^ (1 - share) * q[j - 1] ^ share : q[j]
                }
                printf " %s |", found == "" ? "-" : sprintf("%.0f", found)
            }
            printf " %.4f |\n", r[NR]
        }'
}

cat <<HEAD
Made by \`bench/code_choice.sh\`: $(basename "$base") (${rows:-all} rows), $num_queries queries, l2, $lists lists, k 10, the best
100 by code refined. Queries a second of one thread's CPU time, and CPU seconds of \`encode\`, on a CPU that calls
itself $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1).

| code | bytes a vector |$(printf ' at 10-recall@10 of %s |' "${targets[@]}") most reached | encode |
| --- | ---: |$(printf ' ---: |%.0s' "${targets[@]}") ---: | ---: |
HEAD
for code in "${codes[@]}"; do
    index=$folder/$(tr -d ' -' <<<"$code")-$lists-${rows:-all}
    read -ra words <<<"$code"
    rotation=()
    [[ $code != pq* ]] || rotation=(--rotation none)
    [[ -e $index/manifest.pb && -e $index.seconds ]] ||
        seconds "$program" encode --base "$base" ${part[@]+"${part[@]}"} --metric l2 --codec "${words[@]}" \
            ${rotation[@]+"${rotation[@]}"} --lists "$lists" --calibrate off --index "$index" --force --quiet \
            --threads 1 >"$index.seconds"
    bytes=$("$program" info "$index" --json | sed -nE 's/^ *"bytes_per_vector": ([0-9.]+),?$/\1/p')
    # shellcheck disable=SC2016 # of Markdown
    printf '| `%s` | %.0f |%s %.0f s |\n' "$code" "$bytes" "$(points "$index" | rates "${targets[@]}")" \
        "$(cat "$index.seconds")"
done
