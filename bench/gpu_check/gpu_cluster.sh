#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench cluster on the GPUs of this host: a rank on each, or 2 and 4 ranks that share one, which shows that it works and
# measures no cluster.
# usage: gpu_cluster.sh BITSWEEP_BINARY PROGRAM DEVICE
#
# PROGRAM and DEVICE are what is measured. QUICK=1 in the environment takes few rows, for the emulator.
set -euo pipefail

(($# == 3)) || { echo "usage: gpu_cluster.sh BITSWEEP_BINARY PROGRAM DEVICE" >&2 && exit 2; }
other=$2 kind=${3%%:*}
# shellcheck source=bench/gpu_check/gpu_nccl.sh
. "$(dirname "$0")/gpu_nccl.sh"
run=$(cd "$(dirname "$0")/../.." && pwd)/deploy/run.sh
sizes=(--rows 1M --queries 10000 --batch 10000 --max 128M --factor 16) ranks=(2 4)
if [[ -n ${QUICK:-} ]]; then sizes=(--rows 400 --dims 32 --queries 9 --sample 2 --repeat 1 --max 1K --factor 16) ranks=(2); fi
export BITSWEEP=$other BITSWEEP_RUN OMP_WAIT_POLICY=passive
BITSWEEP_RUN=$(dirname "$1")/bitsweep-run

command -v mpirun >/dev/null || { echo "skipped: mpirun is missing" && exit 77; }
gpus=1
if [[ $kind == cuda ]]; then gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true); fi
device=$kind link=auto
if ((gpus > 1)); then
    ranks=("$gpus")
else
    device=$kind:0 link=mpi
    if has_nccl; then link=nccl; else echo "no libnccl.so.2 here: MPI alone"; fi
fi
for number in "${ranks[@]}"; do
    "$run" -n "$number" bench cluster --device "$device" --link "$link" --case network,weak,strong "${sizes[@]}"
done
echo "${#ranks[@]} runs, 0 failures"
