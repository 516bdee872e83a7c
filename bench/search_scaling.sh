#!/usr/bin/env bash
# How searching grows: with threads (beside what the multiply-add peak gets), rows, k, and one query at
# a time. `bitsweep bench cluster` has the ranks.
# usage: bench/search_scaling.sh BASE QUERIES OUT_FOLDER [ROWS [QUERY_ROWS]]
set -euo pipefail

(($# >= 3)) || {
    echo "usage: bench/search_scaling.sh BASE QUERIES OUT_FOLDER [ROWS [QUERY_ROWS]]" >&2
    exit 2
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export BITSWEEP=${BITSWEEP:-$root/build/release/bitsweep}
base=$1 queries=$2 out=$3 rows=${4:-} query_rows=${5:-}
repeat=5
cores=$(nproc)
export OMP_WAIT_POLICY=passive

mkdir -p "$out"
number() {
    sed -n "s/^ *\"$2\": \([-0-9.e+]*\),\{0,1\}\$/\1/p" "$1" | head -n 1
}
ratio() {
    awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", a / b }'
}

# rate THREADS INDEX QUERIES OPTIONS...: median queries/s; details in search.json.
rate() {
    local threads=$1 index=$2 from=$3
    shift 3
    "$BITSWEEP" search --index "$index" --queries "$from" --out "$out/result" \
        --force --threads "$threads" --warmup 1 --repeat "$repeat" --json --quiet "$@" \
        >"$out/search.json"
    number "$out/search.json" queries_per_second
}

# peaks THREADS: the sum of the multiply-add peaks of so many at once.
peaks() {
    "$BITSWEEP" bench memory --threads "$1" --max 32K --json >"$out/peak.json"
    number "$out/peak.json" operations_per_second # of the first row, int8
}

range=(${rows:+--rows "$rows"})
query_range=(${query_rows:+--query-rows "$query_rows"})
for bits in 2 3; do
    "$BITSWEEP" encode --base "$base" ${range[@]+"${range[@]}"} --metric l2 --bits $bits \
        --index "$out/saq$bits" --force --quiet
done
index=$out/saq3
own=("$index" "$queries" ${query_range[@]+"${query_range[@]}"})
one=$(rate 1 "${own[@]}")
echo "# $(basename "$base"), $cores cores, medians of $repeat passes, level" \
    "$(sed -n 's/^ *"level": "\(.*\)",*$/\1/p' "$out/search.json")"

echo "# threads: queries/s, and over one thread; multiply-add peak of as many threads over one"
peak=$(peaks 1)
for ((t = 2; t <= cores; t *= 2)); do
    many=$(rate "$t" "${own[@]}")
    many_peak=$(peaks "$t")
    echo "threads $t: $many over $one is $(ratio "$many" "$one"), peaks $(ratio "$many_peak" "$peak")," \
        "share $(awk -v a="$many" -v b="$one" -v c="$many_peak" -v d="$peak" \
            'BEGIN { printf "%.3f", a / b / (c / d) }')"
done

echo "# k, oversample 1, one thread: seconds of scan and selection"
for scan in matrix auto; do
    for k in 10 100 1000; do
        rate 1 "${own[@]}" --k "$k" --oversample 1 --scan "$scan" >/dev/null
        seconds=$(number "$out/search.json" scan)
        [[ $k != 10 ]] || first=$seconds
        echo "$scan, k $k: $seconds, over k 10: $(ratio "$seconds" "$first")"
    done
done

echo "# one query at a time, one thread"
for bits in 2 3; do
    for scan in planes progressive-planes auto; do
        echo "$bits bits, $scan: $(rate 1 "$out/saq$bits" "$queries" \
            ${query_range[@]+"${query_range[@]}"} --batch 1 --scan "$scan") queries/s"
    done
done

echo "# rows (synth, 96 dims, 2,000 clusters), one thread, batch of 200: nanoseconds a row and query"
for millions in 1 2 4; do
    "$BITSWEEP" encode --base "synth:count=${millions}M,dims=96,seed=1,clusters=2000" --metric l2 \
        --bits 3 --index "$out/synth" --force --quiet
    rate 1 "$out/synth" synth:count=200,dims=96,seed=2,clusters=2000 --refine none --scan matrix \
        >/dev/null
    seconds=$(number "$out/search.json" scan)
    echo "rows ${millions}M: $(awk -v s="$seconds" -v n="$millions" \
        'BEGIN { printf "%.4f", s / (n * 1e6 * 200) * 1e9 }') ns"
done
