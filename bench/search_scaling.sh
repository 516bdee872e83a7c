#!/usr/bin/env bash
# How searching grows: with threads (beside what independent processes of the multiply-add peak
# get), ranks beyond cores, rows, k, and one query at a time.
# usage: bench/search_scaling.sh BASE QUERIES OUT_FOLDER [ROWS [QUERY_ROWS]]
set -euo pipefail

(($# >= 3)) || {
    echo "usage: bench/search_scaling.sh BASE QUERIES OUT_FOLDER [ROWS [QUERY_ROWS]]" >&2
    exit 2
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export BITSWEEP=${BITSWEEP:-$root/build/release/bitsweep}
peak_bench=$(dirname "$BITSWEEP")/bench/bench_matrix_scan
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

# rate RANKS THREADS INDEX QUERIES OPTIONS...: median queries/s; details in search.json.
rate() {
    local ranks=$1 threads=$2 index=$3 from=$4
    shift 4
    "$root/deploy/run.sh" -n "$ranks" search --index "$index" --queries "$from" --out "$out/result" \
        --force --threads "$threads" --warmup 1 --repeat "$repeat" --json --quiet "$@" \
        >"$out/search.json"
    number "$out/search.json" queries_per_second
}

# peaks PROCESSES: the sum of the multiply-add peaks of so many at once, each its best of a run.
peaks() {
    local i
    for ((i = 0; i < $1; i++)); do
        "$peak_bench" --rows 20000 --queries 256 --repeats 3 >"$out/peak.$i" &
    done
    wait
    for ((i = 0; i < $1; i++)); do
        awk '!/^#/ && $4 > most { most = $4 } END { print most }' "$out/peak.$i"
    done | awk '{ sum += $1 } END { print sum }'
}

range=(${rows:+--rows "$rows"})
query_range=(${query_rows:+--query-rows "$query_rows"})
make_index() {
    "$BITSWEEP" encode --base "$base" ${range[@]+"${range[@]}"} --metric l2 --bits "$1" \
        --shards "$2" --index "$3" --force --quiet
}
make_index 2 1 "$out/saq2"
make_index 3 1 "$out/saq3"
make_index 3 $((2 * cores)) "$out/shards"
index=$out/saq3
own=("$index" "$queries" ${query_range[@]+"${query_range[@]}"})
one=$(rate 1 1 "${own[@]}")
echo "# $(basename "$base"), $cores cores, medians of $repeat passes, level" \
    "$(sed -n 's/^ *"level": "\(.*\)",*$/\1/p' "$out/search.json")"

echo "# threads: queries/s, and over one thread; multiply-add peak of as many processes over one"
peak=$(peaks 1)
for ((t = 2; t <= cores; t *= 2)); do
    many=$(rate 1 "$t" "${own[@]}")
    many_peak=$(peaks "$t")
    echo "threads $t: $many over $one is $(ratio "$many" "$one"), peaks $(ratio "$many_peak" "$peak")," \
        "share $(awk -v a="$many" -v b="$one" -v c="$many_peak" -v d="$peak" \
            'BEGIN { printf "%.3f", a / b / (c / d) }')"
done

echo "# ranks of one thread: as many as cores, and twice that"
shards=("$out/shards" "${own[@]:1}")
some=$(rate "$cores" 1 "${shards[@]}")
more=$(rate $((2 * cores)) 1 "${shards[@]}")
echo "ranks $cores: $some, $((2 * cores)): $more, ratio $(ratio "$more" "$some")"

echo "# k, oversample 1, one thread: seconds of scan and selection"
for scan in matrix auto; do
    for k in 10 100 1000; do
        rate 1 1 "${own[@]}" --k "$k" --oversample 1 --scan "$scan" >/dev/null
        seconds=$(number "$out/search.json" scan)
        [[ $k != 10 ]] || first=$seconds
        echo "$scan, k $k: $seconds, over k 10: $(ratio "$seconds" "$first")"
    done
done

echo "# one query at a time, one thread"
for bits in 2 3; do
    for scan in planes progressive-planes auto; do
        echo "$bits bits, $scan: $(rate 1 1 "$out/saq$bits" "$queries" \
            ${query_range[@]+"${query_range[@]}"} --batch 1 --scan "$scan") queries/s"
    done
done

echo "# rows (synth, 96 dims, 2,000 clusters), one thread, batch of 200: nanoseconds a row and query"
for millions in 1 2 4; do
    "$BITSWEEP" encode --base "synth:count=${millions}M,dims=96,seed=1,clusters=2000" --metric l2 \
        --bits 3 --index "$out/synth" --force --quiet
    rate 1 1 "$out/synth" synth:count=200,dims=96,seed=2,clusters=2000 --refine none --scan matrix \
        >/dev/null
    seconds=$(number "$out/search.json" scan)
    echo "rows ${millions}M: $(awk -v s="$seconds" -v n="$millions" \
        'BEGIN { printf "%.4f", s / (n * 1e6 * 200) * 1e9 }') ns"
done
