#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two and four hosts: namespaces of network, names and shared memory on one bridge, which share a folder.
# mpirun starts ranks on them by an agent, as it does with ssh. Same bytes; then all on a host is killed, a host loses
# its power, and so does the one with mpirun and rank 0: each time the others end, and --resume goes on.
# usage: check_hosts.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# Skipped where namespaces may not be made. BITSWEEP_INSIDE: it has made those it needs.
set -euo pipefail

# Interfaces, processes and mounts of its own; nothing of them is left when it ends.
if [[ -z ${BITSWEEP_INSIDE:-} ]]; then
    if ((EUID)); then echo "skipped: needs root" && exit 77; fi
    for tool in ip unshare nsenter mpirun; do
        command -v "$tool" >/dev/null || { echo "skipped: $tool is missing" && exit 77; }
    done
    make=(unshare --net --pid --mount --fork --kill-child --mount-proc)
    if ! "${make[@]}" bash -c 'ip link add bridge type bridge && ip link add one type veth peer name other &&
        mount -t tmpfs none /dev/shm && unshare --net --uts --mount hostname probe' >/dev/null 2>&1; then
        echo "skipped: no network namespaces with a bridge may be made here"
        exit 77
    fi
    BITSWEEP_INSIDE=1 exec "${make[@]}" bash "$0" "$@"
fi

ip link set lo up
ip link add bridge type bridge
ip link set bridge up

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_ranks 2
((has_mpi)) || exit 77
unset OMPI_MCA_btl_vader_backing_directory # each host has a /dev/shm of its own

# ---- hosts ---------------------------------------------------------------------------------------

# make_host NUMBER: host1, host2 ... with the address 10.77.0.NUMBER; $folder/10.77.0.NUMBER has its keeper, a process.
make_host() {
    local name=host$1 address=10.77.0.$1 keeper
    unshare --net --uts --mount bash -c "
        hostname $name
        mount -t tmpfs none /dev/shm
        ip link set lo up
        echo >'$folder/$name.made'
        exec sleep 1000" &
    keeper=$!
    until [[ -e $folder/$name.made ]]; do
        kill -0 "$keeper" || exit 1
        sleep 0.01
    done
    echo "$keeper" >"$folder/$address" # before what may fail: the trap ends it
    ip link add "to_$name" type veth peer name wire netns "$keeper"
    ip link set "to_$name" master bridge up
    nsenter --net="/proc/$keeper/ns/net" bash -c "ip link set wire up; ip addr add $address/24 dev wire"
    nets[$1]=$(readlink "/proc/$keeper/ns/net")
}

# on_host NUMBER COMMAND
on_host() {
    nsenter --target "$(<"$folder/10.77.0.$1")" --net --uts --mount "${@:2}"
}

# processes_of NUMBER: those of a host but its keeper.
processes_of() {
    { find /proc/[0-9]*/ns/net -maxdepth 0 -printf '%p %l\n' 2>/dev/null || true; } |
        awk -v net="${nets[$1]}" -v keeper="$(<"$folder/10.77.0.$1")" '
            $2 == net {
                split($1, part, "/")
                if (part[3] != keeper) print part[3]
            }'
}

# Its wire is cut, then all on it is killed, with no word to the others.
cut_power() {
    ip link set "to_host$1" nomaster
    : >"$folder/10.77.0.$1.off"
    kill_all_on "$1"
}

kill_all_on() {
    local left
    while mapfile -t left < <(processes_of "$1") && ((${#left[@]})); do
        kill -KILL "${left[@]}" 2>/dev/null || true
    done
}

# are_idle NUMBER...: nothing runs there.
are_idle() {
    local number
    for number; do
        [[ -z $(processes_of "$number") ]] || return 1
    done
}

no_ranks_on() {
    local number process
    for number; do
        for process in $(processes_of "$number"); do
            [[ $(readlink "/proc/$process/exe") != "$program" ]] || return 1
        done
    done
}

# await SECONDS COMMAND: until it succeeds
await() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.05
    done
}

# start NUMBER HOSTS ARGUMENTS: run.sh on that host, ranks on HOSTS, such as 1:2,3:1.
# Open MPI 4.1 warns, harmlessly, when an agent has started before its group of processes is set.
start() {
    local list=10.77.0.${2//,/,10.77.0.}
    local ranks errors code=0
    errors=$(mktemp "$folder/errors.XXXXXX")
    ranks=$(tr ',' '\n' <<<"$2" | awk -F: '{sum += $2} END {print sum}')
    on_host "$1" "$run" -n "$ranks" --hosts "$list" --mca plm_rsh_agent "$folder/agent" --mca btl self,vader,tcp \
        --mca btl_tcp_if_include wire --mca oob_tcp_if_include wire --time-limit 100 "${@:3}" 2>"$errors" || code=$?
    grep -v 'plm:rsh: Warning: setpgid(.*) failed in parent' "$errors" >&2 || true
    return "$code"
}

nets=()
trap 'kill $(cat "$folder"/10.77.0.?) 2>/dev/null; wait; rm -rf "$folder"' EXIT
for number in 1 2 3 4; do make_host "$number"; done
# Starts its command on a host, as ssh would: if that is killed it says 255, and it waits for a host without power.
cat >"$folder/agent" <<AGENT
#!/usr/bin/env bash
nsenter --target "\$(<"$folder/\$1")" --net --uts --mount bash -c "\${*:2}"
code=\$?
[[ ! -e "$folder/\$1.off" ]] || exec sleep 100
((code < 128)) || exit 255
exit \$code
AGENT
chmod +x "$folder/agent"
export BITSWEEP_JOURNAL_SECONDS=0.02

# ---- checks --------------------------------------------------------------------------------------

# shellcheck disable=SC2054 # synth: has commas
make_index=(encode --base synth:count=12K,dims=64,clusters=30,seed=3 --metric l2 --shards 4 --quiet)
"$program" "${make_index[@]}" --threads 1 --index "$folder/index"
"$program" synth --count 10 --dims 64 --out "$folder/b.fbin" --queries 600 --queries-out "$folder/q.fbin" --quiet
find=(search --index "$folder/index" --queries "$folder/q.fbin" --k 10 --threads 1 --quiet)
"$program" "${find[@]}" --out "$folder/reference"
slow=("${find[@]}" --batch 1 --heartbeat 4) # small batches: a search that is longer than what happens to it

# is_whole FILE: the bytes of an undisturbed search.
is_whole() {
    cmp "$folder/$1" "$folder/reference" && [[ ! -e $folder/$1.journal ]]
}

for hosts in 1:2,2:1 1:2,2:1,3:1,4:1; do
    check "a search on $hosts" start 1 "$hosts" "${find[@]}" --out "$folder/$hosts"
    check "a search on $hosts: bytes" is_whole "$hosts"
done
check "an index of four hosts" start 1 1:1,2:1,3:1,4:1 "${make_index[@]}" --threads 1 --index "$folder/index4"
check "an index of four hosts: bytes" diff -r "$folder/index" "$folder/index4"

# begin NAME NUMBER HOSTS ARGUMENTS: a slow search in the background, until it has noted something.
begin() {
    out=$1
    BITSWEEP_STATUS=$folder/$out.status start "$2" "$3" "${@:4}" -- "${slow[@]}" --out "$folder/$out" 2>"$folder/$out.stderr" &
    runner=$!
    await 60 test -s "$folder/$out.journal" || complain "$out: does not begin"
    began=${EPOCHREALTIME/./}
}

# ends NAME CODE HOST...: run.sh ends with it, and nothing is left on those hosts.
ends() {
    local code=0 gone
    wait "$runner" || code=$?
    await 30 are_idle "${@:3}" || complain "$1: left $(processes_of "$3" | paste -sd, | xargs -r ps -o args= -p | head -n 5)"
    gone=$(((${EPOCHREALTIME/./} - began) / 1000))
    echo "$1: all gone after $gone ms"
    if ((code == $2)); then pass; else complain "$1: exit code $code"; fi
    if ((gone < 40000)); then pass; else complain "$1: after $gone ms"; fi
}

# All on a host dies, and the host is there for the second attempt.
begin processes 1 1:2,2:1 --retries 1
kill_all_on 2
ends "a host's processes" 0 1 2
check "a host's processes: bytes" is_whole processes
if (($(grep -c '^run.sh: retry' "$folder/processes.stderr") == 1)); then pass; else complain "a host's processes: retries"; fi

# Power off: the others go on without it.
begin power 1 1:2,2:1,3:1,4:1
cut_power 3
ends "a host without power" 75 1 2 4
if grep -q '"exit_code": 75' "$folder/power.status"; then pass; else complain "a host without power: STATUS"; fi
check "a host without power: resumed" start 1 1:2,2:1,4:1 "${find[@]}" --batch 1 --resume --out "$folder/power"
check "a host without power: bytes" is_whole power

# So does the host that started all, with rank 0: another one goes on.
begin first 1 1:1,2:1,4:1
cut_power 1
await 30 no_ranks_on 2 4 || complain "the first host: ranks are left"
echo "the first host: ranks gone after $(((${EPOCHREALTIME/./} - began) / 1000)) ms"
kill_all_on 2 # mpirun's daemons wait longer
kill_all_on 4
ends "the first host" 137 2 4
check "the first host: resumed" start 2 2:1,4:2 "${find[@]}" --batch 1 --resume --out "$folder/first"
check "the first host: bytes" is_whole first

finish
