#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Encoding on a device against encoding on the CPU: every file of the index has the same bytes,
# whatever codec, metric, type of rows, shards, ranks and memory of the device; and the same rows are
# dropped or refused. The device is emulated, so no GPU is needed.
# usage: check_device_encode.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
bytes=$base
floats=$folder/floats.fbin
needs "$emulated"
find_ranks 2
most_ranks=${ranks_axis[-1]}

# on_cpu ARGUMENTS, on_device ARGUMENTS: exit code, output and index.
on_cpu() {
    code=0
    rm -rf "$folder/cpu"
    "$program" encode --index "$folder/cpu" --quiet --device cpu "$@" 2>"$folder/cpu.stderr" || code=$?
}

on_device() {
    code=0
    rm -rf "$folder/device"
    BITSWEEP=$emulated timeout 60 "$run" -n "${ranks:-1}" encode --index "$folder/device" --quiet --json \
        --device emulated "$@" >"$folder/json" 2>"$folder/stderr" || code=$?
}

# same ARGUMENTS: both, compared.
same() {
    on_cpu "$@"
    if ((code != 0)); then complain "exit code $code on the CPU: $*" "$folder/cpu.stderr"; fi
    on_device "$@"
    if ((code != 0)) || [[ -s $folder/stderr ]]; then
        complain "exit code $code on the device: $*" "$folder/stderr"
    elif ! grep -q '^  "device": "emulated:0"' "$folder/json"; then
        complain "not on the device: $*"
    elif ! diff -rq "$folder/cpu" "$folder/device" >"$folder/diff"; then
        complain "other bytes: $*" "$folder/diff"
    else
        pass
    fi
}

"$program" synth --count 700 --dims 50 --clusters 9 --out "$floats" --quiet

# ---- the same bytes ------------------------------------------------------------------------------

same --base "$floats" --codec xfbq --bits 3
same --base "$floats" --codec xfbq --bits 8 --shards 3 --rotation none
same --base "$floats" --codec xfbq --bits 3 --rotation random --shards 3
same --base "$bytes" --rows 5:906 --codec xfbq --bits 8 --rotation random
same --base "$bytes" --rows 5:906 --codec xfbq --bits 1 --scale 2
same --base "$floats" --codec saq --metric cosine --bits 1 --copy-vectors
same --base "$floats" --codec saq --metric ip --bits 2.25 --shards 3
same --base "$bytes" --rows 0:1001 --codec saq --metric l2 --segments 32x4,64x3,32x1 --stage 32
same --base "$bytes" --rows 7:500 --codec saq --metric ip --bits 2 --stage 64 --shards 3 --copy-vectors
same --base "$floats" --codec pq --metric l2 --shards 3 --copy-vectors
same --base "$floats" --codec pq --metric cosine --bits 4 --subspaces 13 --rotation none
same --base "$bytes" --rows 5:606 --codec pq --metric ip --bits 4 --rotation random
same --base "$bytes" --rows 5:606 --codec pq --metric l2 --entries radius --rotation none
for metric in l2 ip cosine; do same --base "$floats" --codec sq8 --metric $metric --shards 3; done
same --base "$bytes" --rows 5:606 --codec sq8 --metric l2 --copy-vectors

# More than a block, and blocks in pieces.
same --base synth:count=34000,dims=32,type=uint8 --codec pq --subspaces 32 --metric l2
same --base "$floats" --codec pq --metric l2 --device-memory 120K
same --base synth:count=60000,dims=32,type=uint8 --codec saq --bits 8 --metric l2
same --base synth:count=2500,dims=960 --codec xfbq --bits 8 --device-memory 300K
same --base "$floats" --codec saq --metric cosine --bits 4 --device-memory 60K --shards 3
if ((most_ranks > 1)); then
    ranks=2 same --base synth:count=4000,dims=700,seed=3 --codec xfbq --bits 8
fi
BITSWEEP_EMULATOR_ORDER=random same --base "$floats" --codec saq --bits 3 --metric l2

# Lists are made on the device, with and without a screen, and codes in their order, residuals too.
for screen in off on; do
    for row in 8.0 8.6 9.0 10.0 10.3 11.0 12.0; do echo "device $row list_pairs=1 exact_screen=$screen"; done \
        >"$folder/lists_$screen"
done
export BITSWEEP_TUNING=$folder/lists_on
same --base "$floats" --codec saq --metric l2 --bits 2 --lists 20 --shards 3 --calibrate off
same --base "$bytes" --rows 5:906 --codec sq8 --metric cosine --lists 11 --calibrate off
BITSWEEP_TUNING=$folder/lists_off ranks=$most_ranks same --base "$floats" --codec saq --metric ip --bits 2 --residual yes \
    --lists 20 --calibrate off
for codec in raw pq; do same --base "$bytes" --rows 5:606 --codec $codec --metric l2 --lists 9 --calibrate off; done
unset BITSWEEP_TUNING
same --base "$floats" --metric l2 --lists 20 --calibrate off # too few rows for the device to find lists
same --base "$floats" --metric l2 --lists 20 --calibrate off --device-memory 60K

# Codes in the order of lists that the CPU finds, residuals and not; more than a block, blocks in pieces.
for codec in "xfbq --bits 5 --rotation random" "xfbq --bits 4 --rotation none" "saq --metric l2 --bits 3 --residual yes --shards 3" \
    "saq --metric cosine --segments 32x4,18x1 --residual yes" "saq --metric ip --bits 2 --residual no"; do
    read -ra words <<<"$codec"
    same --base "$floats" --lists 20 --calibrate off --codec "${words[@]}"
    same --base "$floats" --lists 20 --calibrate off --copy-vectors --device-memory 120K --codec "${words[@]}"
done
BITSWEEP_EMULATOR_ORDER=random same --base "$bytes" --rows 5:906 --codec saq --metric l2 --segments 32x4,64x3,32x1 --lists 30 \
    --residual yes --calibrate off
same --base synth:count=40000,dims=32,type=uint8 --metric l2 --bits 6 --lists 60 --residual yes --calibrate off

# raw is copied: a GPU may be named, and is let go.
on_cpu --base "$bytes" --rows 0:700 --codec raw --metric l2
on_device --base "$bytes" --rows 0:700 --codec raw --metric l2
check "raw on a device" diff -rq "$folder/cpu" "$folder/device"
for line in '"device": "cpu"' '"device_note": "codec raw copies rows, which takes no GPU"'; do
    check "raw: $line" grep -qF "$line" "$folder/json"
done

# An emulated device is never chosen unasked.
"$emulated" encode --base "$floats" --metric cosine --index "$folder/auto" --quiet --json >"$folder/json"
if grep -q '^  "device": "cpu"' "$folder/json"; then pass; else complain "auto took a device"; fi

# ---- bad rows ------------------------------------------------------------------------------------

# put ROW DIM BYTES: a number of the float file.
put() {
    printf '%b' "$3" | dd of="$folder/bad.fbin" bs=1 seek=$((8 + 4 * (50 * $1 + $2))) conv=notrunc status=none
}

cp "$floats" "$folder/bad.fbin"
put 699 49 '\x00\x00\xc0\x7f' # NaN
put 301 0 '\x00\x00\x80\xff'  # -Inf
put 302 7 '\xff\xff\x7f\x7f'  # the largest number
dd if=/dev/zero of="$folder/bad.fbin" bs=1 seek=$((8 + 4 * 50 * 400)) count=200 conv=notrunc status=none
for arguments in "--codec xfbq --rotation none" "--codec xfbq --rotation random" "--codec saq --metric cosine" "--codec saq --metric l2" \
    "--codec pq --metric l2" "--codec sq8 --metric cosine" "--codec sq8 --metric l2"; do
    read -ra words <<<"$arguments --base $folder/bad.fbin"
    same "${words[@]}" --drop-bad-rows --shards 3 --device-memory 120K
    if grep -q '"dropped_rows": [34],' "$folder/json"; then pass; else complain "$arguments: dropped rows"; fi
    same "${words[@]}" --drop-bad-rows --shards 2 --device-memory 120K --lists 9 --calibrate off
    if grep -q '"dropped_rows": [34],' "$folder/json"; then pass; else complain "$arguments, lists: dropped rows"; fi
    for rows in 0:700 302:700 303:700; do
        on_cpu "${words[@]}" --rows $rows --device-memory 120K
        on_device "${words[@]}" --rows $rows --device-memory 120K
        if ((code != 65)) || ! cmp -s "$folder/cpu.stderr" "$folder/stderr"; then
            complain "$arguments, rows $rows: exit code $code, another error" "$folder/stderr"
        else
            pass
        fi
    done
done

# ---- errors --------------------------------------------------------------------------------------

# expect CODE PATTERN ARGUMENTS: one line and no index.
expect() {
    local wanted=$1 pattern=$2
    shift 2
    on_device "$@"
    if ((code != wanted)) || [[ $(wc -l <"$folder/stderr") != 1 ]] || ! grep -Eq -- "$pattern" "$folder/stderr"; then
        complain "exit code $code instead of $wanted, or another error: $*" "$folder/stderr"
    elif [[ -e $folder/device/manifest.pb ]]; then
        complain "an index was made: $*"
    else
        pass
    fi
}

expect 74 'emulated:0: 9000 bytes of device memory are free, [0-9]+ are needed at least' --base "$floats" --metric cosine --device-memory 9000
expect 74 'emulated:0: 9000 bytes of device memory are free, [0-9]+ are needed at least' --base "$floats" --metric l2 \
    --lists 20 --calibrate off --device-memory 9000
BITSWEEP_EMULATOR_DEVICES=0 expect 2 '--device emulated: no device can be used: ' --base "$floats" --metric cosine
BITSWEEP_TUNING=$folder/lists_on BITSWEEP_EMULATOR_FAIL=9 expect 74 'emulated:0: .*LaunchFailure' --base "$floats" \
    --metric cosine --lists 20
BITSWEEP_EMULATOR_FAIL=3 expect 74 'emulated:0: .*LaunchFailure' --base "$floats" --metric cosine --device-memory 60K
BITSWEEP_EMULATOR_STALL=2 expect 74 'emulated:0: .*: not done within 0.75 s' --base "$floats" --metric cosine --device-memory 60K --timeout 1

finish
