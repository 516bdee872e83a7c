#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The scripts of deploy/slurm in a real Slurm with two nodes on this machine: bytes, a GPU for each rank, stops before
# the time is up, requeues, scancel, lost ranks, arrays.
# usage: check_slurm.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# Skipped without root, Slurm and munge (apt-get install slurmctld slurmd slurm-client munge). BITSWEEP_SLURM_LIMIT=1: a
# job also runs into a time limit of a minute. BITSWEEP_INSIDE: namespaces are made.
# Slurm's formats have percent signs and programs variables of theirs.
# shellcheck disable=SC2016
set -euo pipefail

# Daemons with their ports and processes; nothing of them is left when it ends.
if [[ -z ${BITSWEEP_INSIDE:-} ]]; then
    if ((EUID)); then echo "skipped: needs root" && exit 77; fi
    for tool in unshare ip munged slurmctld slurmd srun sbatch mpirun; do
        command -v "$tool" >/dev/null || { echo "skipped: $tool is missing" && exit 77; }
    done
    make=(unshare --net --pid --fork --kill-child --mount-proc)
    if ! "${make[@]}" ip link add wire type bridge >/dev/null 2>&1; then
        echo "skipped: no network namespaces with a bridge may be made here"
        exit 77
    fi
    BITSWEEP_INSIDE=1 exec "${make[@]}" bash "$0" "$@"
fi
# Where loopback alone has an address, names are not resolved.
ip link set lo up
ip link add wire type bridge
ip addr add 10.79.0.1/24 dev wire
ip link set wire up

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_ranks 2
((has_mpi)) || exit 77
scripts=$(cd "$2/deploy/slurm" && pwd)
cd "$folder"

# ---- Slurm ---------------------------------------------------------------------------------------

# Two nodes with two sockets of two cores and two GPUs, which are nothing
# but device files.
write_configuration() {
    local host node
    host=$(hostname -s)
    cat >slurm.conf <<CONF
ClusterName=check
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=17001
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
TmpFS=$folder/tmp.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
KillWait=5
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=10000
SlurmdParameters=config_overrides
PartitionName=all Nodes=near,far Default=YES MaxTime=INFINITE State=UP
CONF
    local port=17010
    for node in near far; do
        port=$((port + 1))
        mkdir "spool.$node" "tmp.$node"
        mknod "$node.gpu0" c 1 3
        mknod "$node.gpu1" c 1 3
        echo "NodeName=$node NodeAddr=127.0.0.1 Port=$port CPUs=4 Boards=1" \
            "SocketsPerBoard=2 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=1000 Gres=gpu:2" >>slurm.conf
        echo "NodeName=$node Name=gpu File=$folder/$node.gpu[0-1]" >>gres.conf
    done
}

start_slurm() {
    mkdir -m 755 munge state
    head -c 1024 /dev/urandom >munge/key
    chmod 400 munge/key
    munged --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" --pid-file="$folder/munge/pid" \
        --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" 2>/dev/null
    export SLURM_CONF=$folder/slurm.conf
    slurmctld
    # With names of their own: ranks of one name share memory.
    unshare --uts bash -c 'hostname near && exec slurmd -N near'
    unshare --uts bash -c 'hostname far && exec slurmd -N far'
}

both_idle() {
    [[ $(sinfo -h -o '%T %D' 2>/dev/null) == "idle 2" ]]
}

# await SECONDS COMMAND: until it succeeds
await() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.2
    done
}

field() { # field JOB NAME: of what Slurm says of it
    scontrol show job --oneliner "$1" | grep -oE "(^| )$2=[^ ]*" | cut -d= -f2-
}

is_over() {
    [[ $(field "$1" JobState) =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)$ ]]
}

queue_is_empty() {
    [[ -z $(squeue -h) ]]
}

is_requeued() {
    [[ $(field "$1" Restarts) == 1 ]]
}

# Slurm lets a requeued job wait for two minutes, so that nothing of it is left on the nodes; it may start once that is so.
hurry() {
    if [[ $(field "$1" JobState) == PENDING ]] && both_idle && ! compgen -G "$folder/tmp.*/spmix_*" >/dev/null; then
        scontrol update job "$1" StartTime=now >/dev/null 2>&1 || true
    fi
    is_over "$1"
}

has_journal() {
    [[ -s $1.journal ]]
}

# no_ranks: processes of the program under test
no_ranks() {
    ! pgrep -f "^$program search" >/dev/null
}

write_configuration
start_slurm
trap 'scancel --quiet --user=root 2>/dev/null; wait; rm -rf "$folder"' EXIT
if ! await 30 both_idle; then
    complain "Slurm does not start" slurmctld.log
    finish
fi
echo "Slurm is there after $SECONDS s"

trap 'complain "line $LINENO: $BASH_COMMAND"' ERR

# ---- jobs ----------------------------------------------------------------------------------------

# Notes the process and the GPU of each rank in $NOTES.
cat >noted <<WRAPPER
#!/usr/bin/env bash
echo "\$\$ \$(uname -n) \${SLURMD_NODENAME:-} \${CUDA_VISIBLE_DEVICES:-none}" >"\$NOTES/\${PMIX_RANK:-0}"
exec "$program" "\$@"
WRAPPER
chmod +x noted
mkdir notes
export NOTES=$folder/notes BITSWEEP_ROOT=${scripts%/deploy/slurm} BITSWEEP_JOURNAL_SECONDS=0.05

"$program" encode --base synth:count=24K,dims=96,clusters=30,seed=3 --index idx --metric l2 --shards 4 --threads 1 --quiet
"$program" synth --count 10 --dims 96 --out b.fbin --queries 2000 --queries-out q.fbin --quiet
find=(search --index idx --queries q.fbin --k 10 --quiet)
long=("${find[@]}" --batch 4)
"$program" "${find[@]}" --threads 1 --out reference
small=(--nodes=2 --ntasks-per-node=2 --cpus-per-task=1)

# same_bytes WHAT FILE
same_bytes() {
    if cmp "$2" reference && [[ ! -e $2.journal ]]; then pass; else complain "$1: other bytes" "job.$job.log"; fi
}

# run_through WHAT SCRIPT OPTION... -- ARGUMENT...: it completes, in the bytes of `out`.
run_through() {
    local what=$1 script=$2 options=()
    shift 2
    while [[ $1 != -- ]]; do options+=("$1") && shift; done
    rm -f out out.json
    job=$(sbatch --parsable --output=job.%j.log "${options[@]}" "$scripts/$script" "${@:2}")
    await 100 is_over "$job" || complain "$what: does not end" "job.$job.log"
    if [[ $(field "$job" ExitCode) == 0:0 ]]; then pass; else complain "$what: exit code" "job.$job.log"; fi
    same_bytes "$what" out
}

# submit OPTION... -- ARGUMENT...: of socket_ranks.sh; `job` is its number.
submit() {
    local options=()
    while [[ $1 != -- ]]; do options+=("$1") && shift; done
    job=$(sbatch --parsable --output=job.%j.log "${small[@]}" "${options[@]}" "$scripts/socket_ranks.sh" "${@:2}")
}

# goes_on WHAT FILE: the job in `job` is requeued, and then completes.
goes_on() {
    await 60 is_requeued "$job" || complain "$1: not requeued" "job.$job.log"
    sleep 5 # a node may refuse a job in the seconds after it was taken from it
    await 120 hurry "$job" || complain "$1: does not end" "job.$job.log"
    if [[ $(field "$job" JobState) == COMPLETED ]]; then pass; else complain "$1: $(field "$job" JobState)" "job.$job.log"; fi
    same_bytes "$1" "$2"
}

says() { # says WHAT PATTERN: in the log of `job`
    if grep -qE -e "$2" "job.$job.log"; then pass; else complain "$1: does not say '$2'" "job.$job.log"; fi
}

export BITSWEEP_LAUNCHER=srun
run_through "a rank a socket, srun" socket_ranks.sh --nodes=2 --cpus-per-task=2 -- "${find[@]}" --out out --resume
BITSWEEP_LAUNCHER=mpirun run_through "a rank a socket, mpirun" socket_ranks.sh --nodes=2 --cpus-per-task=2 -- \
    "${find[@]}" --out out
BITSWEEP=$folder/noted run_through "a rank a GPU" gpu_ranks.sh --ntasks-per-node=2 --cpus-per-task=1 -- \
    "${find[@]}" --out out --resume
if (($(cut -d' ' -f3- notes/* | sort -u | wc -l) == 4)) && ! grep -q none notes/*; then
    pass "four ranks have a GPU each"
else
    complain "GPUs of ranks: $(cut -d' ' -f3- notes/* | tr '\n' ';')"
fi

# Processes that do not know of each other.
code=0
srun --quiet -n 1 true # the nodes are free
srun --quiet -n 2 "$program" "${find[@]}" --out out2 2>stderr || code=$?
if ((code == 2)) && grep -q 'processes that do not know of each other' stderr; then pass; else complain "plain srun: $code" stderr; fi

# An option that is wrong: no second try.
submit -- search --index idx --queries q.fbin --k 0 --out out3 --resume
await 60 is_over "$job" || true
if [[ $(field "$job" ExitCode) == 2:0 && $(field "$job" Restarts) == 0 ]]; then
    pass
else
    complain "k 0: $(field "$job" ExitCode)" "job.$job.log"
fi

# USR1, as Slurm sends it before the time is up.
for BITSWEEP_LAUNCHER in srun mpirun; do
    what="USR1, $BITSWEEP_LAUNCHER"
    submit -- "${long[@]}" --out "usr1.$BITSWEEP_LAUNCHER" --resume
    await 60 has_journal "usr1.$BITSWEEP_LAUNCHER" || complain "$what: does not begin" "job.$job.log"
    scancel --batch --signal=USR1 "$job"
    goes_on "$what" "usr1.$BITSWEEP_LAUNCHER"
    says "$what" 'requeueing, 1 of at most'
done

# A command without --resume ends here.
BITSWEEP_LAUNCHER=srun
submit -- "${long[@]}" --out once
await 60 has_journal once || complain "once: does not begin" "job.$job.log"
scancel --batch --signal=USR1 "$job"
await 60 is_over "$job" || complain "once: does not end" "job.$job.log"
if [[ $(field "$job" ExitCode) == 75:0 && $(field "$job" Restarts) == 0 ]]; then
    pass
else
    complain "once: $(field "$job" ExitCode)" "job.$job.log"
fi
says once 'not requeued, as the command has no --resume'

# A rank is killed.
rm -f notes/*
BITSWEEP=$folder/noted submit -- "${long[@]}" --out killed --resume
await 60 has_journal killed || complain "killed: does not begin" "job.$job.log"
kill -KILL "$(cut -d' ' -f1 notes/2)"
goes_on "a rank is killed" killed

# scancel ends all of it, and a later job goes on.
submit -- "${long[@]}" --out cancelled --resume
await 60 has_journal cancelled || complain "scancel: does not begin" "job.$job.log"
scancel "$job"
await 30 no_ranks || complain "scancel: ranks are left" "job.$job.log"
await 30 is_over "$job" || complain "scancel: does not end" "job.$job.log"
if [[ $(field "$job" JobState) == CANCELLED && $(field "$job" Restarts) == 0 && -s cancelled.journal ]]; then
    pass
else
    complain "scancel: $(field "$job" JobState)" "job.$job.log"
fi
submit -- "${long[@]}" --out cancelled --resume
await 120 is_over "$job" || complain "after scancel: does not end" "job.$job.log"
same_bytes "after scancel" cancelled

# An array of sweeps.
for i in 1 2; do
    echo "--base synth:count=2000,dims=32,seed=$i --queries synth:count=20,dims=32,seed=9 --metric l2 --bits $i --repeat 1 --folder sweep$i --quiet"
done >sweeps.txt
job=$(sbatch --parsable --array=1-2 --cpus-per-task=2 --output=job.%A.%a.log "$scripts/sweep_array.sh" sweeps.txt)
await 100 queue_is_empty || complain "an array of sweeps does not end" "job.$job.1.log"
for i in 1 2; do
    if grep -q '"status": "complete"' "sweep$i.json" && (($(wc -l <"sweep$i/sweep.csv") == 5)); then
        pass
    else
        complain "sweep $i" "job.$job.$i.log"
    fi
done

# The time limit itself, whose shortest is a minute, of a search that takes longer.
if [[ -n ${BITSWEEP_SLURM_LIMIT:-} ]]; then
    "$program" synth --count 10 --dims 96 --out b2.fbin --queries 100000 --queries-out many.fbin --quiet
    submit --time=1 --signal=B:USR1@50 -- search --index idx --queries many.fbin --k 10 --batch 1 --out limited --resume --quiet
    if await 100 is_requeued "$job"; then pass; else complain "a time limit: not requeued" "job.$job.log"; fi
    says "a time limit" 'after SIGUSR1; requeueing, 1 of at most'
    scancel "$job"
    if [[ -s limited.journal ]]; then pass; else complain "a time limit: no journal"; fi
fi
await 30 both_idle || complain "nodes are not idle in the end"
if compgen -G '.bitsweep-*.status' >/dev/null; then complain "STATUS files are left"; else pass; fi
finish
