#!/usr/bin/env bash
# Starts bitsweep on several ranks: mpirun with the flags it needs here. See --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${BITSWEEP:-$root/build/release/bitsweep}

ranks=""
hosts=""
verbose=0
flags=()   # for mpirun, as given
command=() # for bitsweep
is_placed=0 # the flags say where ranks run
is_bound=0  # the flags say how they are bound

help() {
    cat <<'END'
usage: deploy/run.sh -n RANKS [--hosts H1:4,H2:4] [mpirun flags] [--] COMMAND [ARGUMENTS]

Starts `bitsweep COMMAND ARGUMENTS` on RANKS ranks with Open MPI's mpirun, or directly for -n 1.

  -n RANKS         number of ranks
  --hosts LIST     host names, each with the number of ranks it takes; the default is this machine,
                   or inside an allocation of Slurm or another scheduler its hosts
  --verbose        print the mpirun command and let mpirun print its own messages
  --help           this text
  mpirun flags     any other flag in front of COMMAND goes to mpirun (--mca A B, -x NAME, ...);
                   `--` ends them

Environment: BITSWEEP is the program to start (build/release/bitsweep); OMP_NUM_THREADS is set to
cores / ranks on this machine unless it is set or --threads is given; OMPI_MCA_* as always.

Exit codes are those of bitsweep: 0 complete, 2 usage, 65 bad input, 70 self-check failed, 74 system
error, 75 stopped or ranks lost each other (--resume goes on); 128 + N when a rank or this script was
ended by signal N.
END
}

fail() {
    echo "run.sh: $1" >&2
    exit "${2:-2}"
}

# Number of values that follow an mpirun flag, for those that a user is likely to give.
num_values() {
    case $1 in
    --mca | -mca | --gmca | -gmca) echo 2 ;;
    -x | --hostfile | -hostfile | --machinefile | -machinefile | --host | -host | -H | --map-by | \
        -map-by | --rank-by | -rank-by | --bind-to | -bind-to | --prefix | -prefix | --wdir | \
        -wdir | -wd | --output-filename | -output-filename | --timeout | -timeout | --npernode | \
        -npernode | -N | --npersocket | -npersocket | --cpu-set | -cpu-set | --cpu-list | \
        --tune | -tune | -am | --am | --report-uri | --stdin | -stdin | --personality | --path | \
        -path | --preload-files | --launch-agent | --report-events) echo 1 ;;
    *) echo 0 ;;
    esac
}

note_flag() {
    case $1 in
    *hostfile | *machinefile | --host | -host | -H | -N | *npernode | *map-by) is_placed=1 ;;
    *bind-to | *cpu-set | *cpu-list) is_bound=1 ;;
    esac
}

parse() {
    while (($#)); do
        case $1 in
        -h | --help) help && exit 0 ;;
        -n | -np | --hosts)
            (($# > 1)) || fail "$1 needs a value; --help tells more"
            if [[ $1 == --hosts ]]; then hosts=$2; else ranks=$2; fi
            shift 2
            ;;
        --verbose) verbose=1 && shift ;;
        --) shift && break ;;
        -*)
            local count
            count=$(($(num_values "$1") + 1))
            (($# >= count)) || fail "$1 needs $((count - 1)) value(s); --help tells more"
            note_flag "$1"
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
    ((${#command[@]})) || fail "a bitsweep command is missing; --help tells more"
    if [[ ! -f $program || ! -x $program ]]; then
        fail "$program is missing; deploy/build.sh builds it"
    fi
}

is_in_allocation() {
    [[ -n ${SLURM_JOB_ID:-}${PBS_JOBID:-}${LSB_JOBID:-}${PE_HOSTFILE:-} ]]
}

# The largest share of one host, or the even share where only a number of hosts is known.
ranks_per_host() {
    local most=1 entry slots num_hosts=1
    if [[ -n $hosts ]]; then
        for entry in ${hosts//,/ }; do
            slots=1
            [[ $entry != *:* ]] || slots=${entry##*:}
            ((slots <= most)) || most=$slots
        done
        echo $((most < ranks ? most : ranks))
        return
    fi
    [[ -z ${SLURM_JOB_NUM_NODES:-} ]] || num_hosts=$SLURM_JOB_NUM_NODES
    echo $(((ranks + num_hosts - 1) / num_hosts))
}

num_slots() {
    local sum=0 entry
    for entry in ${hosts//,/ }; do
        if [[ $entry == *:* ]]; then sum=$((sum + ${entry##*:})); else sum=$((sum + 1)); fi
    done
    echo "$sum"
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
        share=$(($(nproc) / $(ranks_per_host)))
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
    [[ -n $free_kb ]] && ((free_kb < $(ranks_per_host) * 8192))
}

build_mpirun() {
    mpirun=(mpirun -n "$ranks")
    ((verbose)) || mpirun+=(--quiet)
    [[ -z $hosts ]] || mpirun+=(--host "$hosts")
    if [[ -n $hosts ]]; then
        (($(num_slots) >= ranks)) || mpirun+=(--oversubscribe)
    elif ((!is_placed)) && ! is_in_allocation; then
        mpirun+=(--oversubscribe)
    fi
    # mpirun would bind each of few ranks to one core, and all threads of a rank would share it.
    ((is_bound)) || mpirun+=(--bind-to none)
    # A host that falls silent is noticed after 16 s instead of 480 s.
    mpirun+=(--mca oob_tcp_keepalive_time 10 --mca oob_tcp_keepalive_intvl 2
        --mca oob_tcp_keepalive_probes 3 --mca btl_base_warn_component_unused 0)
    if may_refuse_memory_reads; then mpirun+=(--mca btl_vader_single_copy_mechanism none); fi
    if has_little_shared_memory; then
        mpirun+=(--mca btl_vader_backing_directory "${TMPDIR:-/tmp}")
    fi
    # More threads than cores: one that waits must not keep the one it waits for from running.
    if ((ranks * ${OMP_NUM_THREADS:-$(nproc)} > $(nproc))) && [[ -z $hosts ]]; then
        export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
        mpirun+=(-x OMP_WAIT_POLICY)
    fi
    [[ -z ${OMP_NUM_THREADS:-} ]] || mpirun+=(-x OMP_NUM_THREADS)
    # OpenBLAS would start a thread for every core in every rank; bitsweep uses one.
    export OPENBLAS_NUM_THREADS=1
    mpirun+=(-x OPENBLAS_NUM_THREADS)
    mpirun+=(${flags[@]+"${flags[@]}"})
    if ((EUID == 0)); then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
}

# mpirun runs beside this script, so that a signal sent to the script alone reaches the ranks.
# Ctrl-C reaches mpirun by itself.
run_and_wait() {
    local signal="" signalled="" pid
    "$@" <&0 &
    pid=$!
    trap 'signal=TERM signalled=TERM; kill -TERM "$pid" 2>/dev/null || true' TERM HUP
    trap 'signal=INT signalled=INT' INT
    trap 'signalled=USR1; kill -USR1 "$pid" 2>/dev/null || true' USR1
    trap 'signalled=USR2; kill -USR2 "$pid" 2>/dev/null || true' USR2
    while :; do
        signalled=""
        code=0
        wait "$pid" || code=$?
        [[ -n $signalled ]] || break
    done
    [[ -z $signal ]] || exit $((128 + $(kill -l "$signal")))
}

# bitsweep has said itself what went wrong if the exit code is one of its own; mpirun's messages
# are off.
explain() {
    case $1 in
    0 | 2 | 65 | 70 | 74 | 75 | 76) ;;
    205) echo "run.sh: mpirun lost the connection to a host" >&2 ;;
    1[3-9][0-9] | 129)
        echo "run.sh: a rank was ended by signal $(($1 - 128)) ($(kill -l "$1" || true))" >&2
        ;;
    *) echo "run.sh: mpirun failed with exit code $1; --verbose shows what it says" >&2 ;;
    esac
}

parse "$@"
check
set_threads
if ((ranks == 1)) && [[ -z $hosts ]] && ((${#flags[@]} == 0)); then
    ((!verbose)) || echo "run.sh: $program ${command[*]}" >&2
    exec "$program" "${command[@]}"
fi
if ! version=$(mpirun --version 2>/dev/null); then
    fail "mpirun is missing or does not work; deploy/install.sh installs Open MPI"
fi
[[ $version == *"Open MPI"* || $version == *OpenRTE* ]] ||
    fail "mpirun is not Open MPI's: start $program with its own flags instead"
build_mpirun
((!verbose)) || echo "run.sh: ${mpirun[*]} $program ${command[*]}" >&2
code=0
run_and_wait "${mpirun[@]}" "$program" "${command[@]}"
((verbose)) || explain "$code"
exit "$code"
