#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files of tuning for GPUs: whatever they say, the bytes are the CPU's, on two kinds of devices; what was chosen
# shows that they were read; a bad line is refused by its number. bench tune --device: a row for the device with
# what was measured, which searches read. Devices are emulated, so no time means anything.
# usage: check_device_tuning.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
needs "$emulated"
tuning=$folder/tuning

# tuned LINE...: the file, for 9.0 and for 8.6.
tuned() {
    : >"$tuning"
    for line; do printf 'device 9.0 %s\ndevice 8.6 %s\n' "$line" "$line" >>"$tuning"; done
}

# search INDEX PROGRAM ARGUMENTS
search() {
    "$2" search --index "$folder/$1" --queries "$queries" --query-rows 0:20 --k 10 --quiet --force \
        --out "$folder/found" "${@:3}"
}

# same INDEX FACT ARGUMENTS: by the file, on both kinds: the bytes of the CPU, and the fact in the report.
same() {
    local index=$1 fact=$2 kind
    shift 2
    for kind in '' 1; do
        if ! BITSWEEP_TUNING=$tuning env ${kind:+BITSWEEP_EMULATOR_HOPPER=1} "$emulated" search --index "$folder/$index" \
            --queries "$queries" --query-rows 0:20 --k 10 --quiet --force --out "$folder/found" --device emulated \
            --json --check-every never "$@" >"$folder/json" 2>"$folder/stderr"; then
            complain "$index, hopper '$kind', $(<"$tuning")"
        elif ! cmp -s "$folder/expected.$index" "$folder/found"; then
            complain "$index, hopper '$kind': other bytes by $(<"$tuning")"
        elif ! grep -qE "$fact" "$folder/json"; then
            complain "$index, hopper '$kind': not $fact by $(<"$tuning")" "$folder/json"
        else
            pass
        fi
    done
}

"$program" encode --base "$base" --rows 0:3000 --index "$folder/flat" --codec saq --bits 2 --metric l2 --stage 64 --quiet
"$program" encode --base "$base" --rows 0:3000 --index "$folder/lists" --codec saq --bits 2 --metric l2 --lists 20 \
    --calibrate off --quiet
"$program" encode --base "$base" --index "$folder/long" --codec saq --bits 2 --metric l2 --quiet
for index in flat lists long; do
    search "$index" "$program" --device cpu
    mv "$folder/found" "$folder/expected.$index"
done

for kernels in mma hopper-1x64,hopper-slices,mma hopper-4x64:10,hopper-3x128,hopper-2x128,hopper-slices; do
    tuned "matrix_scans=$kernels progressive_from_dims=-"
    same flat '"scan": "matrix"'
done
for kernel in mma hopper; do
    tuned "list_kernel=$kernel progressive_from_dims=-" 'hopper_list_bundles=-,0,0,0'
    same flat '"scan": "matrix"'
    same lists '"scan": "matrix"'
done
tuned 'few_lists=on,on progressive_from_dims=-' # lists of few queries
same lists '"scan": "matrix"' --batch 9
tuned 'matrix_scans=few,few-any progressive_from_dims=-'
same flat '"scan": "matrix"'
same flat '"scan": "matrix"' --batch 9
same flat '"scan": "matrix"' --batch 7
tuned 'matrix_scans=few-any:1 plane_scans=popcount progressive_from_dims=-'
same flat '"scan": "matrix"' --batch 1
tuned 'matrix_scans=mma plane_scans=popcount progressive_from_dims=-'
same flat '"scan": "planes"' --batch 1
tuned 'hopper_division=1,1 matrix_division=1,1 plane_division=65536,1 tile_queries=1,2' \
    'matrix_scans=hopper-2x128,hopper-slices matrix_from_queries=1 progressive_from_dims=-'
same flat '"scan": "matrix"' --batch 1
same flat '"scan": "matrix"'
tuned 'matrix_from_queries=- plane_scans=popcount plane_group_bytes=1'
same flat '"scan": "planes"'
tuned 'plane_scans=bits matrix_from_queries=21'
same flat '"scan": "planes"'
tuned 'progressive_from_dims=128 matrix_scans=hopper-2x128'
same flat '"scan": "(progressive-)?matrix"'
check "progressive on Hopper" grep -q '"scan": "progressive-matrix"' "$folder/json"
tuned progressive_from_dims=129
same flat '"scan": "matrix"'
tuned 'progressive_from_dims=- graphs=on'
same flat '"graphs": [1-9]' --batch 5
tuned 'progressive_from_dims=- graphs=off'
same flat '"graphs": 0' --batch 5
# Lists too short for all rows, so a sample is taken; long ones, so none is.
tuned 'progressive_from_dims=- levels=off list_items=1 all_list_items=1 sample_lists=1 sample_part=1'
same flat '"samples": 1'
tuned 'progressive_from_dims=- levels=off list_items=1048576 all_list_items=1073741824 sample_lists=65536 sample_part=65536'
same flat '"samples": 0'
# Limits by rank: of one sample, or of two where candidates cost much and launches nothing.
tuned 'level_costs=25000,30,6900,9800,240'
same long '"samples": 1'
tuned 'level_costs=4000000000,0,0,0,0' 'list_items=4000'
same long '"samples": 1'
tuned levels=off
same long '"samples": 0'

# ---- refused -------------------------------------------------------------------------------------

refuse() {
    printf '# mine\n%s\n' "$2" >"$tuning"
    BITSWEEP_TUNING=$tuning refused 65 "tuning: line 2: $1" search flat "$program" --device cpu
}
refuse "no column 'speed'" 'device 9.0 speed=1'
refuse 'graphs must be on or off' 'device 9.0 graphs=yes'
refuse 'list_kernel must be mma or hopper' 'device 8.6 list_kernel=wgmma'
refuse 'matrix_scans must be up to 8 kernels' 'device 8.6 matrix_scans=wgmma'
refuse "write 'device CAPABILITY NAME=VALUE...'" 'device H100 graphs=on'
refuse 'neither a table' 'devices 9.0 graphs=on'

# ---- bench tune --device --------------------------------------------------------------------------

# tune ARGUMENTS: of a Hopper GPU.
tune() {
    BITSWEEP_EMULATOR_HOPPER=1 "$emulated" bench tune --device emulated:0 --rows 64 --seconds 0.0001 "$@" </dev/null
}

printf '# mine\ntable avx2 another 1 1\nrow 32 1 0 0 -\ndevice 8.9 graphs=on' >"$tuning"
check "a row is measured" tune --write "$tuning"
if [[ $(head -n 4 "$tuning") == $'# mine\ntable avx2 another 1 1\nrow 32 1 0 0 -\ndevice 8.9 graphs=on' &&
    $(grep -c '^device 9.0 .* # emulated$' "$tuning") == 1 ]]; then pass; else complain "its file" "$tuning"; fi
for column in matrix_from_queries matrix_scans list_kernel hopper_list_bundles graphs progressive_from_dims sample_part \
    gpu_lists exact_screen list_pairs; do
    if [[ $(grep -c "^device 9.0 .*\b$column=" "$tuning") == 1 ]]; then pass; else complain "no $column" "$tuning"; fi
done
for what in batch 'few queries' lists 'small batch' progressive 'whole lists' "rows' lists"; do
    if grep -qE "^  $what +[0-9]+ " "$folder/stdout"; then pass; else complain "no $what" "$folder/stdout"; fi
done
cp "$tuning" "$folder/before"
refused 2 'tuning: has a row of device 9\.0; --force replaces it' tune --write "$tuning"
check "it stays" cmp "$folder/before" "$tuning"
sed -i 's/matrix_from_queries=[0-9-]*/matrix_from_queries=21/; s/progressive_from_dims=[0-9-]*/progressive_from_dims=-/' "$tuning"
BITSWEEP_EMULATOR_HOPPER=1 BITSWEEP_TUNING=$tuning search flat "$emulated" --device emulated --json >"$folder/json"
check "the same bytes" cmp "$folder/expected.flat" "$folder/found"
if grep -q '"scan": "planes"' "$folder/json"; then pass; else complain "the written row was not read"; fi
printf 'device 9.0 speed=1\n' >"$folder/bad"
refused 65 "bad: line 1: no column 'speed'" tune --write "$folder/bad" --force
refused 2 "name a GPU" "$emulated" bench tune --device auto
refused 2 "is not one of" "$emulated" bench tune --device gpu

finish
