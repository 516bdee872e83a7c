#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Codec rbe: one index whatever the ranks, threads and kernel level, one answer whatever the scan; and
# learned codes that find what they were trained for.
# usage: check_rbe.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"

# check WHAT COMMAND: it succeeds.
check() {
    local what=$1
    shift
    if "$@" >"$folder/out" 2>&1; then pass "$what"; else fail "$what" "$folder/out"; fi
}

# refuse CODE PATTERN ARGUMENTS
refuse() {
    refused "$1" "^bitsweep: .*($2)" "$program" "${@:3}"
}

find_levels
find_ranks 2

# 50 code dims: a word that is not full.
check "train" "$program" train --base "$base" --metric cosine --sample 1000 --code-dims 50 --query-planes 4 \
    --document-planes 2 --epochs 1 --loss pairs --model "$folder/model" --quiet
check "train, similarities" "$program" train --base "$base" --metric cosine --sample 1000 --code-dims 100 \
    --query-planes 7 --document-planes 2 --model "$folder/similar" --quiet
check "ground truth" "$program" groundtruth --base "$base" --queries "$queries" --metric cosine --k 10 \
    --out "$folder/truth" --quiet

# ---- one index, one answer ----

encode=(encode --base "$base" --rows 1000:6000 --codec rbe --shards 3 --quiet --model)
for model in similar model; do
    encode+=("$folder/$model")
    check "encode" "$program" "${encode[@]}" --index "$folder/index" --threads 1 --force
    for level in "${levels[@]}"; do
        for ranks in "${ranks_axis[@]}"; do
            "$run" -n "$ranks" -- "${encode[@]}" --index "$folder/other" --level "$level" --threads 2 --force
            if diff -r "$folder/index" "$folder/other" >"$folder/out"; then
                pass "the same index: $model, $level, $ranks ranks"
            else
                fail "another index: $model, $level, $ranks ranks" "$folder/out"
            fi
        done
    done
    unset 'encode[-1]'
done
check "verify" "$program" verify "$folder/index"
check "the model is in the index" cmp "$folder/model" "$folder/index/model.rbe"

# ---- what info says ----

# say WHAT ARGUMENTS -- PATTERN...: info has each of these lines once.
say() {
    local what=$1 arguments=() pattern
    shift
    while [[ $1 != -- ]]; do arguments+=("$1") && shift; done
    shift
    "$program" info "${arguments[@]}" >"$folder/out" 2>&1 || fail "info: $what" "$folder/out"
    for pattern in "$@"; do
        if [[ $(grep -cE -- "$pattern" "$folder/out") == 1 ]]; then
            pass "info: $what: $pattern"
        else
            fail "info: $what: not '$pattern'" "$folder/out"
        fi
    done
}

digest=$(od -An -v -t x8 -j $(($(wc -c <"$folder/model") - 8)) "$folder/model" | tr -d ' ')
say "an index" "$folder/index" -- \
    "^  model +digest $digest, 50 code dims, 4 query planes, 2 document planes$" ' 20 bytes a vector$' # no biases
say "an index as JSON" "$folder/index" --json -- "^    \"digest\": \"$digest\",$" '^    "code_dims": 50,$' \
    '^    "query_planes": 4,$' '^    "document_planes": 2$'
# Queries have the planes of the model, whatever --query-bits.
forecast=(info "$folder/index" --device-memory 1G --json)
forecast_bytes() { "$program" "${forecast[@]}" --query-bits "$1" | grep '"queries_bytes": [1-9]'; }
if [[ $(forecast_bytes 1) == "$(forecast_bytes 7)" && -n $(forecast_bytes 4) ]]; then
    pass "info: device memory of the model's query planes"
else
    fail "info: device memory follows --query-bits"
fi
say "a model" "$folder/index/model.rbe" -- "^model .*/model.rbe, digest $digest$" \
    "^  codes +128 dims to 50, cosine, binary, not centered, scales by norm$" \
    "^  query +4 planes, separate matrices, residuals weigh 1/2, 1/4, \.\.\.$" \
    "^  document +2 planes, separate matrices, " "^  training +variant, [0-9]+ pairs, 10 negatives, .* epochs [01], seed 1, ranks 1$" \
    "^  loss +[0-9.]+, held out [0-9.]+$"
"$program" train --base "$base" --sample 300 --batch 64 --code-dims 8 --epochs 1 --quiet --center --shared \
    --no-residual-weights --query-planes 3 --document-planes 1 --metric l2 --model "$folder/plain.rbe"
say "another model" "$folder/plain.rbe" -- "^  codes +128 dims to 8, l2, binary, centered, scales by norm$" \
    "^  query +3 planes, shared matrices, residuals weigh 1$" "^  document +1 plane$"
cp "$folder/similar" "$folder/similar.rbe"
say "a model of similarities" "$folder/similar.rbe" -- "binary, centered, scales by projection$"
say "another model as JSON" "$folder/plain.rbe" --json -- '^  "kind": "model",$' '^  "metric": "l2",$' \
    '^  "dims": 128,$' '^  "code_dims": 8,$' '^  "precision": "binary",$' '^  "centered": true,$' \
    '^    "planes": 3,$' '^    "planes": 1,$' '^    "estimator": "variant",$'

search=(search --index "$folder/index" --queries "$queries" --force --quiet)
for refine in none exact; do
    "$program" "${search[@]}" --refine "$refine" --k 50 --out "$folder/first" --level reference
    for scan in planes matrix auto; do
        for ranks in "${ranks_axis[@]}"; do
            "$run" -n "$ranks" -- "${search[@]}" --refine "$refine" --k 50 --scan "$scan" --out "$folder/found"
            if cmp -s "$folder/first" "$folder/found"; then
                pass "the same answer: $scan, $ranks ranks, --refine $refine"
            else
                fail "another answer: $scan, $ranks ranks, --refine $refine"
            fi
        done
    done
    if [[ -x $emulated ]]; then
        "$emulated" "${search[@]}" --refine "$refine" --k 50 --query-rows 0:8 --device emulated --out "$folder/found"
        "$program" "${search[@]}" --refine "$refine" --k 50 --query-rows 0:8 --device cpu --out "$folder/first"
        if cmp -s "$folder/first" "$folder/found"; then
            pass "the same answer: a device, --refine $refine"
        else
            fail "another answer: a device, --refine $refine"
        fi
    fi
done

# recall: 10-recall@50 of codes alone, of a model.
recall() {
    "$program" encode --base "$base" --codec rbe --model "$1" --index "$folder/judged" --force --quiet
    "$program" search --index "$folder/judged" --queries "$queries" --refine none --k 50 \
        --out "$folder/found" --force --quiet
    "$program" eval --results "$folder/found" --groundtruth "$folder/truth" |
        sed -n 's/^10-recall@50 *//p'
}

# A random start must learn; codes that begin as those of a quantizer are good from the start, and
# those of principal axes better.
train=(train --base "$base" --metric cosine --code-dims 96 --query-planes 3 --document-planes 2 --quiet)
"$program" "${train[@]}" --sample 2000 --start random --rate 1e-9 --epochs 1 --model "$folder/untrained"
"$program" "${train[@]}" --sample 3000 --start random --epochs 5 --model "$folder/random"
"$program" "${train[@]}" --sample 2000 --epochs 1 --start quantizer --model "$folder/quantizer"
"$program" "${train[@]/#3/7}" --sample 4000 --model "$folder/principal"
untrained=$(recall "$folder/untrained")
random=$(recall "$folder/random")
quantizer=$(recall "$folder/quantizer")
principal=$(recall "$folder/principal")
facts="10-recall@50 of a random start $untrained, trained $random; of a quantizer trained $quantizer; of \
principal axes $principal"
if awk -v a="$untrained" -v b="$random" -v c="$quantizer" -v d="$principal" \
    'BEGIN {exit !(b > a + 0.15 && c > 0.8 && d > c + 0.03)}'; then
    pass "$facts"
else
    fail "$facts"
fi

# ---- errors ----

code=(encode --base "$base" --index "$folder/refused" --codec rbe)
refuse 2 "needs --model" "${code[@]}"
refuse 2 "cosine only" "${code[@]}" --model "$folder/model" --metric l2
refuse 2 "has what its model says" "${code[@]}" --model "$folder/model" --bits 2
refuse 74 "nothing: cannot open" "${code[@]}" --model "$folder/nothing"
refuse 65 "no bitsweep model|checksum" "${code[@]}" --model "$base"

# A model of another version, cut short, with a bit flipped.
printf '\x08\x03\x79\xa2\x97\xe5\x6b\xbc\x52\xfd\x2c' >"$folder/version.rbe" # format_version 3, XXH3
head -c 1000 "$folder/model" >"$folder/cut.rbe"
: >"$folder/empty.rbe"
cp "$folder/model" "$folder/flipped.rbe"
flip "$folder/flipped.rbe" 5000
for broken in "version.rbe: model of format version 3, this program reads 1 to 2$" \
    "cut.rbe: truncated, or no bitsweep model$" "empty.rbe: empty$" "flipped.rbe: checksum does not match$"; do
    refuse 65 "$broken" "${code[@]}" --model "$folder/${broken%%:*}"
    refuse 65 "$broken" info "$folder/${broken%%:*}"
done
cp -r "$folder/index" "$folder/broken"
for broken in flipped:checksum cut:truncated version:"format version 3"; do
    cp "$folder/${broken%%:*}.rbe" "$folder/broken/model.rbe"
    refuse 65 "model.rbe: .*${broken#*:}" search --index "$folder/broken" --queries "$queries" \
        --out "$folder/found" --force
    refuse 65 "model.rbe: .*${broken#*:}" verify "$folder/broken"
done
refuse 65 "64 dims.*128|128.*64 dims" search --index "$folder/index" --queries synth:count=4,dims=64 \
    --out "$folder/found" --force
refuse 2 "of 128 dims, the rows have 64" encode --base synth:count=100,dims=64 --index "$folder/refused" \
    --codec rbe --model "$folder/model"
for kind in "--metric l2" "--metric cosine --precision float" "--metric cosine --no-residual-weights"; do
    # shellcheck disable=SC2086
    "$program" train --base "$base" --sample 500 --batch 200 --code-dims 8 --epochs 1 --quiet --force \
        --model "$folder/comparison" $kind
    refuse 2 "trained for l2|full precision|without residual weights" "${code[@]}" --model "$folder/comparison"
done
refuse 2 "--query-bits 3: the model of .* has 4" "${search[@]}" --out "$folder/found" --query-bits 3
if [[ -e $folder/refused ]]; then fail "a refused encode left an index"; else pass "nothing is left"; fi
cp "$folder/untrained" "$folder/other/model.rbe"
refuse 65 "not the model of this index" search --index "$folder/other" --queries "$queries" --out "$folder/found" --force
refuse 65 "not the model of this index" verify "$folder/other"
rm "$folder/other/model.rbe"
refuse 74 "model.rbe: cannot open" search --index "$folder/other" --queries "$queries" --out "$folder/found" --force
check "saq in its place" "$program" encode --base "$base" --metric cosine --index "$folder/index" \
    --force --quiet
if [[ -e $folder/index/model.rbe ]]; then fail "the old model is still there"; else pass "the old model is gone"; fi

finish
