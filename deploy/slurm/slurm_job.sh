#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the sbatch scripts beside this file start: bitsweep on all tasks of a Slurm job. It stops the job before its
# time is up and puts it back into the queue. See --help.
# Some functions are called by traps alone, which shellcheck does not see.
# shellcheck disable=SC2317
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
grace=${BITSWEEP_GRACE:-60}               # seconds from USR1 to TERM
most_requeues=${BITSWEEP_MOST_REQUEUES:-50}
ranks=""     # the process that has started the ranks
asked=""     # the first signal that came
alarm=""     # the process that waits for the grace to pass
is_cut=0     # a signal has come, so that `wait` may have ended before what it waits for

help() {
    cat <<'END'
usage: slurm_job.sh COMMAND [ARGUMENTS]

Runs `bitsweep COMMAND ARGUMENTS` inside a Slurm job, a rank for each task. The scripts beside this one
call it; a script of your own can do the same.

SIGUSR1, which Slurm sends before the time is up (#SBATCH --signal=B:USR1@180), lets the ranks finish the
batch, block or point they are at; after BITSWEEP_GRACE seconds (60) they get SIGTERM. Where the ranks
ended with exit code 75 and ARGUMENTS have --resume, the job goes back into the queue, up to
BITSWEEP_MOST_REQUEUES (50) times, and goes on when it starts again. A job that scancel stopped does not.

Environment:
  BITSWEEP            the program [build/release/bitsweep, or bitsweep in PATH]
  BITSWEEP_LAUNCHER   srun: srun --mpi=pmix; mpirun: deploy/run.sh. [srun where it has pmix]
  BITSWEEP_SRUN       more options of srun, separated by blanks

Exit codes are those of bitsweep, as rank 0 has written them.
END
}

fail() {
    echo "slurm_job.sh: $1" >&2
    exit "${2:-2}"
}

choose_program() {
    program=${BITSWEEP:-$root/build/release/bitsweep}
    if [[ -z ${BITSWEEP:-} && ! -x $program ]]; then program=$(command -v bitsweep || true); fi
    [[ -n $program && -x $program ]] || fail "bitsweep is not built and not in PATH; BITSWEEP can name it"
    export BITSWEEP=$program
}

choose_launcher() {
    local kinds
    launcher=${BITSWEEP_LAUNCHER:-}
    if [[ -z $launcher ]]; then
        kinds=$(srun --mpi=list 2>&1) || true
        launcher=mpirun
        [[ ! $kinds =~ pmix ]] || launcher=srun
    fi
    [[ $launcher == srun || $launcher == mpirun ]] || fail "BITSWEEP_LAUNCHER=$launcher: not srun or mpirun"
    # mpirun's daemons would each get the GPUs of one task.
    [[ $launcher == srun || -z ${SLURM_GPUS_PER_TASK:-} ]] ||
        fail "--gpus-per-task needs srun --mpi=pmix, which this Slurm lacks"
}

start_ranks() {
    local more=()
    read -ra more <<<"${BITSWEEP_SRUN:-}"
    if [[ $launcher == srun ]]; then
        # Slurm 22.05 and later do not pass --cpus-per-task on from sbatch to srun.
        srun --mpi=pmix --kill-on-bad-exit=1 ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"} \
            ${more[@]+"${more[@]}"} "$program" "$@" &
    else
        "$root/deploy/run.sh" -n "$SLURM_NTASKS" "$@" &
    fi
    ranks=$!
}

# Slurm itself sends TERM to all tasks when it ends a job; a task that gets it twice does not mind.
stop_ranks() {
    if [[ $launcher == srun ]]; then
        scancel --quiet --signal=TERM "$SLURM_JOB_ID" || true
    else
        kill -TERM "$ranks" 2>/dev/null || true
    fi
}

on_usr1() {
    is_cut=1
    asked=${asked:-USR1}
    [[ -z $alarm && -n $ranks ]] || return 0
    kill -USR1 "$ranks" 2>/dev/null || true # srun and run.sh pass it on
    (
        sleep "$grace" &
        # shellcheck disable=SC2064
        trap "kill $!" EXIT
        trap 'exit 0' TERM
        wait
        stop_ranks
    ) &
    alarm=$!
}

on_term() {
    is_cut=1
    asked=TERM
    [[ -z $ranks ]] || stop_ranks
}

# Waits for the ranks, however many signals come meanwhile; `got` is the exit code of what started them.
await_ranks() {
    local one
    got=0 is_cut=1
    while ((is_cut)); do
        is_cut=0 one=0
        wait "$ranks" || one=$?
        ((one == 127)) || got=$one # 127: there was nothing left to wait for
    done
    [[ -z $alarm ]] || kill "$alarm" 2>/dev/null || true
}

# Slurm has not started the ranks: what is left of the step of the same number of an earlier attempt may be in the way,
# and the next step has another number.
was_not_started() {
    [[ $launcher == srun && -z $asked && ! -e $BITSWEEP_STATUS && ! $got =~ ^(2|65|70|74|75|76)$ ]] && ((got < 128)) &&
        echo "slurm_job.sh: srun did not start the ranks (exit code $got)" >&2
}

# The exit code: what rank 0 has written, but that of another rank that failed where rank 0 was only stopped.
judge() {
    local written
    written=$(sed -n 's/^ *"exit_code": \([0-9]*\),\{0,1\}$/\1/p' "$BITSWEEP_STATUS" 2>/dev/null) || true
    code=${written:-74}
    if [[ ${written:-75} == 75 && $got =~ ^(2|65|70|74)$ ]]; then
        code=$got
    elif [[ -z $written && (-n $asked || $got == 75 || $got -gt 128) ]]; then
        code=75
    elif [[ -z $written ]]; then
        echo "slurm_job.sh: rank 0 has not said how the run ended ($launcher: exit code $got)" >&2
    fi
}

can_resume() {
    local word
    for word in "$@"; do
        [[ $word != --resume ]] || return 0
    done
    echo "slurm_job.sh: stopped; not requeued, as the command has no --resume" >&2
    return 1
}

requeue() {
    local count=${SLURM_RESTART_COUNT:-0}
    if ((count >= most_requeues)); then
        echo "slurm_job.sh: stopped; not requeued, as it has been $count times" >&2
    else # said first: Slurm ends this script at once
        echo "slurm_job.sh: stopped${asked:+ after SIG$asked}; requeueing, $((count + 1)) of at most $most_requeues" >&2
        scontrol requeue "$SLURM_JOB_ID" || echo "slurm_job.sh: Slurm does not requeue the job" >&2
    fi
}

[[ ${1:-} != -h && ${1:-} != --help ]] || { help && exit 0; }
(($#)) || fail "a bitsweep command is missing; --help tells more"
[[ -n ${SLURM_JOB_ID:-} ]] || fail "not inside a Slurm job; start it with sbatch"
trap on_usr1 USR1
trap on_term TERM INT
choose_program
choose_launcher
[[ -z ${SLURM_CPUS_PER_TASK:-} ]] || export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$SLURM_CPUS_PER_TASK}
export OPENBLAS_NUM_THREADS=1 SLURM_NTASKS=${SLURM_NTASKS:-1}
# In the folder of the job, which all nodes share. A name that no node has looked up before.
export BITSWEEP_STATUS=$PWD/.bitsweep-$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}.status
trap 'rm -f "$BITSWEEP_STATUS"' EXIT
rm -f "$BITSWEEP_STATUS"
got=75 # if a signal has come before the ranks
for ((attempt = 1; attempt <= 3; attempt++)); do
    [[ -z $asked ]] || break
    start_ranks "$@"
    await_ranks
    ! was_not_started || continue
    break
done
judge
rm -f "$BITSWEEP_STATUS" # before Slurm ends this script to requeue the job
if ((code == 75)) && [[ $asked != TERM ]] && can_resume "$@"; then requeue; fi
exit "$code"
