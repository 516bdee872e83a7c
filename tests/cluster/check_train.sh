#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# train: every kind of pairs, the same bytes for the same ranks whatever the threads, a resumed run,
# and every error as one line that leaves nothing behind.
# usage: check_train.sh BITSWEEP_BINARY SOURCE_FOLDER
# ctest labels: asan
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_ranks 2
find_levels

# train RANKS MODEL ARGUMENTS: quiet, a small model of few epochs.
small=(--code-dims 32 --epochs 3 --batch 256 --quiet)
train() {
    local ranks=$1 model=$folder/$2 code=0
    shift 2
    "$run" -n "$ranks" -- train "${small[@]}" --model "$model" "$@" >"$folder/out" 2>&1 || code=$?
    if ((code != 0)) || [[ ! -s $model ]]; then
        fail "train $*: exit code $code" "$folder/out"
    fi
}

# other NAME MODEL MODEL
other() {
    if cmp -s "$folder/$2" "$folder/$3"; then fail "$1: same bytes"; else pass "$1"; fi
}

# refuse CODE PATTERN ARGUMENTS: no model.
refuse() {
    refused "$1" "^bitsweep: .*($2)" "$program" train --quiet --model "$folder/refused" "${@:3}"
    if [[ -s $folder/stdout || -e $folder/refused ]]; then fail "train ${*:3}: wrote something"; fi
}

alone=(--base "$base" --metric cosine --sample 1200 --loss pairs)
train 1 model "${alone[@]}" --threads 1
train 1 threads "${alone[@]}" --threads 3
same_bytes model threads "the same bytes for 1 and 3 threads"
train 1 seed "${alone[@]}" --seed 2
other "another seed, another model" model seed
for level in "${levels[@]:0:2}"; do
    train 1 "$level" "${alone[@]}" --level "$level"
    same_bytes model "$level" "the same bytes for level $level"
done

train 1 near "${alone[@]}" --near-negatives
other "near negatives, another model" model near
train 1 random "${alone[@]}" --start random
other "another start, another model" model random

train 1 resumed "${alone[@]}" --checkpoint "$folder/checkpoint" --max-batches 9
other "after 9 batches it is another model" model resumed
refuse 2 "exists; --resume goes on from it" "${alone[@]}" --checkpoint "$folder/checkpoint"
# A model of another training is not what --resume may replace.
cp "$folder/resumed" "$folder/kept"
cp "$folder/seed" "$folder/resumed"
check "another model is refused" test "$("$program" train "${alone[@]}" "${small[@]}" --model "$folder/resumed" \
    --checkpoint "$folder/checkpoint" --resume 2>&1)" = "bitsweep: $folder/resumed: exists, of another training; \
--force replaces it"
same_bytes seed resumed "and kept"
cp "$folder/kept" "$folder/resumed"
train 1 resumed "${alone[@]}" --checkpoint "$folder/checkpoint" --resume
same_bytes model resumed "a resumed training has the same bytes"

if ((${ranks_axis[-1]} == 2)); then
    train 2 ranks "${alone[@]}" --threads 1
    train 2 ranks_again "${alone[@]}" --threads 2 --checkpoint "$folder/two" --max-batches 10 --resume
    train 2 ranks_again "${alone[@]}" --threads 2 --checkpoint "$folder/two" --resume
    same_bytes ranks ranks_again "2 ranks: the same bytes, resumed"
fi

# ---- similarities ----

# Checkpoints: the model is that of the first weights where no epoch is better.
similar=(--base "$base" --metric cosine --sample 1200)
train 1 similar "${similar[@]}" --threads 1 --checkpoint "$folder/similar_one"
train 1 similar_threads "${similar[@]}" --threads 3 --checkpoint "$folder/similar_three"
same_bytes similar similar_threads "similarities: the same bytes for 1 and 3 threads"
same_bytes similar_one similar_three "similarities: the same training for 1 and 3 threads"
train 1 similar_resumed "${similar[@]}" --checkpoint "$folder/similar_part" --max-batches 3
other "similarities: 3 batches are another training" similar_one similar_part
train 1 similar_resumed "${similar[@]}" --checkpoint "$folder/similar_part" --resume
same_bytes similar_one similar_part "similarities: a resumed training is the same"
first=(train "${similar[@]}" --code-dims 32 --quiet --force --json)
"$program" "${first[@]}" --model "$folder/first" >"$folder/out"
if grep -q '^  "epochs": 0,$' "$folder/out"; then
    pass "similarities: no epochs unless asked for"
else
    fail "similarities: epochs" "$folder/out"
fi
if ((${ranks_axis[-1]} == 2)); then
    train 2 similar_ranks "${similar[@]}" --threads 1 --checkpoint "$folder/similar_one" --force
    train 2 similar_again "${similar[@]}" --threads 2 --checkpoint "$folder/similar_three" --force
    same_bytes similar_one similar_three "similarities: 2 ranks, the same training"
fi

# Where first weights are the model no batch runs, and yet there is something to go on from.
none=(train --base "$base" --metric cosine --sample 1200 --code-dims 32 --batch 256 --model "$folder/none"
    --checkpoint "$folder/none_at")
check "no epochs, a limit" "$program" "${none[@]}" --max-batches 4 --quiet
check "no epochs, resumed" "$program" "${none[@]}" --resume --quiet
check "then some batches" "$program" "${none[@]}" --resume --epochs 3 --max-batches 2
cp "$folder/stdout" "$folder/said"
check "which say how to go on" grep -q "^stopped by --max-batches; --resume goes on from $folder/none_at\$" "$folder/said"
check "then the rest" "$program" "${none[@]}" --resume --epochs 3
cp "$folder/stdout" "$folder/said"
check "which do not" test "$(grep -c max-batches "$folder/said" || true)" = 0
same_bytes similar_part none_at "similarities: first weights, then epochs are the same training"

# ---- other pairs, and what they learn ----

# learned NAME LEAST MOST ARGUMENTS: the best validation loss of a training.
learned() {
    local name=$1 least=$2 most=$3 loss
    shift 3
    "$program" train --code-dims 32 --quiet --model "$folder/learned" --force --json "$@" \
        >"$folder/out" 2>&1 || true
    loss=$(sed -n 's/^  "validation_loss": \([0-9.e-]*\),$/\1/p' "$folder/out")
    if awk -v x="${loss:-9}" -v a="$least" -v b="$most" 'BEGIN {exit !(x >= a && x <= b)}'; then
        pass "$name: validation loss $loss"
    else
        fail "$name: validation loss '$loss', not $least to $most" "$folder/out"
    fi
}

# log 11 = 2.4 is chance.
"$program" groundtruth --base "$base" --queries "$queries" --metric cosine --k 5 --out "$folder/truth" --quiet
few=(--epochs 3 --batch 256)
learned "base alone, a random start" 0.01 2.2 "${alone[@]}" "${few[@]}" --start random
learned "base alone, full precision" 0.01 0.9 "${alone[@]}" "${few[@]}" --precision float
auc=$(sed -n 's/^  "roc_auc": \([0-9.e-]*\),$/\1/p' "$folder/out")
recall=$(sed -n 's/^    "1-recall@10": \([0-9.e-]*\),\{0,1\}$/\1/p' "$folder/out")
if awk -v auc="${auc:-0}" -v recall="${recall:-0}" 'BEGIN {exit !(auc > 0.9 && auc < 1 && recall > 0.5)}'; then
    pass "ROC AUC $auc, 1-recall@10 $recall"
else
    fail "ROC AUC '$auc', 1-recall@10 '$recall'" "$folder/out"
fi
learned "base alone, l2, shared, no weights" 0.01 2.1 "${alone[@]/cosine/l2}" "${few[@]}" \
    --shared --no-residual-weights
learned "base alone, one of 3 neighbours, annealing" 0.01 2.1 "${alone[@]}" "${few[@]}" \
    --neighbours 3 --estimator annealing
learned "queries with their neighbours" 0.1 2.4 --base "$base" --metric cosine \
    --groundtruth "$folder/truth" --queries "$queries" --neighbours 4 --validation 0.2 --batch 64 --epochs 8
learned "row i with row i" 0.001 1.0 --queries "$base" --documents "$base" --epochs 2 --batch 500

if command -v gnuplot >/dev/null; then
    train 1 plotted "${alone[@]}" --plot "$folder/it's a plot.svg"
    if grep -q '</svg>' "$folder/it's a plot.svg" && (($(wc -l <"$folder/it's a plot.tsv") == 4)); then
        pass "the loss curve is drawn"
    else
        fail "the loss curve is not drawn" "$folder/it's a plot.tsv"
    fi
    same_bytes model plotted "a plot changes nothing"
fi

# ---- errors ----

refuse 2 "--loss similarities is for codes under cosine" --base "$base" --loss similarities --metric l2
refuse 2 "--start principal goes with --loss similarities" --base "$base" --metric cosine --loss pairs --start principal

refuse 65 "200 rows, .*20000: row i pairs" --queries "$queries" --documents "$base"
refuse 65 "128 dims|64 dims" --queries "$base" --documents synth:count=20000,dims=64
refuse 65 "is of 200 queries" --base "$queries" --metric cosine --groundtruth "$folder/truth" --queries "$base"
refuse 65 "has neighbour" --base "$queries" --metric cosine --groundtruth "$folder/truth" --queries "$queries"
refuse 65 "--neighbours asks for 9" --base "$base" --metric cosine --groundtruth "$folder/truth" --queries "$queries" --neighbours 9
refuse 74 "nothing.fbin" --base "$folder/nothing.fbin" --metric cosine
refuse 2 "another training: .*gamma=10 there, gamma=9 here" "${alone[@]}" --code-dims 32 --batch 256 \
    --checkpoint "$folder/checkpoint" --resume --gamma 9
refuse 2 "--queries and --documents, or --base"
refuse 2 "--documents goes with --queries" --base "$base" --metric cosine --documents "$base"
refuse 2 "needs --groundtruth" --base "$base" --metric cosine --queries "$queries"
refuse 2 "10 negatives" "${alone[@]}" --batch 10
refuse 2 "held out" --base "$base" --metric cosine --sample 100 --loss pairs
refuse 2 "ends in .svg" "${alone[@]}" --plot loss.png
refuse 2 "--resume needs" "${alone[@]}" --resume
refuse 2 "query-planes" "${alone[@]}" --query-planes 8
refuse 2 "estimator" "${alone[@]}" --estimator tanh
refuse 2 "another training: code-dims=32 there, code-dims=16 here" "${alone[@]}" --code-dims 16 --batch 256 \
    --checkpoint "$folder/checkpoint" --resume
refuse 2 "another training: dims=128 there, dims=64 here" --base synth:count=1200,dims=64 --metric cosine --loss pairs --code-dims 32 \
    --batch 256 --checkpoint "$folder/checkpoint" --resume

# A checkpoint of another version, cut short, with a bit flipped.
printf '\x08\x02\x79\x30\x5a\xe2\x27\x9e\x8f\x03\x46' >"$folder/version" # format_version 2, XXH3
head -c 1000 "$folder/checkpoint" >"$folder/cut"
cp "$folder/checkpoint" "$folder/flipped"
flip "$folder/flipped" 5000
for broken in "version: checkpoint of format version 2, this program reads 1$" \
    "cut: truncated, or no bitsweep checkpoint$" "flipped: checksum does not match$"; do
    refuse 65 "$broken" "${alone[@]}" --code-dims 32 --batch 256 --resume --checkpoint "$folder/${broken%%:*}"
done

# What is not finite stops it; the last checkpoint stays as it was.
wild=(--base "$base" --metric cosine --sample 600 --code-dims 32 --batch 128 --start random --estimator straight-through
    --rate 1e38 --checkpoint "$folder/wild")
refuse 65 "training: .* is not finite at epoch [0-9]+, batch [0-9]+; try a smaller --rate; the last checkpoint stays: $folder/wild$" \
    "${wild[@]}" --checkpoint-batches 1
cp "$folder/wild" "$folder/kept"
refuse 65 "is not finite at epoch [0-9]+, batch [0-9]+; .*stays: $folder/wild$" "${wild[@]}" --resume
same_bytes kept wild "the last checkpoint stays"
refuse 65 "is not finite at epoch [0-9]+, batch [0-9]+; try a smaller --rate$" "${alone[@]}" --rate 1e38

finish
