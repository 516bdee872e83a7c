#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rank for each CPU socket, with all of its cores: here 8 ranks on 4 nodes with two sockets of 16 cores each. Options
# of sbatch change the numbers.
# usage, in the root of the repository:
#   sbatch --nodes=2 --cpus-per-task=32 deploy/slurm/socket_ranks.sh groundtruth --base base.fbin --queries q.fbin \
#       --metric l2 --k 100 --out truth --resume
#SBATCH --job-name=bitsweep
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=2
#SBATCH --ntasks-per-socket=1
#SBATCH --cpus-per-task=16
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@180
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=bitsweep-%j.log

# A rank stays on its socket and takes memory there.
export BITSWEEP_SRUN=${BITSWEEP_SRUN:---cpu-bind=sockets --mem-bind=local}
# Slurm runs a copy of this file, so it goes by the folder that sbatch was called in, or where the package puts it.
root=${BITSWEEP_ROOT:-$SLURM_SUBMIT_DIR}
[[ -e $root/deploy/slurm/slurm_job.sh ]] || root=/usr/share/bitsweep
exec "$root/deploy/slurm/slurm_job.sh" "$@"
