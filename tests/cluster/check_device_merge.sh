#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Candidates merged on devices, by rank 0's or by those of all ranks: the same bytes as on the CPU
# for any ranks, shards, batches and selection, with ties, and whatever a rank or NCCL does wrong on
# the way ends in one line within the deadline. Devices are emulated, NCCL is
# tests/emulation/nccl_stand_in.cpp.
# usage: check_device_merge.sh BITSWEEP_BINARY SOURCE_FOLDER
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
#
# Functions are called through `start`, which shellcheck does not see.
# shellcheck disable=SC2317
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
stand_in=$(dirname "$program")/tests/nccl_stand_in.so
needs "$emulated" "$stand_in"
find_ranks 2 4 8
most_ranks=${ranks_axis[-1]}
export BITSWEEP_EMULATOR_NCCL=$stand_in
pool=3 # a rank that waits needs no core

# start FUNCTION RANKS ARGUMENTS: in the background, with a folder $job, unless the ranks are too
# many.
start() {
    (($2 <= most_ranks)) || return 0
    next_job "$pool"
    run_job "$@" &
}

# search RANKS INDEX ARGUMENTS: on emulated devices.
search() {
    local ranks=$1 index=$2
    shift 2
    BITSWEEP=$emulated timeout -k 5 60 "$run" -n "$ranks" search --index "$folder/$index" \
        --queries "$queries" --query-rows 0:9 --quiet --out "$job/found" --json \
        --device "${device:-emulated}" "$@" >"$job/json" 2>"$job/stderr"
}

# xfbq of one bit has few distances, so many ties; shards of 1 and of 8 pieces, and some of them
# shorter than a list. small: fewer rows than a list has room for.
encode() {
    "$program" encode --base "$base" --index "$folder/$1" --quiet "${@:2}"
}
encode ties.1 --rows 0:6007 --codec xfbq --bits 1 --metric cosine
encode ties.5 --rows 0:6007 --codec xfbq --bits 1 --metric cosine --shards 5
encode real.1 --rows 0:2003 --codec saq --bits 2.5 --metric l2
encode real.11 --rows 0:2003 --codec saq --bits 2.5 --metric l2 --shards 11
encode small.3 --rows 0:41 --codec saq --bits 2 --metric ip --shards 3

# expected NAME INDEX ARGUMENTS: what is to be found, by one CPU.
declare -A way
expected() {
    way[$1]="${*:3}"
    "$program" search --index "$folder/$2" --queries "$queries" --query-rows 0:9 --quiet \
        --device cpu --out "$folder/expected.$1" "${@:3}"
}
expected deep ties.1 --k 1000 --oversample 5
expected ties ties.1 --k 50 --refine none
expected histogram ties.1 --k 20 --select histogram --max-candidates 900
expected queue ties.1 --k 20 --select queue --items 8 --queue-length 4
expected real real.1 --k 10
expected self real.1 --k 10 --exclude-self
expected all real.1 --k 2003 --oversample 1
expected small small.3 --k 41 --refine none

# same RANKS NAME INDEX MERGE ARGUMENTS: the bytes of `expected NAME`, merged as MERGE on devices.
same() {
    local ranks=$1 name=$2 index=$3 merge=$4 on=emulated
    shift 4
    if [[ $merge == ladder ]]; then on=cpu; fi
    # shellcheck disable=SC2086
    if ! search "$ranks" "$index" ${way[$name]} --merge "$merge" "$@" || [[ -s $job/stderr ]]; then
        complain "$ranks ranks, $name, $merge, $*" "$job/stderr"
    elif ! cmp -s "$folder/expected.$name" "$job/found"; then
        complain "$ranks ranks, $name, $merge, $*: other bytes" "$job/json"
    elif ! json_says "$job/json" "\"merge\": \"$merge\"" "\"merge_on\": \"$on\""; then
        complain "$ranks ranks, $name, $merge, $*: merged otherwise" "$job/json"
    else
        pass
    fi
}

# Both ways of merging have every search below, each number of ranks by turns.
turn=0
for merge in gather exchange; do
    for ranks in "${ranks_axis[@]}"; do
        if ((turn++ % 2)); then
            start same "$ranks" deep ties.5 "$merge"
        else
            start same "$ranks" real real.11 "$merge" --overlap on --batch 5
        fi
    done
    turn=$((turn + 1)) # the other way round
    start same 2 histogram ties.5 "$merge" --batch 4
    start same 2 queue ties.5 "$merge" --batch 4
    start same 4 ties ties.5 "$merge" --batch 1
    start same 2 all real.11 "$merge" --batch 7 --overlap off
    start same 2 self real.11 "$merge"
    start same 2 small small.3 "$merge"
    # More ranks than shards: replicas, each with queries of its own.
    start same 2 real real.1 "$merge" --batch 5
    # Little memory: a few queries at a time, and codes that come in blocks.
    start same 2 real real.11 "$merge" --batch 9 --device-memory 300K
done
start same 4 deep ties.1 exchange
start same 4 ties ties.5 gather --batch 9 --device-memory 150K
start same 2 real real.11 ladder

# ---- what is chosen ------------------------------------------------------------------------------

# chosen RANKS MERGE ON INDEX ARGUMENTS
chosen() {
    local ranks=$1 merge=$2 on=$3 index=$4
    shift 4
    if search "$ranks" "$index" --k 10 "$@" && cmp -s "$folder/expected.real" "$job/found" &&
        json_says "$job/json" "\"merge\": \"$merge\"" "\"merge_on\": \"$on\""; then
        pass
    else
        complain "$ranks ranks, $*: not $merge on $on, or other bytes" "$job/json"
    fi
}
start chosen 1 gather cpu real.1
start chosen 1 gather emulated real.11
start chosen 2 exchange emulated real.11
start chosen 2 ladder cpu real.11 --link mpi
start chosen 2 gather cpu real.11 --link mpi --merge gather
device=cpu start chosen 2 ladder cpu real.11
# Where not one query's candidates fit beside the rest, rank 0's CPU merges.
start chosen 2 ladder cpu real.11 --device-memory 44K --batch 4

# No more refined survivors travel than can be in an answer: k a shard and query. The host waits once for the scan of
# all shards of a rank.
few_survivors() {
    local sent
    search "$1" ties.5 --k 10 --oversample 50 --merge "$2" || complain "$2" "$job/stderr"
    sent=$(sed -n 's/^  "survivors": \([0-9]*\),$/\1/p' "$job/json")
    if ((sent >= 9 * 10 && sent <= 9 * 10 * 5)); then pass; else complain "$2: $sent survivors were sent"; fi
    if (($(grep -c '"waits": 1,$' "$job/json") == $1)); then pass; else complain "$2: more than a wait"; fi
}
start few_survivors 2 gather
start few_survivors 2 exchange

# Info, without a device, says what each rank then uses.
foretell() {
    local ranks=$1 index=$2 said used
    shift 2
    "$program" info "$folder/$index" --json --ranks "$ranks" "$@" >"$job/info"
    search "$ranks" "$index" "$@" || complain "$ranks ranks, $index, $*" "$job/stderr"
    said=$(sed -n 's/^ *"used_bytes": \([0-9]*\),$/\1/p' "$job/info" | tr '\n' ' ')
    used=$(sed -n 's/^ *"used_bytes": \([0-9]*\),$/\1/p' "$job/json" | tr '\n' ' ')
    if [[ -n $said && $said == "$used" ]]; then pass; else complain "$ranks ranks, $*: $said foretold, $used used"; fi
}
for memory in 90K 300K 3M; do start foretell 2 real.11 --k 10 --batch 5 --device-memory $memory; done
start foretell 1 real.11 --k 10 --batch 5 --device-memory 90K
for memory in 90K 300K; do start foretell 2 ties.5 --k 10 --batch 9 --merge gather --device-memory $memory; done
start foretell 4 real.1 --k 10 --batch 9 --device-memory 300K

# ---- errors --------------------------------------------------------------------------------------

# expect RANKS CODE PATTERN ARGUMENTS: one line, no result, in time.
expect() {
    local ranks=$1 code=$2 pattern=$3 got=0 begin=$SECONDS
    shift 3
    search "$ranks" real.11 --k 10 --batch 5 "$@" || got=$?
    # mpirun itself sometimes says so when a rank ends: libevent, of a pipe that is closed already.
    sed -i '/^\[warn\] Epoll /d' "$job/stderr"
    if ((got != code)); then
        complain "exit code $got instead of $code, $pattern" "$job/stderr"
    elif [[ $(wc -l <"$job/stderr") != 1 ]] || ! grep -Eq -- "$pattern" "$job/stderr"; then
        complain "not one line like $pattern" "$job/stderr"
    elif [[ -e $job/found ]] || ((SECONDS - begin > 20)); then
        complain "$pattern: a result was written, or it took $((SECONDS - begin)) s"
    else
        pass
    fi
}

# A rank is killed: the others end, whoever says so.
expect_end() {
    local got=0 begin=$SECONDS
    search "$1" real.11 --k 10 --batch 5 --merge "$2" || got=$?
    if ((got == 75 || got == 74)) && ((SECONDS - begin <= 20)) && [[ ! -e $job/found ]]; then
        pass
    else
        complain "a rank was killed: exit code $got after $((SECONDS - begin)) s" "$job/stderr"
    fi
}

device=cpu start expect 1 2 '^bitsweep: --merge exchange wants GPUs on all ranks .*: there is none' --merge exchange
start expect 2 2 '^bitsweep: --merge exchange wants .*: as asked for' --merge exchange --link mpi
start expect 2 2 '^bitsweep: --merge exchange: a GPU has too little memory' --merge exchange --device-memory 44K
# Operations: 3 and 4 queries of both batches, 5 candidates of the first, while the second is scanned,
# 6 (exchange alone) its cuts, then survivors.
number=BITSWEEP_EMULATOR_NCCL
for merge in gather exchange; do
    for rank in 0 1; do
        export BITSWEEP_EMULATOR_NCCL_RANK=$rank
        for operation in 5 6; do
            export ${number}_FAIL=$operation
            start expect 4 74 "rank $rank: emulated:$rank: [a-z0 ]* over NCCL: unhandled system error: as told" \
                --merge "$merge"
            unset ${number}_FAIL
            export ${number}_KILL=$operation
            start expect_end 2 "$merge"
            unset ${number}_KILL
        done
        export ${number}_STALL=5
        start expect 2 74 'rank 0: emulated:0: candidates of all ranks over NCCL: not done within 2 s' \
            --merge "$merge" --timeout 2
        unset ${number}_STALL
    done
    unset BITSWEEP_EMULATOR_NCCL_RANK
    export ${number}_STALL=6
    start expect 4 74 'rank 0: emulated:0: [a-z0 ]* over NCCL: not done within 2 s' --merge "$merge" --timeout 2
    unset ${number}_STALL
done

finish_all_jobs || complain "a job did not come to its end"
finish
