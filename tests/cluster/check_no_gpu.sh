#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program built with nvcc where no GPU can be used: asked for one it says so in one line, else it
# works on the CPU. GPUs of this host are hidden from it.
# usage: check_no_gpu.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
export CUDA_VISIBLE_DEVICES=-1
find_ranks 2

"$program" encode --base "$base" --rows 0:203 --index "$folder/index" \
    --codec xfbq --bits 2 --shards 2 --quiet

# search RANKS ARGUMENTS: sets code.
search() {
    local ranks=$1
    shift
    code=0
    rm -f "$folder"/out*
    timeout 60 "$run" -n "$ranks" search --index "$folder/index" --queries "$queries" --query-rows 0:3 \
        --k 3 --quiet --out "$folder/out" "$@" >"$folder/json" 2>"$folder/stderr" || code=$?
}

search 1 --device cuda
if grep -q 'this build has no CUDA' "$folder/stderr"; then
    echo "this build has no CUDA"
    exit 77
fi
for ranks in "${ranks_axis[@]}"; do
    for device in cuda cuda:0 cuda:7; do
        search "$ranks" --device "$device"
        if ((code != 2)) || [[ $(wc -l <"$folder/stderr") != 1 ]] || compgen -G "$folder/out*" >/dev/null ||
            ! grep -Eq -- "--device $device: no device can be used: (no|CUDA) " "$folder/stderr"; then
            complain "exit code $code: $ranks ranks, --device $device"
        else
            pass
        fi
    done
    search "$ranks" --device auto --json
    if ((code != 0)) || ! grep -q '^  "device": "cpu"' "$folder/json"; then
        complain "exit code $code: $ranks ranks, --device auto"
    else
        pass
    fi
done

finish
