#!/usr/bin/env bash
# Recall of every code size in three metrics, bytes a vector with all scales beside it.
# usage: bench/accuracy.sh BASE QUERIES OUT_FOLDER [NUMBER_OF_QUERIES]
set -euo pipefail

(($# >= 3)) || {
    echo "usage: bench/accuracy.sh BASE QUERIES OUT_FOLDER [NUMBER_OF_QUERIES]" >&2
    exit 2
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bitsweep=${BITSWEEP:-$root/build/release/bitsweep}
base=$1 queries=$2 out=$3 rows=:${4:-1000}
mkdir -p "$out"

number() {
    sed -n "s/^ *\"$2\": \([-0-9.e+]*\),\{0,1\}\$/\1/p" "$1" | head -n 1
}
search() {
    "$bitsweep" search --index "$out/index" --queries "$queries" --query-rows "$rows" --force --quiet "$@"
}

# try METRIC CODEC BITS [ENCODE OPTIONS]: a row of the table.
try() {
    local metric=$1 codec=$2 bits=$3 k segments
    shift 3
    segments=("$@")
    ((${#segments[@]})) || segments=(--bits "$bits")
    "$bitsweep" encode --base "$base" --index "$out/index" --codec "$codec" --metric "$metric" \
        "${segments[@]}" --force --json >"$out/encode.json"
    for k in 10 50; do search --k "$k" --refine none --out "$out/code.$k"; done
    search --k 10 --oversample 5 --out "$out/refined"
    for k in code.10 code.50 refined; do
        "$bitsweep" eval --results "$out/$k" --groundtruth "$out/truth.$metric" --k 10 --json \
            >"$out/$k.eval"
    done
    printf '%-7s %-5s %5s  %-28s %7s %10.4f %10.4f %10.4f\n' "$metric" "$codec" "$bits" \
        "$(sed -n 's/^ *"segments": "\(.*\)",$/\1/p' "$out/encode.json")" \
        "$(number "$out/encode.json" bytes_per_vector)" \
        "$(number "$out/code.10.eval" 10-recall@10)" "$(number "$out/code.50.eval" 10-recall@50)" \
        "$(number "$out/refined.eval" 10-recall@10)"
}

# learn BITS QUERY_PLANES: rbe from the corpus alone, codes as wide as rows.
learn() {
    "$bitsweep" train --base "$base" --metric cosine --code-dims "$dims" --document-planes "$1" --query-planes "$2" \
        --model "$out/model.rbe" --force --quiet
    try cosine rbe "$1" --model "$out/model.rbe"
}

{
    echo "# $(basename "$base"), queries $rows, 6 query bits (rbe: 7, then 6); refined: oversample 5"
    echo "#                                                             code alone  10-recall    refined"
    echo "# metric code  bits  segments                     B/vector  10-recall@10        @50        @10"
    for metric in cosine ip l2; do
        "$bitsweep" groundtruth --base "$base" --queries "$queries" --query-rows "$rows" \
            --metric "$metric" --k 10 --out "$out/truth.$metric" --force --quiet
        for bits in 1.5 2 2.5 3 4; do try "$metric" saq "$bits"; done
        dims=$(number "$out/encode.json" dims)
        for bits in 2 3; do try "$metric" saq "$bits" --segments "${dims}x$bits" --axes random; done
        [[ $metric == cosine ]] || continue
        for bits in 2 3 4; do try cosine xfbq "$bits"; done
        for bits in 2 3; do learn "$bits" 7; done
        for bits in 2 3; do learn "$bits" 6; done
    done
} | tee "$out/accuracy.table"
