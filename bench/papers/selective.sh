#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What entries within a radius find, and what they leave out: bench/RESULTS_selective.md, on stdout.
# usage: bench/papers/selective.sh BITSWEEP BASE QUERIES FOLDER [LISTS [PROBE [TRUTH]]]
#
# FOLDER keeps index and ground truth for the next run; with TRUTH, of the 100 nearest, none is computed. METRIC (l2)
# may be another that these vectors are for. Times are CPU time of one thread, the least of RUNS (3). K (100) rows are
# asked for; with 1000, which is what the paper's high quality goes by, there is a column R100@1000.
set -euo pipefail

if (($# < 4)); then
    echo "usage: bench/papers/selective.sh BITSWEEP BASE QUERIES FOLDER [LISTS [PROBE [TRUTH]]]" >&2
    exit 2
fi
program=$1 base=$2 queries=$3 folder=$4 lists=${5:-256} probe=${6:-16} runs=${RUNS:-3} metric=${METRIC:-l2} k=${K:-100}
truth=${7:-$folder/truth}
mkdir -p "$folder"

[[ -e $folder/index/manifest.pb ]] || "$program" encode --base "$base" --metric "$metric" --codec pq --entries radius \
    --rotation none --lists "$lists" --calibrate off --index "$folder/index" --threads 1 --quiet >/dev/null
[[ -e $truth ]] || "$program" groundtruth --base "$base" --queries "$queries" --metric "$metric" --k 100 \
    --out "$truth" --threads 1 --quiet >/dev/null

# number NAME FILE: of JSON
number() {
    sed -nE "s/^ *\"$1\": ([0-9.e-]+),?$/\1/p" "$2" | head -n 1
}

recalls=(1-recall@100 100-recall@100)
if ((k >= 1000)); then recalls+=(100-recall@1000); fi

# measure NAME ARGUMENT...: a line of the table; the least CPU time of three runs.
measure() {
    local name=$1 best='' seconds share lookups recall
    shift
    for ((run = 0; run < runs; run++)); do
        TIMEFORMAT=%U
        seconds=$({ time "$program" search --index "$folder/index" --queries "$queries" --k "$k" --probe "$probe" \
            --refine none --out "$folder/result" --force --quiet --threads 1 --check-every never --json "$@" \
            >"$folder/facts"; } 2>&1)
        if [[ -z $best ]] || awk "BEGIN {exit !($seconds < $best)}"; then best=$seconds; fi
    done
    share=$(number entries_share "$folder/facts")
    "$program" eval --results "$folder/result" --groundtruth "$truth" --json >"$folder/recalls"
    lookups=$(number lookups_share "$folder/facts")
    printf '| %s | %.3f | %.3f |' "$name" "${share:-1}" "${lookups:-1}"
    for recall in "${recalls[@]}"; do printf ' %.3f |' "$(number "$recall" "$folder/recalls")"; done
    printf ' %s |\n' "$best"
}

rows=$("$program" info "$base" --json | sed -nE 's/^ *"(rows|count)": ([0-9]+),?$/\2/p' | head -n 1)
cat <<HEAD
# Entries within a radius, beside full tables

Made by \`bench/papers/selective.sh\`: $(basename "$base") (${rows:-?} rows), $lists lists, $probe of them a query, subspaces of 2
dimensions, 256 entries each, k $k, metric $metric, no refinement. \`share\` is of entries within their radius, of those of all tables;
\`look-ups\` of rows' codes that find one, of all that full tables do, sampled.
R1@100: the nearest row is among the 100. CPU seconds of the whole process, with loading, one thread, the least of $runs
runs, on a CPU that calls itself $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1).

HEAD
printf '| entries | share | look-ups |'
for recall in "${recalls[@]}"; do printf ' R%s |' "${recall/-recall/}"; done
printf ' CPU seconds |\n| --- | ---: | ---: |'
for recall in "${recalls[@]}"; do printf ' ---: |'; done
printf ' ---: |\n'
measure all
for mode in H M L; do
    for scale in 0.2 0.3 0.4 0.5 0.6 0.7 1; do
        measure "$mode, radius x $scale" --entries radius --mode "$mode" --radius-scale "$scale"
    done
done
for radii in small large; do
    for scale in 0.3 0.5 0.7 1; do
        measure "H, $radii static radius x $scale" --entries radius --radii "$radii" --radius-scale "$scale"
    done
done
if [[ $metric == l2 ]]; then
    for scale in 0.7 0.85 1 1.2; do
        measure "H, nearest x $scale, mean of misses" --entries radius --radii nearest --miss mean --radius-scale "$scale"
    done
    measure "H, nearest x 1" --entries radius --radii nearest
fi
