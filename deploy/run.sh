#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts bitsweep on several ranks: finds the flags that mpirun needs here, and hands over to bitsweep-run, which
# starts it. See --help.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
self=deploy/run.sh
if [[ ${BASH_SOURCE[0]##*/} != run.sh ]]; then self=${BASH_SOURCE[0]##*/}; fi # installed as bitsweep-ranks
export BITSWEEP_RUN_NAME=${self##*/} # for what bitsweep-run says
program=${BITSWEEP:-$root/build/release/bitsweep}
# Installed, it is elsewhere.
if [[ -z ${BITSWEEP:-} && ! -e $program ]]; then program=$(command -v bitsweep || echo "$program"); fi
supervisor=${BITSWEEP_RUN:-$(dirname "$program")/bitsweep-run}
[[ -x $supervisor ]] || supervisor=$root/build/release/bitsweep-run

ranks=""
hosts=""
verbose=0
limit=""   # seconds, of all attempts together
retries=0
start_limit_default=120 # seconds
start_limit=$start_limit_default
flags=()   # for mpirun, as given
command=() # for bitsweep
is_placed=0 # the flags say where ranks run
is_bound=0  # the flags say how they are bound
work=""     # a folder for files of this run
memory=""   # the folder where its ranks share memory; empty: mpirun's choice
our_memory="" # the same if it is for this run alone

help() {
    echo "usage: $self -n RANKS [--hosts H1:4,H2:4] [options] [mpirun flags] [--] COMMAND [ARGUMENTS]"
    cat <<'END'

Starts `bitsweep COMMAND ARGUMENTS` on RANKS ranks with Open MPI's mpirun, or directly for -n 1.

  -n RANKS              number of ranks
  --hosts LIST          host names, each with the number of ranks it takes; the default is this
                        machine, or inside an allocation of Slurm or another scheduler its hosts
  --time-limit SECONDS  stop the job after so long, retries included: it saves what it has, and is
                        killed 4 s later if it is still there; exit code 75
  --start-limit SECONDS end the job where its ranks have not found each other after so long: a
                        process is stopped, or a host does not answer; 120 if not given
  --retries N           up to N times after exit code 75 start again, with --resume where COMMAND
                        has a journal or checkpoint to go on from; 0 if not given
  --verbose             print the mpirun command and let mpirun print its own messages
  --help                this text
  mpirun flags          any other flag in front of COMMAND goes to mpirun (--mca A B, -x NAME, ...);
                        `--` ends them

SIGTERM, SIGINT and SIGHUP stop the job: ranks save what they have within a second. SIGUSR1 lets
search, encode, groundtruth and sweep finish what they are at first. Both end with exit code 75 and
are not retried.

Environment: BITSWEEP is the program to start (build/release/bitsweep, or where there is none
bitsweep in PATH), BITSWEEP_RUN what supervises
it (bitsweep-run beside it, or in build/release); OMP_NUM_THREADS is set to cores / ranks on this
machine unless it is set or --threads is given; OMPI_MCA_* as always.
BITSWEEP_STATUS is where rank 0 says how the run ended; by default a temporary file: in TMPDIR, or
where ranks may run on other hosts in the current folder, which the hosts must then share.

A rank that is stopped, cut off or gone later on is found by the others: --heartbeat of COMMAND,
10 s if not given. mpirun may wait for ever for a host that is cut off, or for itself: if it is
still there 5 s after the ranks of its own machine it is killed (once it has slept for 3 s where
there is no other host; after 60 s where there may be others and rank 0 has said that all is
complete); likewise if a rank of this machine ended while MPI connected the ranks and mpirun lets
the others wait.

Exit codes are those that rank 0 has written there, whatever mpirun says:
  0 complete, 2 usage, 65 bad input, 70 self-check failed, 74 system error,
  75 stopped, or a rank or host was lost (--resume goes on).
A rank that ended with 2, 65, 70 or 74 counts before a rank 0 that mpirun stopped for it. If rank 0
has written nothing, the run has failed: 75 if it was asked to stop or a rank was ended by a signal
(mpirun says 128 + N) or a host was lost (205); the code of a rank that gave 2, 65, 70, 74 or 75;
else 74, also where mpirun says 0. A rank that failed after rank 0 had written 0 counts, too, but
not one that was killed. Whatever is left of a failed job on this machine is killed. -n 1 without
--time-limit and --retries is the program itself.
END
}

fail() {
    echo "${self##*/}: $1" >&2
    exit "${2:-2}"
}

# Sets count: the words of an mpirun flag with its values, for those that a user is likely to give.
look_at_flag() {
    local name=${1#-}
    count=2
    case ${name#-} in
    mca | gmca) count=3 ;;
    hostfile | machinefile | host | H | N | npernode | map-by) is_placed=1 ;;
    bind-to | cpu-set | cpu-list) is_bound=1 ;;
    x | rank-by | prefix | wdir | wd | output-filename | timeout | npersocket | tune | am | report-uri | stdin | \
        personality | path | preload-files | launch-agent | report-events) ;;
    *) count=1 ;;
    esac
}

parse() {
    while (($#)); do
        case $1 in
        -h | --help) help && exit 0 ;;
        -n | -np | --hosts | --time-limit | --start-limit | --retries)
            (($# > 1)) || fail "$1 needs a value; --help tells more"
            case $1 in
            --hosts) hosts=$2 ;;
            --time-limit) limit=$2 ;;
            --start-limit) start_limit=$2 ;;
            --retries) retries=$2 ;;
            *) ranks=$2 ;;
            esac
            shift 2
            ;;
        --verbose) verbose=1 && shift ;;
        --) shift && break ;;
        -*)
            local count
            look_at_flag "$1"
            (($# >= count)) || fail "$1 needs $((count - 1)) value(s); --help tells more"
            flags+=("${@:1:count}")
            shift "$count"
            ;;
        *) break ;;
        esac
    done
    command=("$@")
}

check() {
    [[ -n $ranks ]] || fail "-n RANKS is missing; --help tells more"
    [[ $ranks =~ ^[1-9][0-9]{0,5}$ ]] || fail "-n $ranks: not a number of ranks"
    [[ -z $hosts || $hosts =~ ^[A-Za-z0-9._-]+(:[1-9][0-9]*)?(,[A-Za-z0-9._-]+(:[1-9][0-9]*)?)*$ ]] ||
        fail "--hosts $hosts: not of the form H1:4,H2:4"
    [[ -z $limit || $limit =~ ^[0-9]{1,8}(\.[0-9]{1,3})?$ && $limit =~ [1-9] ]] ||
        fail "--time-limit $limit: not a number of seconds above 0"
    [[ $start_limit =~ ^[1-9][0-9]{0,7}$ ]] ||
        fail "--start-limit $start_limit: not a whole number of seconds above 0"
    [[ $retries =~ ^(0|[1-9][0-9]{0,5})$ ]] || fail "--retries $retries: not a number"
    ((${#command[@]})) || fail "a bitsweep command is missing; --help tells more"
    if [[ ! -f $program || ! -x $program ]]; then
        fail "$program is missing; deploy/build.sh builds it"
    fi
    [[ -x $supervisor ]] || fail "$supervisor is missing; deploy/build.sh builds it"
}

is_in_allocation() {
    [[ -n ${SLURM_JOB_ID:-}${PBS_JOBID:-}${LSB_JOBID:-}${PE_HOSTFILE:-} ]]
}

may_be_elsewhere() { # the ranks, on other hosts
    [[ -n $hosts ]] || ((is_placed)) || is_in_allocation
}

# Sets num_slots, how many ranks --hosts takes, and ranks_per_host: the largest share of one host, or the even share
# where only a number of hosts is known.
count_slots() {
    local most=1 entry slots num_hosts=${SLURM_JOB_NUM_NODES:-1}
    num_slots=0 ranks_per_host=$(((ranks + num_hosts - 1) / num_hosts))
    [[ -n $hosts ]] || return 0
    for entry in ${hosts//,/ }; do
        slots=1
        [[ $entry != *:* ]] || slots=${entry##*:}
        num_slots=$((num_slots + slots)) most=$((slots > most ? slots : most))
    done
    ranks_per_host=$((most < ranks ? most : ranks))
}

set_threads() {
    local argument share
    [[ -z ${OMP_NUM_THREADS:-} ]] || return 0
    for argument in "${command[@]}"; do
        [[ $argument != --threads && $argument != --threads=* ]] || return 0
    done
    if [[ -n ${SLURM_CPUS_PER_TASK:-} ]]; then
        share=$SLURM_CPUS_PER_TASK
    else
        share=$(($(nproc) / ranks_per_host))
    fi
    export OMP_NUM_THREADS=$((share > 0 ? share : 1))
}

# Ranks of one host read each other's memory directly. Where a container's filter may refuse that,
# Open MPI prints "Read -1, expected ..., errno = 1" for every message, so it copies instead.
may_refuse_memory_reads() {
    local filter capabilities
    filter=$(sed -n 's/^Seccomp:[[:space:]]*//p' /proc/self/status 2>/dev/null) || return 1
    capabilities=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status 2>/dev/null) || return 1
    [[ $filter == 2 ]] && (((16#${capabilities:-0} >> 19 & 1) == 0)) # bit 19: CAP_SYS_PTRACE
}

# Containers often have 64 MB of /dev/shm; each rank wants more than 4 MB of it.
has_little_shared_memory() {
    local free_kb
    free_kb=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print $4}')
    [[ -n $free_kb ]] && ((free_kb < ranks_per_host * 8192))
}

# Where the ranks of this machine share memory: a folder of its own, as mpirun does not always remove what
# killed ranks leave. On several hosts it is /dev/shm itself.
choose_memory_path() {
    local parent=/dev/shm
    if [[ -n ${OMPI_MCA_btl_vader_backing_directory:-} || " ${flags[*]-} " == *" btl_vader_backing_directory "* ]]; then
        return
    fi
    if has_little_shared_memory; then parent=${TMPDIR:-/tmp}; fi
    if may_be_elsewhere; then
        [[ $parent == /dev/shm ]] || memory=$parent
        return
    fi
    memory=$(mktemp -d "$parent/.bitsweep-run.$$.XXXXXX") || fail "$parent: no place for shared memory" 74
    our_memory=$memory
}

build_mpirun() {
    mpirun=(mpirun -n "$ranks")
    ((verbose)) || mpirun+=(--quiet)
    [[ -z $hosts ]] || mpirun+=(--host "$hosts")
    if [[ -n $hosts ]]; then
        ((num_slots >= ranks)) || mpirun+=(--oversubscribe)
    elif ((!is_placed)) && ! is_in_allocation; then
        mpirun+=(--oversubscribe)
    fi
    # mpirun would bind each of few ranks to one core, and all threads of a rank would share it.
    ((is_bound)) || mpirun+=(--bind-to none)
    # A host that falls silent is noticed after 16 s instead of 480 s.
    mpirun+=(--mca oob_tcp_keepalive_time 10 --mca oob_tcp_keepalive_intvl 2
        --mca oob_tcp_keepalive_probes 3 --mca btl_base_warn_component_unused 0)
    if may_refuse_memory_reads; then mpirun+=(--mca btl_vader_single_copy_mechanism none); fi
    # Its files go with the folder, even if mpirun itself is killed.
    if [[ -n $work ]] && ! may_be_elsewhere; then mpirun+=(--mca orte_tmpdir_base "$work"); fi
    choose_memory_path
    [[ -z $memory ]] || mpirun+=(--mca btl_vader_backing_directory "$memory")
    # Ranks share the cores: a thread that waits must not keep the one it waits for from running.
    if ((ranks > 1)) && [[ -z $hosts ]]; then
        export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
        mpirun+=(-x OMP_WAIT_POLICY)
    fi
    [[ -z ${OMP_NUM_THREADS:-} ]] || mpirun+=(-x OMP_NUM_THREADS)
    # OpenBLAS would start a thread for every core in every rank; bitsweep uses one.
    export OPENBLAS_NUM_THREADS=1
    mpirun+=(-x OPENBLAS_NUM_THREADS -x BITSWEEP_STATUS -x BITSWEEP_STARTED)
    mpirun+=(${flags[@]+"${flags[@]}"})
    if ((EUID == 0)); then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
}

# Where rank 0 says that it has all ranks, and how the run ended. Names that nobody has looked up
# before: a shared file system may remember for a while that a file is not there.
choose_status_path() {
    local parent=${TMPDIR:-/tmp}
    export BITSWEEP_STATUS=${BITSWEEP_STATUS:-} BITSWEEP_STARTED=""
    if [[ -n $BITSWEEP_STATUS ]]; then
        [[ $BITSWEEP_STATUS == /* ]] || BITSWEEP_STATUS=$PWD/$BITSWEEP_STATUS
        return
    fi
    if may_be_elsewhere; then parent=$PWD; fi
    work=$(mktemp -d "$parent/.bitsweep-run.XXXXXX") ||
        fail "$parent: no place for the STATUS file; set BITSWEEP_STATUS" 74
}

parse "$@"
check
count_slots
set_threads
trap 'rm -rf -- "$work" "$our_memory"' EXIT # bitsweep-run removes them, once it has begun
start=("$program")
if ((ranks == 1 && ${#flags[@]} == 0)) && [[ -z $hosts ]]; then
    if [[ $retries == 0 && -z $limit ]]; then
        ((!verbose)) || echo "${self##*/}: $program ${command[*]}" >&2
        exec "$program" "${command[@]}"
    fi
    choose_status_path
else
    version=$(mpirun --version 2>/dev/null) ||
        fail "mpirun is missing or does not work; deploy/install.sh installs Open MPI"
    [[ $version == *"Open MPI"* || $version == *OpenRTE* ]] ||
        fail "mpirun is not Open MPI's: start $program with its own flags instead"
    choose_status_path
    build_mpirun
    start=("${mpirun[@]}" "$program")
fi
((!verbose)) || echo "${self##*/}: ${start[*]} ${command[*]}" >&2
elsewhere=0
! may_be_elsewhere || elsewhere=1
exec "$supervisor" "$ranks" "$start_limit" "${limit:-0}" "$retries" "$elsewhere" "$work" "$our_memory" \
    ${#start[@]} "${start[@]}" "${command[@]}"
