#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether kernels have no more machine instructions than kernels/instruction_budgets.txt allows for
# one architecture. check_architecture.sh calls it with what it has compiled.
# usage: check_budgets.sh COUNT_INSTRUCTIONS ARCHITECTURE FOLDER; FOLDER: NAME.cubin of every file
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
count=$1
own=$2
folder=$3

num_failed=0
while read -r architecture file kernel from to most; do
    [[ $architecture == "$own" ]] || continue
    if ! counted=$("$count" "$folder/$file.cubin" "$kernel" "$from" "$to"); then
        echo "FAILED: sm_$architecture $file: no $kernel with $from and $to"
        num_failed=$((num_failed + 1))
    elif ((counted > most)); then
        echo "FAILED: sm_$architecture $file $kernel: $counted instructions from $from to $to, $most are allowed"
        num_failed=$((num_failed + 1))
    else
        echo "sm_$architecture $file $kernel from $from to $to: $counted of $most"
    fi
done <"$root/kernels/instruction_budgets.txt"
((num_failed == 0))
