#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles GPU kernels for one architecture, with the options of the build, so that spilled registers
# and wgmma that waits fail whatever the build was for. Files X_hopper.cu are for 90a alone, and
# nothing else is; CUB's kernels (device_sort.cu) are not ours.
# usage: check_architecture.sh NVCC ARCHITECTURE[+ARCHITECTURE...] all|ptx=FOLDER OPTION...
#   Those behind the first assemble its PTX: most of the time goes into that.
#   ptx=FOLDER: what the build has left there of PTX for 8.0 is assembled, as nvcc makes the same of a source that does
#   not tell the architectures apart. What is not there is compiled.
# exit 77: no NVCC, or it does not know an architecture
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
nvcc=$1
IFS=+ read -ra architectures <<<"$2"
architecture=${architectures[0]}
scope=$3
shift 3
if [[ -z $nvcc ]]; then
    echo "check_architecture.sh: no nvcc: kernels for ${architectures[*]} skipped"
    exit 77
fi
for own in "${architectures[@]}"; do
    if ! "$nvcc" --list-gpu-code | grep -qx "sm_${own%a}"; then
        echo "check_architecture.sh: $nvcc does not know $own: skipped"
        exit 77
    fi
done
output=-cubin
if ((${#architectures[@]} > 1)); then output=-fatbin; fi
codes=$(printf ',sm_%s' "${architectures[@]}")

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$root"

# same_ptx NAME FILE: writes PTX for the architecture from what the build has left for 8.0.
same_ptx() {
    local ptx=${scope#ptx=}/$1.ptx
    [[ $scope == ptx=* && -f $ptx ]] && grep -qx '\.target sm_80' "$ptx" || return 1
    sed "s/^\.target sm_80\$/.target sm_$architecture/" "$ptx" >"$2"
}

# A source that asks for an architecture from 8.0 (without) to 9.0 (with) has different PTX for them.
if [[ $scope == ptx=* ]] && grep -rnE '__CUDA_ARCH(_LIST)?__ *[<>=!]+ *(8[0-9]{2}|9[0-9]{2})|NV_IF_TARGET' kernels; then
    echo "check_architecture.sh: sources tell 8.0 and $architecture apart: all are compiled"
    scope=all
fi

num_files=0 num_assembled=0
for file in kernels/*/*.cu; do
    name=$(basename "$file" .cu)
    case $architecture:$file in
    *:*/device_sort.cu) continue ;;
    90a:*_hopper.cu) ;;
    90a:* | *:*_hopper.cu) continue ;;
    esac
    echo "$file"
    num_files=$((num_files + 1))
    if same_ptx "$name" "$folder/$name.ptx"; then
        file=$folder/$name.ptx
        num_assembled=$((num_assembled + 1))
    fi
    bash deploy/refuse_serialized.sh "$nvcc" -std=c++17 -O3 -DNDEBUG "-I$root" "$@" "$output" \
        -gencode "arch=compute_$architecture,code=[${codes#,}]" "$file" -o "$folder/$name.cubin"
done
echo "check_architecture.sh: $num_files files for ${architectures[*]}, $num_assembled of them from the build's PTX"
((num_files > 0))
