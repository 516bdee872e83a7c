#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two hosts of which one is cut off in silence: network namespaces that are joined by a bridge. Rank 2
# is on the second. It is named in time, all of both hosts is gone, and the search goes on without it.
# usage: check_partition.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# Skipped where namespaces may not be made. BITSWEEP_INSIDE: it has made those it needs.
set -euo pipefail

# Names of interfaces, processes and mounts of its own; nothing of them is left when it ends.
if [[ -z ${BITSWEEP_INSIDE:-} ]]; then
    for tool in ip unshare nsenter mpirun; do
        command -v "$tool" >/dev/null || { echo "skipped: $tool is missing" && exit 77; }
    done
    make=(unshare --net --pid --fork --kill-child --mount-proc)
    ((EUID == 0)) || make+=(--map-root-user)
    if ! "${make[@]}" ip link add bridge type bridge >/dev/null 2>&1; then
        echo "skipped: no network namespaces with a bridge may be made here"
        exit 77
    fi
    BITSWEEP_INSIDE=1 exec "${make[@]}" bash "$0" "$@"
fi

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"

# make_host NAME ADDRESS: a namespace on the bridge; its process is in $keeper.
make_host() {
    unshare --net --uts bash -c "hostname $1; echo >'$folder/$1.made'; exec sleep 1000" &
    keeper=$!
    until [[ -e $folder/$1.made ]]; do sleep 0.01; done
    ip link add "to_$1" type veth peer name wire netns "$keeper"
    ip link set "to_$1" master bridge up
    nsenter --net="/proc/$keeper/ns/net" bash -c "ip link set lo up; ip link set wire up; ip addr add $2/24 dev wire"
}

# on_host PROCESS COMMAND
on_host() {
    nsenter --net="/proc/$1/ns/net" --uts="/proc/$1/ns/uts" "${@:2}"
}

ranks_left() {
    { grep -lzxF "MARK=$folder" /proc/[0-9]*/environ 2>/dev/null || true; } | cut -d/ -f3
}

# await SECONDS COMMAND: until it succeeds
await() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.02
    done
}

is_gone() {
    [[ -z $(ranks_left) ]]
}

ip link add bridge type bridge
ip link set bridge up
make_host near 10.77.0.1
near=$keeper
make_host far 10.77.0.2
far=$keeper
trap 'kill $near $far; wait; rm -rf "$folder"' EXIT
# Starts its command on the second host, as ssh would.
cat >"$folder/agent" <<AGENT
#!/usr/bin/env bash
exec nsenter --net=/proc/$far/ns/net --uts=/proc/$far/ns/uts bash -c "\${*:2}"
AGENT
chmod +x "$folder/agent"
export BITSWEEP_STATUS=$folder/status BITSWEEP_JOURNAL_SECONDS=0.02
# shellcheck disable=SC2054 # Open MPI's lists
hosts=(-n 3 --hosts 10.77.0.1:2,10.77.0.2:1 --mca plm_rsh_agent "$folder/agent" --mca btl self,tcp
    --mca btl_tcp_if_include wire --mca oob_tcp_if_include wire)

"$program" encode --base synth:count=12K,dims=64,clusters=30,seed=3 --index "$folder/index" \
    --metric l2 --shards 3 --threads 1 --quiet
"$program" synth --count 10 --dims 64 --out "$folder/b.fbin" --queries 2000 --queries-out \
    "$folder/q.fbin" --quiet
find=(search --index "$folder/index" --queries "$folder/q.fbin" --k 10 --threads 1 --quiet)
"$program" "${find[@]}" --out "$folder/reference"

if ! on_host "$near" "$run" "${hosts[@]}" -- "${find[@]}" --out "$folder/whole" 2>"$folder/stderr"; then
    if grep -q 'built without MPI' "$folder/stderr"; then
        echo "skipped: built without MPI"
        exit 77
    fi
    complain "a search on both hosts"
elif ! cmp "$folder/whole" "$folder/reference"; then
    complain "a search on both hosts: other bytes"
else
    pass "a search on both hosts"
fi

# Small batches, so that it takes longer than it takes to cut the wire.
MARK=$folder on_host "$near" "$run" "${hosts[@]}" --time-limit 100 -- "${find[@]}" --batch 1 \
    --out "$folder/out" 2>"$folder/stderr" &
runner=$!
await 60 test -e "$folder/out.journal" || complain "it does not begin"
ip link set to_far nomaster
began=${EPOCHREALTIME/./}
named='^bitsweep: rank 2 on host far has been silent for 10 s; --resume goes on$'
await 30 grep -q "$named" "$folder/stderr" || complain "rank 2 is not named"
noticed=$(((${EPOCHREALTIME/./} - began) / 1000))
code=0
wait "$runner" || code=$?
ended=$(((${EPOCHREALTIME/./} - began) / 1000))
await 20 is_gone || complain "left: $(ps -o args= -p "$(ranks_left | paste -sd,)" | head -n 5)"
gone=$(((${EPOCHREALTIME/./} - began) / 1000))
echo "cut off: noticed after $noticed ms, run.sh ended after $ended ms, all gone after $gone ms"
if ((noticed < 20000)); then pass; else complain "noticed after $noticed ms"; fi
if ((ended < 25000)); then pass; else complain "ended after $ended ms"; fi
if ((code == 75)); then pass; else complain "exit code $code"; fi
if grep -q '"exit_code": 75' "$BITSWEEP_STATUS"; then pass; else complain "STATUS" "$BITSWEEP_STATUS"; fi
check "it goes on with one host" on_host "$near" "$run" -n 2 "${find[@]}" --resume --out "$folder/out"
if cmp "$folder/out" "$folder/reference"; then pass; else complain "resumed: other bytes"; fi

finish
