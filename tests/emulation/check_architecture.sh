#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles GPU kernels for one architecture, with the options of the build, so that spilled registers
# and wgmma that waits fail whatever the build was for; then counts their instructions
# (check_budgets.sh), if nvcc is the one of the budgets. Files X_hopper.cu are for 90a alone, and
# nothing else is; CUB's kernels (device_sort.cu) are not ours.
# usage: check_architecture.sh NVCC COUNT_INSTRUCTIONS ARCHITECTURE[+ARCHITECTURE...] all|ptx=FOLDER|budgets|FOLDER OPTION...
#   Those behind the first, which have no budgets, assemble its PTX: most of the time goes into that.
#   ptx=FOLDER: all files, too, but what the build has left there of PTX for 8.0 is assembled, as nvcc makes the
#   same of a source that does not tell the architectures apart. What is not there is compiled.
#   budgets: only files that have budgets for the architecture, where the build compiles the others.
#   FOLDER: the same, of machine code that the build has kept there; what is not there is compiled.
# exit 77: no NVCC, or it does not know an architecture
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
nvcc=$1
count=$2
IFS=+ read -ra architectures <<<"$3"
architecture=${architectures[0]}
scope=$4
shift 4
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

# has_budget NAME
has_budget() {
    awk -v architecture="$architecture" -v file="$1" \
        '$1 == architecture && $2 == file { found = 1 } END { exit !found }' kernels/instruction_budgets.txt
}

# kept NAME: prints the file that the build has left of it.
kept() {
    local file
    if [[ ! -d $scope ]]; then return 1; fi
    for file in "$scope/$1.sm_$architecture.cubin" "$scope/$1.compute_$architecture.cubin" "$scope/$1.cubin"; do
        if [[ -f $file ]]; then echo "$file" && return; fi
    done
    return 1
}

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
for file in kernels/*/*.cu tests/emulation/count_unpack.cu; do
    name=$(basename "$file" .cu)
    case $architecture:$file in
    *:*/device_sort.cu) continue ;;
    90a:*_hopper.cu) ;;
    90a:* | *:*_hopper.cu) continue ;;
    esac
    if [[ ($scope != all && $scope != ptx=*) || $name == count_unpack ]] && ! has_budget "$name"; then continue; fi
    echo "$file"
    num_files=$((num_files + 1))
    if of_build=$(kept "$name"); then
        cp "$of_build" "$folder/$name.cubin"
        continue
    fi
    if same_ptx "$name" "$folder/$name.ptx"; then
        file=$folder/$name.ptx
        num_assembled=$((num_assembled + 1))
    fi
    bash deploy/refuse_serialized.sh "$nvcc" -std=c++17 -O3 -DNDEBUG "-I$root" "$@" "$output" \
        -gencode "arch=compute_$architecture,code=[${codes#,}]" "$file" -o "$folder/$name.cubin"
done
echo "check_architecture.sh: $num_files files for ${architectures[*]}, $num_assembled of them from the build's PTX"
((num_files > 0))
if "$nvcc" --version | grep -q 'release 13\.0'; then
    bash tests/emulation/check_budgets.sh "$count" "$architecture" "$folder"
else
    echo "check_architecture.sh: not nvcc 13.0: instructions are not counted"
fi
