#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rank for each GPU: here 8 ranks on 2 nodes with 4 GPUs each. Options of sbatch change the numbers.
# usage, in the root of the repository:
#   sbatch --nodes=1 --ntasks-per-node=8 deploy/slurm/gpu_ranks.sh search --device cuda --index idx --queries q.fbin \
#       --k 10 --out result --resume
#SBATCH --job-name=bitsweep
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@180
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=bitsweep-%j.log

# Slurm runs a copy of this file, so it goes by the folder that sbatch was called in, or where the package puts it.
root=${BITSWEEP_ROOT:-$SLURM_SUBMIT_DIR}
[[ -e $root/deploy/slurm/slurm_job.sh ]] || root=/usr/share/bitsweep
exec "$root/deploy/slurm/slurm_job.sh" "$@"
