#!/usr/bin/env bash
# Whether kernels have no more machine instructions than kernels/instruction_budgets.txt allows.
# usage: check_budgets.sh NVCC COUNT_INSTRUCTIONS OPTION...; exit 77: no NVCC, or not the one whose
# instructions were counted
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
nvcc=$1
count=$2
shift 2
if [[ -z $nvcc ]] || ! "$nvcc" --version | grep -q 'release 13\.0'; then
    echo "check_budgets.sh: no nvcc 13.0: skipped"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$root"

num_failed=0
while read -r architecture file kernel from to most; do
    [[ $architecture && $architecture != \#* ]] || continue
    cubin=$folder/$file.$architecture
    [[ -e $cubin ]] || "$nvcc" -std=c++17 -O3 -DNDEBUG "-I$root" "$@" -cubin \
        -gencode "arch=compute_$architecture,code=sm_$architecture" "kernels/"*"/$file.cu" -o "$cubin"
    if ! counted=$("$count" "$cubin" "$kernel" "$from" "$to"); then
        echo "FAILED: sm_$architecture $file: no $kernel with $from and $to"
        num_failed=$((num_failed + 1))
    elif ((counted > most)); then
        echo "FAILED: sm_$architecture $file $kernel: $counted instructions from $from to $to, $most are allowed"
        num_failed=$((num_failed + 1))
    else
        echo "sm_$architecture $file $kernel: $counted of $most"
    fi
done <kernels/instruction_budgets.txt
((num_failed == 0))
