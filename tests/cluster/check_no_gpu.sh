#!/usr/bin/env bash
# The program built with nvcc where no GPU can be used: asked for one it says so in one line, else it
# works on the CPU. GPUs of this host are hidden from it.
# usage: check_no_gpu.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

program=$1
run=$2/deploy/run.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export BITSWEEP=$program CUDA_VISIBLE_DEVICES=-1 OMP_WAIT_POLICY=passive
passed=0
failed=0

ranks_axis=(1)
if command -v mpirun >/dev/null && "$run" -n 2 -- --version >/dev/null 2>&1; then ranks_axis=(1 2); fi

pass() {
    passed=$((passed + 1))
}

complain() {
    failed=$((failed + 1))
    echo "FAILED: $1" >&2
    head -n 20 "$folder/stderr" >&2
}

"$program" encode --base "$2/tests/data/sift20k_base.u8bin" --rows 0:203 --index "$folder/index" \
    --codec xfbq --bits 2 --shards 2 --quiet

# search RANKS ARGUMENTS: sets code.
queries=$2/tests/data/sift20k_query.u8bin
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

echo "$passed passed, $failed failed"
((failed == 0))
