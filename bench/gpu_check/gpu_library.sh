#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The library on a GPU: what it answers there is what it answers on the CPU, for a program in C and, where python3 has
# NumPy, for the Python package, with patiences as a caller gets them who sets none.
# usage: gpu_library.sh ROOT PROGRAM LIBRARY DEVICE     PROGRAM is library_device, DEVICE emulated or cuda
set -euo pipefail

(($# == 4)) || { echo "usage: gpu_library.sh ROOT PROGRAM LIBRARY DEVICE" >&2 && exit 2; }
root=$1 program=$2 library=$3 device=$4
data=$root/tests/data
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
num_failed=0

# check WHAT COMMAND...
check() {
    local what=$1
    shift
    if "$@" >"$folder/said" 2>&1; then
        echo "ok: $what"
    else
        num_failed=$((num_failed + 1))
        echo "FAILED: $what"
        tail -n 20 "$folder/said"
    fi
}

check "a program in C" "$program" "$data/sift20k_base.u8bin" "$data/sift20k_query.u8bin" "$folder/c" "$device"
if python3 -c 'import numpy' 2>/dev/null; then
    export PYTHONPATH=$root/python BITSWEEP_LIBRARY=$library BITSWEEP_TEST_DEVICE=$device PYTHONDONTWRITEBYTECODE=1
    check "the Python package" python3 "$root/python/tests/test_device.py"
else
    echo "skipped, python3 has no NumPy: the Python package"
fi
echo "$num_failed failures"
((num_failed == 0))
