#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves that the options given refuse a kernel that spills registers, and only that; and that
# deploy/refuse_serialized.sh refuses one whose wgmma ptxas makes wait.
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

# ---- wgmma ----

cat >"$folder/products.cu" <<'END'
__device__ __forceinline__ void multiply(int (&d)[4], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, %8, 1;"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__global__ void products(const unsigned *in, int *out, unsigned long long b)
{
    unsigned a[4];
    int d[4] = {};
    for (int i = 0; i < 4; i++) a[i] = in[4 * threadIdx.x + i];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    multiply(d, a, b);
    if (TOUCHES) d[0] += d[1];
    multiply(d, a, b);
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 :
                 : "memory");
    for (int i = 0; i < 4; i++) out[4 * threadIdx.x + i] = d[i];
}
END

# compiles_products TOUCHES: 1 reads sums between two products.
compiles_products() {
    bash "$(dirname "${BASH_SOURCE[0]}")/../../deploy/refuse_serialized.sh" "$nvcc" -O3 \
        -gencode arch=compute_90a,code=sm_90a "-DTOUCHES=$1" "${@:2}" -c "$folder/products.cu" \
        -o "$folder/products.o" 2>"$folder/messages"
}

if ! compiles_products 0 "$@"; then
    cat "$folder/messages"
    echo "check_spills.sh: wgmma that does not wait was refused"
    exit 1
fi
if compiles_products 1 "$@"; then
    echo "check_spills.sh: wgmma that waits was accepted"
    exit 1
fi
if [[ -e $folder/products.o ]] || ! grep -q 'refused$' "$folder/messages"; then
    cat "$folder/messages"
    echo "check_spills.sh: wgmma that waits was refused for another reason, or its object is left"
    exit 1
fi
echo "check_spills.sh: wgmma that waits is refused"
