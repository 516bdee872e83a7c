#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An array of sweeps: task I of the array runs the sweep in line I of a file. A line has the options of
# `bitsweep sweep`, separated by blanks, without quotes:
#   --base a.fbin --queries a_q.fbin --metric l2 --bits 1,2,3,4 --folder sweeps/a
#   --base b.fbin --queries b_q.fbin --metric cosine --bits 2,3 --folder sweeps/b
# usage, in the root of the repository; %4: four at a time:
#   sbatch --array=1-2%4 deploy/slurm/sweep_array.sh sweeps.txt
#SBATCH --job-name=bitsweep-sweep
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=16
#SBATCH --time=08:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=bitsweep-sweep-%A-%a.log
set -euo pipefail

if (($# != 1)) || [[ ! -r $1 ]]; then
    echo "sweep_array.sh: one file is needed that has the options of a sweep in each line" >&2
    exit 2
fi
read -ra options <<<"$(sed -n "${SLURM_ARRAY_TASK_ID:?start it with sbatch --array=1-N}p" "$1")"
if ((${#options[@]} == 0)); then
    echo "sweep_array.sh: $1 has no line $SLURM_ARRAY_TASK_ID" >&2
    exit 2
fi
# Slurm runs a copy of this file, so it goes by the folder that sbatch was called in, or where the package puts it.
root=${BITSWEEP_ROOT:-$SLURM_SUBMIT_DIR}
[[ -e $root/deploy/slurm/slurm_job.sh ]] || root=/usr/share/bitsweep
exec "$root/deploy/slurm/slurm_job.sh" sweep "${options[@]}" --resume
