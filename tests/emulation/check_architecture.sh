#!/usr/bin/env bash
# Compiles every GPU kernel for one architecture, with the options of the build, so that spilled
# registers and wgmma that waits fail whatever the build was for. Files X_hopper.cu are for 90a alone,
# and nothing else is; CUB's kernels (device_sort.cu) are not ours.
# usage: check_architecture.sh NVCC ARCHITECTURE OPTION...; exit 77: no NVCC, or it does not know the
# architecture
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
nvcc=$1
architecture=$2
shift 2
if [[ -z $nvcc ]]; then
    echo "check_architecture.sh: no nvcc: kernels for $architecture skipped"
    exit 77
fi
if ! "$nvcc" --list-gpu-code | grep -qx "sm_${architecture%a}"; then
    echo "check_architecture.sh: $nvcc does not know $architecture: skipped"
    exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$root"
num_files=0
for file in kernels/*/*.cu; do
    case $architecture:$file in
    *:*/device_sort.cu) continue ;;
    90a:*_hopper.cu) ;;
    90a:* | *:*_hopper.cu) continue ;;
    esac
    echo "$file"
    bash deploy/refuse_serialized.sh "$nvcc" -std=c++17 -O3 -DNDEBUG "-I$root" "$@" -cubin \
        -gencode "arch=compute_$architecture,code=sm_$architecture" "$file" -o "$folder/kernel.cubin"
    num_files=$((num_files + 1))
done
echo "check_architecture.sh: $num_files files for $architecture"
((num_files > 0))
