#!/usr/bin/env bash
# XFBQ's precision against extra distance (paper, Section 3.6 and Figure 5): histogram selection of
# 3-bit codes with 4-bit queries, refined exactly.
# usage: bench/extra_distance.sh BASE QUERIES OUT_FOLDER [EXTRA ...]
set -euo pipefail

(($# >= 3)) || {
    echo "usage: bench/extra_distance.sh BASE QUERIES OUT_FOLDER [EXTRA ...]" >&2
    exit 2
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bitsweep=${BITSWEEP:-$root/build/release/bitsweep}
base=$1 queries=$2 out=$3
shift 3
extras=("${@:-0}")
(($#)) || extras=(0 5 10 15 20 30 40 50 60 70 80 90 100 110 120 140 160)

mkdir -p "$out"
number() {
    sed -n "s/^ *\"$2\": \([-0-9.e+]*\),\{0,1\}\$/\1/p" "$1" | head -n 1
}

"$bitsweep" encode --base "$base" --index "$out/index" --codec xfbq --bits 3 --force --json \
    >"$out/encode.json"
for k in 10 100; do
    "$bitsweep" groundtruth --base "$base" --queries "$queries" --metric cosine --k "$k" \
        --out "$out/truth.$k" --force --quiet
done
{
    echo "# $(basename "$base"): $(number "$out/encode.json" rows) rows x" \
        "$(number "$out/encode.json" dims) dims, scale $(number "$out/encode.json" xfbq_scale)"
    echo "# extra  k=10: precision  candidates   k=100: precision  candidates"
} | tee "$out/extra_distance.table"
for extra in "${extras[@]}"; do
    row=$(printf '%7s' "$extra")
    for k in 10 100; do
        "$bitsweep" search --index "$out/index" --queries "$queries" --k "$k" --query-bits 4 \
            --extra-distance "$extra" --out "$out/result" --force --json >"$out/search.json"
        "$bitsweep" eval --results "$out/result" --groundtruth "$out/truth.$k" --json \
            >"$out/eval.json"
        row+=$(awk -v r="$(number "$out/eval.json" "$k-recall@$k")" \
            -v s="$(number "$out/search.json" survivors)" \
            -v q="$(number "$out/search.json" queries)" \
            'BEGIN {printf "  %15.4f  %10.1f", r, s / q}')
    done
    echo "$row" | tee -a "$out/extra_distance.table"
done

gnuplot -e "table='$out/extra_distance.table'" -e "out='$out/extra_distance'" \
    -e "title='$(basename "$base")'" "$root/bench/extra_distance.gnuplot"
echo "plots: $out/extra_distance.svg $out/extra_distance.png"
