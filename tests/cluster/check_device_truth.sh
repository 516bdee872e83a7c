#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ground truth of floats on an emulated device that screens pairs by products of halves (exact_screen of its tuning): the
# CPU's bytes on hostile rows, and on others with few survivors. With `cuda` as a third argument the device is GPU 0 and
# the program BITSWEEP_BINARY itself.
# usage: check_device_truth.sh BITSWEEP_BINARY SOURCE_FOLDER [cuda]
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
use_device "${3:-}"
find_ranks 2
rows=$(dirname "$program")/tests/hostile_rows
needs "$rows"
data=$2/tests/data

# Samples are as large as they can be, so that limits come early.
for capability in 8.0 8.6 9.0 10.0 10.3 11.0 12.0; do
    echo "device $capability exact_screen=on sample_lists=1 sample_part=1"
done >"$folder/tuning"

# screened RANKS ARGUMENTS: in blocks and groups of queries, then all at once, of which $folder/json tells; or with the
# memories that are given.
screened() {
    local ranks=$1 on memory
    on=$(device_for "$ranks")
    shift
    "$program" groundtruth "$@" --quiet --device cpu --force --out "$folder/expected"
    for memory in ${memories:-150K 0}; do
        BITSWEEP_TUNING=$folder/tuning device_finds "$ranks ranks, memory $memory: $*" "$ranks" "$on" groundtruth "$@" \
            --device-memory "$memory" --threads 2
    done
}

# hostile KIND ENDING METRIC K
hostile() {
    "$rows" "$1" 1500 6 37 "$folder/base.$2" "$folder/asked.$2"
    screened 1 --base "$folder/base.$2" --queries "$folder/asked.$2" --metric "$3" --k "$4" --drop-bad-rows
    if (($(sum_of screened_pairs) == 0)); then complain "$1, $2: nothing was screened"; fi
}

metrics=(l2 ip cosine)
turn=0
for what in copies parts units large mixed zeros far between noise3 noise6 scaled broken plain; do
    memories=$((turn % 2 ? 150000 : 0)) hostile "$what" fbin "${metrics[$((turn % 3))]}" $((turn % 4 / 2 ? 1 : 10))
    turn=$((turn + 1))
done
memories=0 hostile large npy ip 10
memories=150K hostile broken npy cosine 1

# Rows that are far away from the origin cannot be told apart, others can.
memories=0 hostile far fbin l2 10
if (($(sum_of screen_overflows) == 0)); then complain "what is far has no overflows"; fi
hostile plain fbin l2 10
if (($(sum_of screen_overflows) > 0 || $(sum_of surviving_pairs) * 20 > $(sum_of screened_pairs))); then
    complain "too many survivors: $(sum_of surviving_pairs) of $(sum_of screened_pairs)"
fi

# More queries than a tile has, on several ranks; and their numbers add up.
"$program" synth --count 2000 --dims 37 --clusters 20 --seed 3 --out "$folder/many.fbin" --queries 150 \
    --queries-out "$folder/many_asked.fbin" --quiet
screened "${ranks_axis[-1]}" --base "$folder/many.fbin" --queries "$folder/many_asked.fbin" --metric l2 --k 3
screened 1 --base "$folder/many.fbin" --queries "$folder/many_asked.fbin" --metric ip --k 3

# Bytes of two types are as floats; those of one type are exact without it.
cp "$data/sift20k_query.u8bin" "$folder/query.i8bin"
truth=(--base "$data/sift20k_base.u8bin" --rows 0:1500 --query-rows 0:6 --metric cosine --k 3)
screened 1 "${truth[@]}" --queries "$folder/query.i8bin"
if (($(sum_of screened_pairs) == 0)); then complain "bytes of two types are not screened"; fi
screened 1 "${truth[@]}" --queries "$data/sift20k_query.u8bin"
if (($(sum_of screened_pairs) > 0)); then complain "integers of one type are screened"; fi

# Without that tuning nothing is.
device_finds "without a screen" 1 "$(device_for 1)" groundtruth "${truth[@]}" --queries "$data/sift20k_query.u8bin"
if (($(sum_of screened_pairs) > 0)); then complain "a screen that nobody asked for"; fi

# Numbers that are infinite are refused as ever, naming the same row.
"$rows" broken 1500 6 37 "$folder/base.fbin" "$folder/asked.fbin"
truth=(groundtruth --base "$folder/base.fbin" --queries "$folder/asked.fbin" --metric l2 --k 3 --quiet --out "$folder/none")
said=$("$program" "${truth[@]}" 2>&1) || true
[[ $said == *"base.fbin: row "* ]] || complain "no row is bad: $said"
export BITSWEEP_TUNING=$folder/tuning
refused 65 "^$said\$" "$emulated" "${truth[@]}" --device "$(device_for 1)"
finish
