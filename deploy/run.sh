#!/usr/bin/env bash
# Starts bitsweep on several ranks: mpirun with the flags it needs here. See --help.
#
# Traps call functions, which shellcheck does not see.
# shellcheck disable=SC2317
set -euo pipefail
exec 5>&2 # for what this script says while stderr is turned away

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${BITSWEEP:-$root/build/release/bitsweep}

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

help() {
    cat <<'END'
usage: deploy/run.sh -n RANKS [--hosts H1:4,H2:4] [options] [mpirun flags] [--] COMMAND [ARGUMENTS]

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

`sweep` is one process: each of its steps (encode, search, groundtruth) is started so, on RANKS
ranks.

SIGTERM, SIGINT and SIGHUP stop the job: ranks save what they have within a second. SIGUSR1 lets
search, encode, groundtruth and sweep finish what they are at first. Both end with exit code 75 and
are not retried.

Environment: BITSWEEP is the program to start (build/release/bitsweep); OMP_NUM_THREADS is set to
cores / ranks on this machine unless it is set or --threads is given; OMPI_MCA_* as always.
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
    [[ -z $limit || $limit =~ ^[0-9]{1,8}(\.[0-9]{1,3})?$ && $limit =~ [1-9] ]] ||
        fail "--time-limit $limit: not a number of seconds above 0"
    [[ $start_limit =~ ^[1-9][0-9]{0,7}$ ]] ||
        fail "--start-limit $start_limit: not a whole number of seconds above 0"
    [[ $retries =~ ^(0|[1-9][0-9]{0,5})$ ]] || fail "--retries $retries: not a number"
    ((${#command[@]})) || fail "a bitsweep command is missing; --help tells more"
    if [[ ! -f $program || ! -x $program ]]; then
        fail "$program is missing; deploy/build.sh builds it"
    fi
}

is_in_allocation() {
    [[ -n ${SLURM_JOB_ID:-}${PBS_JOBID:-}${LSB_JOBID:-}${PE_HOSTFILE:-} ]]
}

may_be_elsewhere() { # the ranks, on other hosts
    [[ -n $hosts ]] || ((is_placed)) || is_in_allocation
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
    is_memory_ours=1
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
    # Its files go with the folder, even if mpirun itself is killed.
    if [[ -n $work ]] && ! may_be_elsewhere; then mpirun+=(--mca orte_tmpdir_base "$work"); fi
    choose_memory_path
    [[ -z $memory ]] || mpirun+=(--mca btl_vader_backing_directory "$memory")
    # More threads than cores: one that waits must not keep the one it waits for from running.
    if ((ranks * ${OMP_NUM_THREADS:-$(nproc)} > $(nproc))) && [[ -z $hosts ]]; then
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

# A moment, longer for a job that has run for longer. It costs a process, as `read -t` hangs where a signal
# interrupts it.
nap() {
    local seconds=$((SECONDS - job_began)) length=0.05
    if ((seconds >= 20)); then length=0.5; elif ((seconds >= 2)); then length=0.2; fi
    sleep "$length" || true
}

# ---- stopping ----

# SIGALRM to this script after $1 seconds. Its end of a pipe tells it when the script is gone or
# wants it no more.
timer() {
    local got=0
    exec 8>&-
    read -r -t "$1" || got=$?
    ((got <= 128)) || kill -ALRM $$
}

set_timer() {
    exec 9>&-
    exec 9> >(timer "$1")
    timer_process=$!
}

# each_process COMMAND: calls COMMAND PROCESS STATE for everything of the job on this machine: it has
# a session of its own, named after its first process.
each_process() {
    local file line action=$1
    for file in /proc/[0-9]*/stat; do
        { read -r line <"$file"; } 2>/dev/null || continue
        # shellcheck disable=SC2086
        set -- ${line%% *} ${line##*) } # process, state, parent, group, session, ...
        if [[ $5 == "$session" && $2 != Z ]]; then "$action" "$1" "$2"; fi
    done
}

note_segments() {
    mapfile -t -O "${#segments[@]}" segments < \
        <(sed -n 's/^[^/]* \(\/[^ ]*\/vader_segment\.[^ ]*\)$/\1/p' "/proc/$1/maps" 2>/dev/null)
}

kill_one() {
    kill -KILL "$1" 2>/dev/null || true
    num_killed=$((num_killed + 1))
}

# With its shared memory in a folder that others use, too, which nobody else would remove; looked up before
# anything is killed, as ranks end by themselves when mpirun does. Sets num_killed: how many were there.
kill_job() {
    local segments=()
    num_killed=0
    ((is_memory_ours)) || each_process note_segments
    each_process kill_one
    ((${#segments[@]} == 0)) || rm -f -- "${segments[@]}"
}

remove_files() {
    rm -rf -- "$work"
    ((!is_memory_ours)) || rm -rf -- "$memory"
}

# Until nothing is left: a process goes when it runs next, not when it is killed, and till then it holds
# files and locks. One that waits for a disk may stay for longer than this does.
clear_job() {
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        kill_job
        ((num_killed)) || break
        sleep 0.05 || true
    done
    ((!is_memory_ours)) || rm -f -- "$memory"/*
}

# TERM, once: a second one would make mpirun leave ranks behind.
stop_job() {
    is_stopping=1
    [[ -n $job ]] || return 0
    kill -TERM "$job" 2>/dev/null || true
    set_timer 4
}

on_signal() { # TERM, INT, HUP
    is_interrupted=1 asked=${asked:-stopped by SIG$1}
    ((is_stopping)) || stop_job
}

on_request() { # USR1, USR2
    is_interrupted=1
    [[ $1 == USR2 ]] || asked=${asked:-stopped by SIG$1}
    [[ -z $job ]] || kill -"$1" "$job" 2>/dev/null || true
}

on_alarm() {
    is_interrupted=1
    if ((is_stopping)); then
        kill_job
    else
        asked="stopped at the time limit of $limit s"
        stop_job
    fi
}

# ---- watching ----

# Sets rank: of a process; empty if it is none.
find_rank() {
    local entry
    rank=""
    while IFS= read -r -d '' entry; do
        if [[ $entry == OMPI_COMM_WORLD_RANK=* ]]; then rank=${entry#*=}; fi
    done 2>/dev/null <"/proc/$1/environ" || true
}

# Sets state: of a process, a letter; Z where it has ended and its parent has not taken note; empty if
# there is none.
read_state() {
    local line
    state=""
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 0
    line=${line##*) }
    state=${line:0:1}
}

# Sets num_running, the ranks among the children of mpirun, which may also have those that start its
# daemons on other hosts, and num_dead, those that have ended and that mpirun leaves as they are: it is
# deadlocked or stopped if they stay. A child is looked at when it is new; more than once, as a rank begins
# as a copy of mpirun. One that has ended does not say any more whether it was a rank.
declare -A looks=()
count_ranks() {
    local file some child rank state
    num_running=0 num_dead=0
    for file in "/proc/$job/task/"*/children; do
        some=()
        { read -r -a some <"$file"; } 2>/dev/null || true
        for child in "${some[@]}"; do
            read_state "$child"
            if [[ -n $state && $state != Z && ${looks[$child]:-} != [8r] ]]; then
                find_rank "$child"
                looks[$child]=$((${looks[$child]:-0} + 1))
                [[ -z $rank ]] || looks[$child]=r
            fi
            if [[ $state == Z ]] && { [[ ${looks[$child]:-} == r ]] || ! may_be_elsewhere; }; then
                num_dead=$((num_dead + 1))
            elif [[ -n $state && $state != Z && ${looks[$child]} == r ]]; then
                num_running=$((num_running + 1))
            fi
        done
    done
}

# Sets use: the states of mpirun's threads, and the CPU time that they have had. The same once more: it
# slept.
read_use() {
    local file line
    use=""
    for file in "/proc/$job/task/"*/stat; do
        { read -r line <"$file"; } 2>/dev/null || continue
        # shellcheck disable=SC2086
        set -- ${line##*) } # state, parent, ..., in user mode, in the system
        use+="$1 ${12} ${13},"
    done
}

# reached QUARTERS LIMIT: in the last step, and not before.
reached() {
    (($1 >= $2 && $1 - step < $2))
}

# Beside the job, until its end of a pipe tells that it is over: SIGURG to this script where the ranks
# should have found each other by now, again 4 s later, and where mpirun has outlived the ranks of this
# machine by 5 s, and by 60 s; SIGIO where some or all of these are gone before that and mpirun goes on.
# If no host but this one is in it mpirun may not sleep for 2.75 s, either: on its way to the end it waits
# for 2.1 s at most. Times are in quarters of a second.
watch_job() {
    local age=0 most=0 alone=0 asleep=0 fewer=0 late=0 step=1 use="" before was_alone is_alone got
    exec 9>&-
    while :; do
        got=0
        if ((step == 4)); then read -r -t 1 || got=$?; else read -r -t 0.25 || got=$?; fi
        ((got > 128)) || return 0
        count_ranks
        if ((num_running + num_dead > most)); then most=$((num_running + num_dead)); fi
        before=$use was_alone=$alone
        read_use
        age=$((age + step)) alone=$((alone + step)) asleep=$((asleep + step)) fewer=$((fewer + step))
        if ((num_running || !most)); then alone=0; fi
        if ((!was_alone)) || [[ $use != "$before" || $use == *[RD]* ]] || may_be_elsewhere; then asleep=0; fi
        if ((num_running == 0 || num_running >= most)); then fewer=0; fi
        if reached $fewer 12; then kill -IO $$; fi
        is_alone=0
        if reached $asleep 11 || reached $alone 20 || reached $alone 240; then is_alone=1; fi
        if [[ -e $BITSWEEP_STARTED ]]; then
            if ((is_alone)); then kill -URG $$; fi
        else
            if ((is_alone)); then kill -IO $$; fi
            if reached $age $((4 * start_limit)); then late=$age; fi
        fi
        if ((late)) && { ((age == late)) || reached $age $((late + 16)); }; then kill -URG $$; fi
        step=4
        if ((alone)) || [[ ! -e $BITSWEEP_STARTED ]]; then step=1; fi
    done
}

note_rank() {
    local rank
    find_rank "$1"
    [[ -n $rank ]] || return 0
    num_here=$((num_here + 1))
    if [[ $2 == [Tt] ]]; then stopped+=", rank $rank (process $1) is stopped"; fi
}

describe_start() {
    local num_here=0 stopped=""
    each_process note_rank
    [[ -n $stopped ]] || stopped="  $num_here of $ranks have been started on this machine"
    echo "the ranks have not found each other within $start_limit s: ${stopped:2}"
}

give_up() { # WHY
    say "$1"
    is_given_up=1
    kill_job
}

on_watch() { # [fewer]
    local outlived="mpirun did not end after the ranks of this machine had, and is killed"
    is_interrupted=1
    # In a trap a mere `return` would give the status of the `wait` that it interrupts, and end the script.
    if [[ -z $job ]] || ((is_stopping)); then return 0; fi
    # Once they have found each other the ranks see by themselves that one is missing.
    if [[ ${1:-} == fewer && -e $BITSWEEP_STARTED ]]; then return 0; fi
    count_ranks
    if ((is_given_up)); then
        kill_job
    elif [[ -e $BITSWEEP_STARTED ]]; then
        # With code 0 ranks elsewhere take their time, but all have come to the end.
        ((num_running == 0)) || return 0
        num_outlived=$((num_outlived + 1))
        if ((num_outlived > 1)) || ! may_be_elsewhere || [[ $(written_code) != 0 ]]; then
            give_up "$outlived"
        fi
    elif [[ ${1:-} != fewer ]]; then
        say "$(describe_start)"
        is_given_up=1
        kill -TERM "$job" 2>/dev/null || true
    elif ((num_running)); then
        give_up "a rank ended before the ranks had found each other, and mpirun has not noticed it"
    else
        give_up "$outlived"
    fi
}

# ---- one attempt ----

# The job runs beside this script, so that a signal sent to the script alone reaches the ranks, and
# away from the terminal, so that Ctrl-C reaches it once. It stops if the script is killed.
run_and_wait() {
    [[ -z $work ]] || BITSWEEP_STATUS=$work/status.$attempt
    BITSWEEP_STARTED=$BITSWEEP_STATUS.started
    rm -f -- "$BITSWEEP_STATUS" "$BITSWEEP_STARTED"
    setpriv --pdeathsig TERM setsid "$@" <&0 5>&- 9>&- &
    job=$!
    session=$job
    job_began=$SECONDS
    is_given_up=0
    num_outlived=0
    if ((!is_direct)); then
        exec 8> >(watch_job)
        watcher=$!
    fi
    ((!is_stopping)) || stop_job
    # Not `wait` alone: where a signal interrupts it just as the job ends, bash forgets that the job has
    # ended, and the next `wait` never returns. Between commands it takes note of it by itself.
    {
        while [[ -e /proc/$job ]]; do nap; done
        while :; do
            is_interrupted=0
            code=0
            wait "$job" || code=$?
            ((is_interrupted)) || break
        done
    } 2>/dev/null # bash would say that it was killed
    job="" # its number may become another's
    ((code == 0)) || clear_job
    exec 8>&-
    [[ -z $watcher ]] || wait "$watcher" 2>/dev/null || true
    rm -f -- "$BITSWEEP_STARTED"
}

# Why mpirun itself failed; nothing where it runs another program. With --quiet it says nothing of its own, and
# without it too much, so it is asked once more: the first paragraph that it prints, as one line.
ask_reason() {
    local words=("${mpirun[@]}") i
    ((!is_direct && !verbose)) || return 0
    for i in "${!words[@]}"; do
        if [[ ${words[i]} == --quiet ]]; then unset "words[i]" && break; fi
    done
    timeout -k 1 20 "${words[@]}" true 2>&1 >/dev/null </dev/null | awk '
        /^---/ && text == "" {next}
        /^---/ || /^[[:space:]]*$/ {exit}
        {gsub(/^[[:space:]]+|[[:space:]]+$/, ""); text = text (text == "" ? "" : " ") $0}
        END {sub(/:$/, "", text); if (text != "") print ": " substr(text, 1, 300)}' || true
}

describe() { # exit code of mpirun, and why it failed where that is known
    case $1 in
    205) echo "mpirun lost the connection to a host" ;;
    129 | 1[3-9][0-9])
        echo "a rank was ended by signal $(($1 - 128)) ($(kill -l "$1" 2>/dev/null || true))"
        ;;
    *) echo "mpirun failed with exit code $1${2:-; --verbose shows what it says}" ;;
    esac
}

say() {
    echo "run.sh: $1" >&5
}

# Sets code from what rank 0 has written and mpirun's exit code, and says what bitsweep has not said.
judge_written() {
    local mpirun_code=$code
    code=$1
    case $code,$mpirun_code in
    75,2 | 75,65 | 75,70 | 75,74) code=$mpirun_code ;; # of a rank; mpirun stopped the others
    75,205 | 75,129 | 75,1[3-9][0-9])
        if [[ -z $asked ]] && ((!is_given_up)); then say "$(describe "$mpirun_code")"; fi
        ;;
    0,0) ;;
    0,2 | 0,65 | 0,70 | 0,74 | 0,75) # of a rank that has said why
        code=$mpirun_code
        is_complete=1
        ;;
    0,*)
        if [[ -n $asked ]] || ((is_given_up)); then return; fi
        say "complete, and then: $(describe "$mpirun_code")"
        case $mpirun_code in
        1 | 137 | 143) ;; # mpirun or a rank was told to end, too late
        142) ;;           # a rank waited in vain for another at the end of MPI
        *) code=74 ;;
        esac
        ;;
    esac
}

judge_unwritten() {
    if ((is_given_up)); then
        code=75
        return
    fi
    case $code in
    2 | 65 | 70 | 74 | 75) return 0 ;; # of a rank that has said why
    0) say "mpirun says that all is well, but rank 0 wrote no STATUS file ($BITSWEEP_STATUS)" ;;
    205 | 129 | 1[3-9][0-9]) [[ -n $asked ]] || say "$(describe "$code")" ;;
    *) [[ -n $asked ]] || say "$(describe "$code" "$(ask_reason)")" ;;
    esac
    if [[ -n $asked && $asked != *limit* ]]; then say "$asked"; fi
    case $code in
    205 | 129 | 1[3-9][0-9]) code=75 ;;
    *) code=$([[ -n $asked ]] && echo 75 || echo 74) ;;
    esac
}

written_code() { # by rank 0; nothing if it has not
    sed -n 's/^  "exit_code": \([0-9]*\),*$/\1/p' "$BITSWEEP_STATUS" 2>/dev/null || true
}

judge() {
    local written
    written=$(written_code)
    if [[ -n $written ]]; then judge_written "$written"; else judge_unwritten; fi
    if ((code == 75)) && [[ $asked == *limit* ]]; then say "$asked"; fi
}

# ---- attempts ----

has_option() { # has_option NAME: among the command's arguments
    local argument
    for argument in "${command[@]:1}"; do
        if [[ $argument == "--$1" || $argument == "--$1="* ]]; then return 0; fi
    done
    return 1
}

value_of() { # value_of NAME: of an option of the command
    local i
    for i in "${!command[@]}"; do
        case ${command[i]} in
        "--$1") echo "${command[i + 1]:-}" ;;
        "--$1="*) echo "${command[i]#*=}" ;;
        esac
    done
}

can_resume() {
    case ${command[0]} in
    encode | sweep) ;;
    groundtruth) [[ $(value_of device) != cuda* ]] ;;     # a GPU keeps no journal
    search) ! has_option repeat && ! has_option warmup ;; # timed passes have no journal
    train) [[ -e $(value_of checkpoint) ]] ;;
    *) return 1 ;;
    esac
}

run_until_done() {
    local attempt again
    for ((attempt = 0; ; attempt++)); do
        run_and_wait "$@" "${command[@]}"
        judge
        if ((code != 75 || is_complete || attempt >= retries)) || [[ -n $asked ]]; then break; fi
        again="from the start"
        if can_resume; then
            again="with --resume"
            has_option resume || command+=(--resume)
        fi
        say "retry $((attempt + 1)) of $retries, $again"
    done
}

# A sweep is one process: it starts its steps on the ranks, by this script.
launch_steps() {
    local words=("$root/deploy/run.sh" -n "$ranks")
    [[ -z $hosts ]] || words+=(--hosts "$hosts")
    ((!verbose)) || words+=(--verbose)
    [[ $start_limit == "$start_limit_default" ]] || words+=(--start-limit "$start_limit")
    words+=(${flags[@]+"${flags[@]}"})
    command+=(--launcher "$(printf '%q ' "${words[@]}")")
    ranks=1 hosts="" flags=() is_placed=0
}

parse "$@"
check
if [[ ${command[0]} == sweep && ($ranks != 1 || -n $hosts || ${#flags[@]} != 0) ]]; then
    launch_steps
else
    set_threads
fi
is_direct=0
if ((ranks == 1 && ${#flags[@]} == 0)) && [[ -z $hosts ]]; then is_direct=1; fi
start=("$program")
if ((is_direct && retries == 0)) && [[ -z $limit ]]; then
    ((!verbose)) || say "$program ${command[*]}"
    exec "$program" "${command[@]}" 5>&-
fi

job=""   # its process, while it runs
session="" # of its processes, until they are gone
asked="" # why it ends before its time: a signal to this script, the time limit
work=""  # a folder for files of this run
memory="" # the folder where its ranks share memory; empty: mpirun's choice
is_memory_ours=0 # it is for this run alone
timer_process=""
watcher="" # a process
code=0
is_stopping=0
is_interrupted=0
is_given_up=0 # killed, as it would have waited for ever
num_outlived=0 # how often mpirun was found to outlive the ranks
is_complete=0 # says rank 0, whatever another rank met at the end
trap remove_files EXIT
choose_status_path
if ((!is_direct)); then
    if ! version=$(mpirun --version 2>/dev/null); then
        fail "mpirun is missing or does not work; deploy/install.sh installs Open MPI"
    fi
    [[ $version == *"Open MPI"* || $version == *OpenRTE* ]] ||
        fail "mpirun is not Open MPI's: start $program with its own flags instead"
    build_mpirun
    start=("${mpirun[@]}" "$program")
fi
((!verbose)) || say "${start[*]} ${command[*]}"
trap 'on_signal TERM' TERM
trap 'on_signal INT' INT
trap 'on_signal HUP' HUP
trap 'on_request USR1' USR1
trap 'on_request USR2' USR2
trap on_alarm ALRM
trap on_watch URG
trap 'on_watch fewer' IO
[[ -z $limit ]] || set_timer "$limit"
run_until_done "${start[@]}"
exec 9>&-
[[ -z $timer_process ]] || wait "$timer_process" 2>/dev/null || true
exit "$code"
