#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tables 2, 4, 5 and 6 of Recurrent Binary Embedding (Shan, Jiao, Zhu, Mao) on pairs of a vector and
# its exact near neighbour, the paper's numbers beside ours; then gates: the orders that must hold.
# The paper's data are clicks on ads and labels of judges, so its levels are not to be met; what can
# be compared is the order of the models, and shares of the gap between them.
set -euo pipefail

usage() {
    cat <<'END'
usage: bench/papers/rbe_tables.sh [OPTIONS] OUT_FOLDER
  --base FILE      vectors [tests/data/sift20k_base.u8bin]
  --rows N         its first N rows are queries, each paired with its nearest other row of all [20000]
  --code-dims N    dims of all codes; m_3 has twice as many [16]
  --epochs N       of each training at most [20]
  --seeds N        trainings of each model, with other splits and first weights [5]
  --jobs N         trainings at a time, one thread each [all cores]
  --report FILE    prints the tables of an earlier run's runs.tsv, trains nothing
OUT_FOLDER gets runs.tsv, a line a training, and tables.txt. Exit code 1: a gate failed, or the run,
as stderr then says.

The task: a fifth of the pairs is held out, no held-out query is seen in training. Held-out queries
are cut into cells of 128 near ones (train --near-negatives); a pair's 10 negatives are documents of
other pairs of its cell, as in training. ROC AUC: the chance that a pair's cosine is above that of a
negative, over all of them; log loss: Eq. 1, the same pairs and negatives; both at the epoch of the
best validation loss. Recall: of the held-out queries (at most 4096) the share whose document is among
the 10 nearest of all of theirs, by the cosine that training computes, the same for all models.
Random negatives, or more code dims, leave less of a gap between m_3 and m_1 for the others to fill.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bitsweep=${BITSWEEP:-$root/build/release/bitsweep}
base=$root/tests/data/sift20k_base.u8bin rows=20000 dims=16 epochs=20 seeds=5 jobs=$(nproc) report='' out=''
while (($#)); do
    case $1 in
    --help | -h) usage && exit 0 ;;
    --base) base=$2 ;;
    --rows) rows=$2 ;;
    --code-dims) dims=$2 ;;
    --epochs) epochs=$2 ;;
    --seeds) seeds=$2 ;;
    --jobs) jobs=$2 ;;
    --report) report=$2 ;;
    -*) echo "rbe_tables.sh: unknown option $1; --help tells more" >&2 && exit 2 ;;
    *) out=$1 && shift && continue ;;
    esac
    shift 2
done
[[ $out ]] || { usage >&2 && exit 2; }
mkdir -p "$out"

# ---- training ----

# options MODEL: m_2, rbe_2, ...; after a colon what differs from the paper's choice.
options() {
    local planes=() code=$dims
    case ${1%:*} in
    m_1) planes=(1 1 --precision float) ;;
    m_2) planes=(1 1) ;;
    m_3) planes=(1 1) code=$((2 * dims)) ;;
    m_5) planes=(1 2 --precision query-float) ;;
    rbe_2) planes=(2 2) ;;
    'rbe*') planes=(3 2) ;;
    rbe_3) planes=(3 3) ;;
    esac
    echo --code-dims "$code" --query-planes "${planes[0]}" --document-planes "${planes[@]:1}"
    case $1 in
    *:straight) echo --estimator straight-through ;;
    *:annealing) echo --estimator annealing ;;
    *:flat) echo --no-residual-weights ;;
    esac
}

# A number of the whole, or of held_out_recall in it; a line of the curve stands further in.
field() {
    sed -n "s/^ \{2,4\}\"$2\": \([-0-9.e+]*\),\{0,1\}\$/\1/p" "$1"
}

# train_model MODEL SEED: a line of runs.tsv.
train_model() {
    local model=$1 seed=$2 file=$out/run.${1/'*'/x}.$2 line name
    # shellcheck disable=SC2046 # words are what options prints
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 "$bitsweep" train --base "$base" --metric cosine \
        --groundtruth "$out/truth" $(options "$model") --start random --center --near-negatives \
        --validation 0.2 --batch 256 --rate 0.003 --decay 0.88 --epochs "$epochs" --seed "$seed" \
        --threads 1 --model "$file.model" --force --quiet --json >"$file"
    line=$model$'\t'$seed
    for name in train_loss validation_loss roc_auc 1-recall@10 best_epoch; do
        line+=$'\t'$(field "$file" "$name")
    done
    echo "$line" >"$file.line"
    rm "$file" "$file.model"
}

train_all() {
    local seed model running=0 status=0
    "$bitsweep" groundtruth --base "$base" --queries "$base" --query-rows ":$rows" --metric cosine --k 2 \
        --out "$out/truth" --threads "$jobs" --force --quiet
    rm -f "$out"/run.*
    for ((seed = 1; seed <= seeds; seed++)); do
        for model in m_1 m_2 m_3 m_5 rbe_2 'rbe*' rbe_3 {m_2,rbe_2,'rbe*',rbe_3}:{straight,annealing} \
            {rbe_2,'rbe*',rbe_3}:flat; do
            if ((running++ >= jobs)); then wait -n; fi
            train_model "$model" "$seed" &
        done
    done
    while ((status != 127)); do # there is no child left
        status=0
        wait -n || status=$?
        ((status == 0 || status == 127))
    done
    {
        printf '# model\tseed\ttrain_loss\tvalidation_loss\troc_auc\t1-recall@10\tbest_epoch\n'
        cat "$out"/run.*.line
    } >"$out/runs.tsv"
    rm "$out"/run.*.line "$out/truth" "$out/truth.json"
}

# ---- the whole ----

trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
if [[ ! $report ]]; then
    train_all
    report=$out/runs.tsv
    echo "# $(basename "$base"), :$rows, $dims code dims, $epochs epochs, $seeds seeds"
    times >"$out/times"
    awk -F '[ms ]+' 'NR == 2 {printf "# %.0f CPU seconds\n", 60 * ($1 + $3) + $2 + $4}' "$out/times"
fi >"$out/head" # empty for a report
status=0
awk -F '\t' -f "$root/bench/papers/rbe_tables.awk" "$report" >"$out/body" || status=$?
cat "$out/head" "$out/body" | tee "$out/tables.txt"
rm -f "$out/head" "$out/body" "$out/times"
exit "$status"
