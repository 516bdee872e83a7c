#!/usr/bin/env bash
# Proves that the options given refuse a kernel that spills registers, and only that.
# usage: check_spills.sh NVCC OPTION...; exit 77: NVCC is empty
set -euo pipefail

nvcc=$1
shift
if [[ -z $nvcc ]]; then
    echo "check_spills.sh: no nvcc: skipped"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/copy.cu" <<'END'
__global__ void __launch_bounds__(BLOCK, 1) copy(const float *in, float *out)
{
    float values[96];
    for (int i = 0; i < 96; i++) values[i] = in[i * BLOCK + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 96; i++) out[i * BLOCK + threadIdx.x] = values[i] * values[(i + 1) % 96];
}
END

# compiles THREADS: 96 values a thread fit 255 registers, not 64.
compiles() {
    "$nvcc" -O3 -arch=sm_80 "-DBLOCK=$1" "${@:2}" -c "$folder/copy.cu" -o "$folder/copy.o" \
        2>"$folder/messages"
}

if ! compiles 256 "$@"; then
    cat "$folder/messages"
    echo "check_spills.sh: a kernel without spills was refused"
    exit 1
fi
if compiles 1024 "$@"; then
    echo "check_spills.sh: a kernel that spills was accepted"
    exit 1
fi
if ! grep -q spilled "$folder/messages"; then
    cat "$folder/messages"
    echo "check_spills.sh: refused for another reason"
    exit 1
fi
echo "check_spills.sh: spills are refused"
