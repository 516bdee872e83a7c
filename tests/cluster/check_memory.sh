#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Memory of a resident shard, and of encode: growth with the corpus only where it must be.
# usage: check_memory.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
bitsweep=$program
work=$folder

# number FILE NAME: the number behind "NAME": in a JSON file of ours.
number() {
    sed -n "s/^ *\"$2\": \([-0-9.e+]*\),\{0,1\}\$/\1/p" "$1" | head -n 1
}

# check TEXT VALUE LIMIT: passes if VALUE <= LIMIT.
check() {
    if awk -v v="$2" -v l="$3" 'BEGIN {exit !(v > 0 && v <= l)}'; then
        pass "$1: $2 <= $3"
    else
        complain "$1: $2 > $3"
    fi
}

if [[ ! -r /proc/self/status ]]; then
    echo "no /proc: memory cannot be measured"
    exit 77
fi

for codec in saq xfbq; do
    "$bitsweep" encode --base synth:count=2M,dims=96 --index "$work/$codec" --codec "$codec" \
        --metric cosine --bits 3 --shards 2 --json >"$work/encode.json"
    check "encode $codec: peak memory is under 537 MB" \
        "$(number "$work/encode.json" peak_memory_bytes)" $((512 << 20))
    "$bitsweep" search --index "$work/$codec" --queries synth:count=3,dims=96,seed=2 --k 10 \
        --out "$work/result" --force --device cpu --json >"$work/search.json"
    # 36 bytes of planes; saq has 6 more for scale and bias.
    if [[ $codec == saq ]]; then bytes=$((2000000 * 42)); else bytes=$((2000000 * 36)); fi
    check "search $codec: resident memory is codes, scales and biases plus 10 %" \
        "$(number "$work/search.json" resident_memory_bytes)" $((bytes * 11 / 10))
done

# Raw rows are mapped: what refinement touches of them is in memory, too, and told apart from the process's own.
"$bitsweep" encode --base "$base" --index "$work/mapped" --metric l2 --quiet
for refine in none exact; do
    "$bitsweep" search --index "$work/mapped" --queries "$queries" --k 10 --refine "$refine" --threads 1 --device cpu \
        --out "$work/result" --force --json >"$work/$refine.json"
done
own=$(number "$work/exact.json" memory_bytes) mapped=$(number "$work/exact.json" mapped_bytes)
check "mapped rows: 2 MB of 2.56 at least" 2000000 $((mapped - $(number "$work/none.json" mapped_bytes)))
check "mapped rows are not the process's own" "$own" $(($(number "$work/none.json" memory_bytes) + 1500000))
"$bitsweep" search --index "$work/mapped" --queries "$queries" --k 10 --device cpu --out "$work/result" --force >"$work/text"
check "columns of the resident set and of what is mapped" 1 "$(grep -c ' resident  of it mapped$' "$work/text")"

finish
