#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Results of a GPU against results of the CPU's plain reference kernels, byte for byte, as
# tests/cluster/check_identity.sh has it between ranks: hostile data with ties at every cut, every
# codec, metric and kind of segments, k up to 10,000, then a larger corpus.
# usage: bench/gpu_identity.sh BITSWEEP_BINARY IDENTITY_DATA [PROGRAM DEVICE]
#
# PROGRAM and DEVICE are what is compared, BITSWEEP_BINARY and cuda:0 unless given. QUICK=1 in the
# environment takes few codes and rows, for the emulator. Answers of the small corpus also are those of earlier
# builds: tests/cluster/answer_digests.sh.
set -euo pipefail

(($# == 2 || $# == 4)) || {
    echo "usage: bench/gpu_identity.sh BITSWEEP_BINARY IDENTITY_DATA [PROGRAM DEVICE]" >&2
    exit 2
}
program=$1 tool=$2 other=${3:-$1} device=${4:-cuda:0}
quick=${QUICK:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# shellcheck source=tests/cluster/answer_digests.sh
. "$(dirname "$0")/../tests/cluster/answer_digests.sh"
recorded=$(dirname "$0")/../tests/data/identity.txt new_digests=$folder/digests
passed=0
failed=0

# "name|base|options of encode", segments of 45 dims, as in check_identity.sh.
codes=("xfbq|fbin|--metric cosine --codec xfbq --bits 3")
for metric in cosine ip l2; do
    codes+=("one2-$metric|fbin|--metric $metric --segments 45x2"
        "one3-$metric|u8bin|--metric $metric --segments 45x3 --axes random"
        "several2-$metric|u8bin|--metric $metric --segments 16x4,29x1"
        "several3-$metric|fbin|--metric $metric --segments 32x3,5x8,8x1")
done
# k, refinement, batch, scan, query bits
searches=("1 none 1 planes 6" "10 exact 1000 auto 6" "100 none 3 matrix 4" "992 none 7 matrix 7"
    "1000 exact 1000 planes 3" "1 exact 2 auto 1" "17 none 5 auto 6")
if [[ -n $quick ]]; then
    codes=("${codes[0]}" "${codes[12]}")
    searches=("${searches[@]:1:3}")
fi

complain() {
    failed=$((failed + 1))
    echo "FAILED: $1" >&2
    if [[ -n ${2:-} ]]; then head -n 3 "$2" >&2; fi
}

pass() {
    passed=$((passed + 1))
}

# compare WHAT INDEX QUERIES OPTIONS...: one search on either side.
compare() {
    local what=$1 index=$2 queries=$3
    shift 3
    if ! "$program" search --index "$index" --queries "$queries" --device cpu --level "$level" \
        --out "$folder/expected" --force --quiet "$@" 2>"$folder/stderr"; then
        complain "$what on the CPU" "$folder/stderr"
    elif ! "$other" search --index "$index" --queries "$queries" --device "$device" \
        --out "$folder/found" --force --quiet --json "$@" >"$folder/json" 2>"$folder/stderr"; then
        complain "$what" "$folder/stderr"
    elif ! grep -q "^  \"device\": \"${device%%:*}\"" "$folder/json"; then
        complain "$what: not on the device"
    elif ! cmp "$folder/expected" "$folder/found" >"$folder/stderr" 2>&1; then
        complain "$what: other bytes" "$folder/stderr"
    else
        pass
    fi
}

# Hostile data: a thousand rows, every vector several times.
small_corpora() {
    local code name base options shards turn=0 k refine batch scan bits
    "$tool" write "$folder"
    for code in "${codes[@]}"; do
        IFS='|' read -r name base options <<<"$code"
        for shards in 1 4; do
            # shellcheck disable=SC2086
            "$program" encode --base "$folder/base.$base" --drop-bad-rows --shards "$shards" \
                --index "$folder/$name-$shards" --quiet $options
        done
        : >"$folder/answers"
        for search in "${searches[@]}"; do
            read -r k refine batch scan bits <<<"$search"
            shards=$((turn++ % 2 * 3 + 1))
            compare "$name, $shards shards, k $k, refine $refine, batch $batch, $scan, $bits bits" \
                "$folder/$name-$shards" "$folder/query.$base" --k "$k" --refine "$refine" \
                --batch "$batch" --scan "$scan" --query-bits "$bits"
            cat "$folder/expected" >>"$folder/answers"
        done
        check_digest "gpu-${quick:+quick-}$name" "$folder/$name-1" "$folder/answers"
    done
    record_digests
}

# Several segments of bundles and k up to 10,000; with little memory most codes come by blocks.
large_corpus() {
    local rows=$1 most=$2 queries=$3 memory=$4 scan k
    local source=synth:count=$queries,dims=96,seed=2,clusters=100 codec
    for codec in xfbq saq; do
        "$program" encode --base "synth:count=$rows,dims=96,seed=1,clusters=100" --codec "$codec" \
            --bits 3 --metric cosine --index "$folder/$codec" --quiet --force
        for scan in planes matrix; do
            for k in 10 "$most"; do
                compare "$rows rows, $codec, $scan, k $k" "$folder/$codec" "$source" --k "$k" \
                    --refine none --scan "$scan"
            done
        done
        compare "$rows rows, $codec, $memory of memory" "$folder/$codec" "$source" --k 10 \
            --refine none --device-memory "$memory"
    done
}

level=reference
small_corpora
level=auto # plain C takes too long here
if [[ -n $quick ]]; then
    large_corpus 3K 500 2 120K
else
    large_corpus 2M 10K 50 40M
fi
echo "$passed passed, $failed failed"
((failed == 0))
