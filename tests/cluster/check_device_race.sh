#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Searches on an emulated device under the race detector: nothing is reported and the bytes are those
# of the CPU; a kernel whose barriers are taken out is reported.
# usage: check_device_race.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
watched=$(dirname "$program")/tests/bitsweep_emulated_race
faulty=$(dirname "$program")/tests/bitsweep_emulated_faulty
needs "$watched" "$faulty"
find_ranks 2

# search PROGRAM RANKS NAME ARGUMENTS
search() {
    local tool=$1 ranks=$2 name=$3
    shift 3
    BITSWEEP=$tool "$run" -n "$ranks" search --index "$folder/$name" --queries "$queries" \
        --query-rows 0:9 --k 20 --batch 5 --quiet --out "$folder/found" --force "$@" \
        >"$folder/json" 2>"$folder/stderr"
}

# watch RANKS NAME ARGUMENTS
watch() {
    if ! search "$watched" "$@" --device emulated --json || [[ -s $folder/stderr ]]; then
        complain "$*"
    elif ! cmp -s "$folder/expected" "$folder/found"; then
        complain "$*: other bytes"
    else
        pass
    fi
}

"$program" encode --base "$base" --rows 0:1203 --index "$folder/xfbq" --codec xfbq --bits 2 --shards 2 \
    --quiet
"$program" encode --base "$base" --rows 0:1203 --index "$folder/saq" --codec saq --bits 2.5 --metric l2 \
    --shards 2 --quiet
for name in xfbq saq; do
    search "$program" 1 "$name" --device cpu
    mv "$folder/found" "$folder/expected"
    for ranks in "${ranks_axis[@]}"; do
        for scan in planes matrix; do
            watch "$ranks" "$name" --scan "$scan"
            watch "$ranks" "$name" --scan "$scan" --device-memory 36K
            if grep -q '"copied_bytes": 0,' "$folder/json"; then complain "nothing was copied"; fi
        done
    done
done
BITSWEEP_EMULATOR_ORDER=random watch 1 saq --scan matrix --device-memory 36K

# Work items of lists, with additions to keys.
"$program" encode --base "$base" --rows 0:1203 --index "$folder/lists" --bits 1.5 --metric l2 --lists 20 \
    --residual yes --calibrate off --shards 2 --quiet
search "$program" 1 lists --device cpu --probe 6
mv "$folder/found" "$folder/expected"
watch 1 lists --probe 6
make_gpu_lists_tuning
BITSWEEP_TUNING=$gpu_lists watch 1 lists --probe 6
check "work items by the device" grep -qE '"gpu_lists": [1-9]' "$folder/json"

# ---- faults that must be noticed -----------------------------------------------------------------

for order in ascending random; do
    for scan in planes matrix; do
        if BITSWEEP_EMULATOR_ORDER=$order search "$faulty" 1 saq --scan $scan --device emulated; then
            complain "barriers taken out of device_cut.cu: nothing was noticed"
        elif ! grep -q 'emulated:0: .* data races:' "$folder/stderr"; then
            complain "barriers taken out of device_cut.cu: no race was reported"
        else
            pass
        fi
    done
done

finish
