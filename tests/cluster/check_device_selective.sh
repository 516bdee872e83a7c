#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Entries within a radius on an emulated device: the result files have the bytes of the CPU for every
# metric, size of codes, mode, miss, scale and kind of radii, with and without lists and residuals, for any
# ranks, shards, batches and memory; so has a sweep; what memory they take is foretold. With `cuda` as a
# third argument the device is GPU 0 and the program BITSWEEP_BINARY itself.
# usage: check_device_selective.sh BITSWEEP_BINARY SOURCE_FOLDER [cuda]
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
kind=${3:-emulated}
if [[ $kind == cuda ]]; then emulated=$program; fi
needs "$emulated"
find_ranks 2

check "rows" "$program" synth --count 1200 --dims 26 --clusters 30 --seed 4 --out "$folder/rows.fbin" \
    --queries 9 --queries-out "$folder/vectors.fbin"

# search_cpu NAME ARGUMENTS: what is to be found.
search_cpu() {
    local name=$1
    shift
    check "cpu, $name $*" "$program" search --index "$folder/$name.1" --queries "$folder/vectors.fbin" --quiet \
        --device cpu --out "$folder/expected" --force --json "$@"
    cp "$folder/stdout" "$folder/said"
}

# same NAME RANKS SHARDS ARGUMENTS: compares with the file of search_cpu.
same() {
    local name=$1 ranks=$2 shards=$3 what
    shift 3
    what="$name, $ranks ranks, $shards shards, $*"
    if needs_emulator "$what"; then return; fi
    if ! BITSWEEP=$emulated "$run" -n "$ranks" search --index "$folder/$name.$shards" --queries "$folder/vectors.fbin" \
        --quiet --device "$(device_for "$ranks")" --out "$folder/found" --force --json "$@" >"$folder/json" 2>"$folder/stderr" ||
        [[ -s $folder/stderr ]]; then
        complain "$what"
    elif ! cmp -s "$folder/expected" "$folder/found"; then
        complain "$what: other bytes"
    elif ! grep -q "^  \"device\": \"$kind\"" "$folder/json"; then
        complain "$what: not on the device"
    else
        pass
    fi
}

# same_somewhere NAME ARGUMENTS: one or two searches of the many there are, by turns.
turn=0
same_somewhere() {
    local name=$1 last=${ranks_axis[-1]}
    shift
    search_cpu "$name" --entries radius "$@"
    case $((turn++ % 3)) in
    0)
        same "$name" 1 1 --entries radius --batch 4 --overlap on "$@"
        BITSWEEP_EMULATOR_ORDER=random same "$name" "$last" 3 --entries radius "$@"
        ;;
    1) same "$name" "$last" 3 --entries radius --batch 1 "$@" ;;
    2) BITSWEEP_EMULATOR_ORDER=descending same "$name" 1 3 --entries radius --batch 7 --check-every 0 "$@" ;;
    esac
}

# The last are all misses for most rows, and too few rows for k.
ways=("--mode H" "--mode H --miss inf --radius-scale 1.2" "--mode M" "--mode L --radii small" "--radius-scale inf"
    "--mode M --radii large" "--mode H --radius-scale 0.2 --k 600")
i=0
while read -r name metric bits arguments <&3; do
    read -ra own <<<"$arguments"
    for shards in 1 3; do
        check "encode $name.$shards" "$program" encode --base "$folder/rows.fbin" --codec pq --entries radius \
            --rotation none --calibrate off --index "$folder/$name.$shards" --shards "$shards" --quiet \
            --metric "$metric" --bits "$bits" "${own[@]}"
    done
    probe=()
    if [[ $name == *lists* ]]; then probe=(--probe 5); fi
    for ((j = 0; j < 3; j++, i++)); do
        read -ra way <<<"${ways[i % ${#ways[@]}]}"
        same_somewhere "$name" "${way[@]}" "${probe[@]}" --refine none
    done
    same_somewhere "$name" --oversample 9 --radius-scale 0.6 "${probe[@]}"
done 3<<'END'
flat_l2 l2 8
flat_ip ip 4
lists_l2 l2 8 --lists 20
lists_cosine cosine 4 --lists 20
lists_whole l2 4 --lists 20 --residual no
END
same_somewhere lists_l2 --probe all --mode M --refine none --k 100

# What memory it takes, and what share of the entries is near.
for name in flat_l2 lists_l2; do
    probe=()
    if [[ $name == *lists* ]]; then probe=(--probe 5); fi
    search_cpu "$name" --entries radius "${probe[@]}"
    for memory in 10M 90K; do
        if [[ $name$memory == lists_l290K ]]; then continue; fi
        "$emulated" info "$folder/$name.1" --json --device-memory "$memory" --entries radius "${probe[@]}" >"$folder/info"
        if [[ $memory == 90K ]]; then
            check "$name: codes come in blocks" grep -qE '"streamed_bytes": [1-9]' "$folder/info"
        fi
        same "$name" 1 1 --device-memory "$memory" --entries radius "${probe[@]}"
        said=$(sed -n 's/^ *"used_bytes": \([0-9]*\),$/\1/p' "$folder/info")
        used=$(sed -n 's/^ *"used_bytes": \([0-9]*\),$/\1/p' "$folder/json")
        check "$name, $memory: $said foretold, $used used" test -n "$said" -a "$said" = "$used"
    done
    for file in said json; do sed -n 's/^ *"entries_share": //p' "$folder/$file" >"$folder/share.$file"; done
    check "$name: a share of entries" test -s "$folder/share.said"
    check "$name: the same share of entries" cmp "$folder/share.said" "$folder/share.json"
done

# columns FOLDER: of a sweep, what does not depend on the time.
columns() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^(entries|mode|radius_scale|recall|entries_share)$/) keep[i] = 1 }
        { line = ""; for (i = 1; i <= NF; i++) if (i in keep) line = line "," $i; print line }' "$1/sweep.csv" | sort
}
for device in cpu "$kind"; do
    check "sweep, $device" "$emulated" sweep --base "$folder/rows.fbin" --queries "$folder/vectors.fbin" --metric l2 \
        --codec pq --bits 8 --oversample 2 --repeat 1 --entries all,radius --radius-scale 0.5,1 --mode H,M --k 10 --device "$device" \
        --folder "$folder/sweep.$device" --quiet
    columns "$folder/sweep.$device" >"$folder/columns.$device"
done
check "radii in the sweep" grep -q "radius" "$folder/columns.$kind"
check "the same sweep" cmp "$folder/columns.cpu" "$folder/columns.$kind"

refused 2 "entries-by other than brute runs on the CPU only|no back end" "$emulated" search --index "$folder/flat_l2.1" \
    --queries "$folder/vectors.fbin" --out "$folder/x" --entries radius --entries-by embree --device "$kind"
refused 2 "radii nearest runs on the CPU only" "$emulated" search --index "$folder/flat_l2.1" \
    --queries "$folder/vectors.fbin" --out "$folder/x" --entries radius --radii nearest --device "$kind"
finish
