#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Searches on emulated devices of which one refuses memory, fails or falls silent, with one rank and
# with several: one line from one rank, all ranks end, nothing is left behind. And searches whose
# queues run in other orders, which give the same bytes unless waits between them are forgotten.
# usage: check_device_faults.sh BITSWEEP_BINARY SOURCE_FOLDER
# ctest labels: asan
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that, and does less.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
needs "$emulated"
export BITSWEEP=$emulated
find_ranks 2 4
several=${ranks_axis[-1]}
is_short=${BITSWEEP_MAX_RANKS:+yes}

# search RANKS ARGUMENTS: sets code.
search() {
    local ranks=$1
    shift
    code=0
    rm -f "$folder"/found*
    timeout 60 "$run" -n "$ranks" search --index "$folder/index" --queries "$queries" --query-rows 0:12 \
        --k 10 --batch 5 --quiet --out "$folder/found" "$@" >"$folder/json" 2>"$folder/stderr" || code=$?
}

"$program" encode --base "$base" --rows 0:2003 --index "$folder/index" --codec xfbq --bits 3 --shards 3 \
    --quiet
search 1 --device cpu
mv "$folder/found" "$folder/expected"

# ---- orders of queues ----------------------------------------------------------------------------

# is_same ARGUMENTS: whether a search gives the bytes of the CPU.
is_same() {
    search 1 --device emulated --json "$@"
    ((code == 0)) && cmp -s "$folder/expected" "$folder/found"
}

# same ARGUMENTS: blocks are copied while others are scanned.
same() {
    if ! is_same --device-memory 60K "$@"; then
        complain "${BITSWEEP_EMULATOR_ORDER:-}, seed ${BITSWEEP_EMULATOR_SEED:-}: other bytes: $*"
    elif grep -q '"copied_bytes": 0,' "$folder/json"; then
        complain "nothing was copied: $*"
    else
        pass
    fi
}

for order in ascending descending random; do
    if [[ $is_short && $order == descending ]]; then continue; fi
    for scan in planes matrix; do
        BITSWEEP_EMULATOR_ORDER=$order same --scan "$scan"
    done
    if BITSWEEP_EMULATOR_FORGET=1 BITSWEEP_EMULATOR_ORDER=$order is_same --device-memory 60K; then
        # The queue that is not asked for may happen to run first.
        if [[ $order == ascending ]]; then complain "forgotten waits between queues were not noticed"; fi
    else
        pass
    fi
done
for seed in 2 3 4; do
    if [[ $is_short ]]; then continue; fi
    BITSWEEP_EMULATOR_ORDER=random BITSWEEP_EMULATOR_SEED=$seed same
done
# Memory that copies reach at full speed is not to be had: slower, no more.
BITSWEEP_EMULATOR_REFUSE_REGISTER=1 same

# ---- faults --------------------------------------------------------------------------------------

# expect RANKS PATTERN ARGUMENTS
expect() {
    local ranks=$1 pattern=$2
    shift 2
    search "$ranks" --device emulated "$@"
    if ((code != 74)); then
        complain "exit code $code instead of 74 on $ranks ranks: $pattern"
    elif [[ $(wc -l <"$folder/stderr") != 1 ]] || ! grep -Eq -- "$pattern" "$folder/stderr"; then
        complain "another error on $ranks ranks than $pattern"
    elif compgen -G "$folder/found*" >/dev/null; then
        complain "a result was written on $ranks ranks: $pattern"
    else
        pass
    fi
}

# The driver refuses what the plan counted on.
for number in 1 2 3 4; do
    if [[ $is_short && $number == [13] ]]; then continue; fi
    BITSWEEP_EMULATOR_REFUSE=$number expect 1 \
        'emulated:0: (survivors|queries|block|codes|raw rows|candidates): no device memory for [0-9]+ bytes, [0-9]+ are free' \
        --device-memory 60K
done
for number in 1 2; do
    BITSWEEP_EMULATOR_REFUSE_PINNED=$number expect 1 \
        'emulated:0: (survivors|queries|counts|candidates): no host memory for [0-9]+ bytes that stay in place'
done

# One device of several fails: the line is its rank's, and every rank ends. It fails while codes are
# loaded, in the first batch, in a later one.
if ((several > 1)); then
    for number in 1 2 9; do
        BITSWEEP_EMULATOR_FAIL=1:$number expect "$several" 'rank 1: emulated:1: .*LaunchFailure'
    done
    BITSWEEP_EMULATOR_FAIL=0:3 expect 2 'rank 0: emulated:0: .*LaunchFailure'
    BITSWEEP_EMULATOR_STALL=1:3 expect "$several" 'rank 1: emulated:1: .*: not done within 3 s' --timeout 4
    for number in 1 2; do
        BITSWEEP_EMULATOR_REFUSE=1:$number expect "$several" 'rank 1: emulated:1: .*: no device memory for'
    done
    BITSWEEP_EMULATOR_REFUSE_PINNED=1:1 expect "$several" 'rank 1: emulated:1: .*: no host memory for'
fi

finish
