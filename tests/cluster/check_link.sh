#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Devices of several ranks linked by NCCL: the same bytes as over MPI and as on the CPU, and whatever
# NCCL does wrong ends in one line within the deadline. Devices are emulated, NCCL is
# tests/emulation/nccl_stand_in.cpp, so neither is needed.
# usage: check_link.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# Functions are called through `start`, which shellcheck does not see.
# shellcheck disable=SC2317
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
stand_in=$(dirname "$program")/tests/nccl_stand_in.so
needs "$emulated" "$stand_in"
find_ranks 2 4
most_ranks=${ranks_axis[-1]}
export BITSWEEP_EMULATOR_NCCL=$stand_in
pool=4 # a rank that waits needs no core

# complain WHAT [FILE]
complain() {
    local text="" took=$((SECONDS - ${begin:-SECONDS}))
    if ((took >= 15)); then
        text=", after $took s; the rest is left out"
        touch "$folder/hung"
    fi
    if [[ -n ${2:-} && -s $2 ]]; then text+=": $(head -n 3 "$2" | tr '\n' '|')"; fi
    echo "FAILED: $1$text" | tee -a "$verdicts" >&2
}

# start FUNCTION RANKS ARGUMENTS: in the background, with a folder $job, unless the ranks are too
# many. After a case that fails late nothing more is begun: another that hangs would say nothing new, and
# cost as much again.
start() {
    (($2 <= most_ranks)) && [[ ! -e $folder/hung ]] || return 0
    next_job "$pool"
    run_job "$@" &
}

# search RANKS ARGUMENTS: on emulated devices, within $seconds.
search() {
    local ranks=$1
    shift
    BITSWEEP=$emulated timeout -k 5 $((seconds + 1)) "$run" -n "$ranks" search --index "$folder/index.${shards:-3}" \
        --queries "$queries" --query-rows 0:12 --quiet --out "$job/found" \
        --device "${device:-emulated}" --json "$@" >"$job/json" 2>"$job/stderr"
}

# ---- the same bytes ------------------------------------------------------------------------------

for shards in 1 3; do
    "$program" encode --base "$base" --rows 0:2003 --index "$folder/index.$shards" --quiet \
        --shards "$shards" --codec saq --bits 2.5 --metric l2
done
"$program" encode --base "$base" --rows 0:2003 --index "$folder/index.raw" --quiet --shards 3 --codec raw --metric l2
unset shards

# expected NAME ARGUMENTS: what is to be found.
expected() {
    "$program" search --index "$folder/index.1" --queries "$queries" --query-rows 0:12 --quiet \
        --device cpu --out "$folder/expected.$1" "${@:2}"
}

# same RANKS NAME LINK NOTE ARGUMENTS: the bytes of `expected NAME`, over LINK, which --json says,
# with NOTE.
same() {
    local ranks=$1 expected=$folder/expected.$2 link=$3 note=$4 seconds=${seconds:-40} begin=$SECONDS
    shift 4
    if ! search "$ranks" "$@" || [[ -s $job/stderr ]]; then
        complain "$ranks ranks, $*" "$job/stderr"
    elif ! cmp -s "$expected" "$job/found"; then
        complain "$ranks ranks, $*: other bytes"
    elif ! grep -q "^  \"link\": \"$link\"" "$job/json" ||
        ! grep -q "^  \"link_note\": \"$note" "$job/json"; then
        complain "$ranks ranks, $*: not $link, $note" "$job/json"
    else
        pass
    fi
}

# What the link takes is known to the plan: with little memory codes come in blocks.
within_memory() {
    local used
    same "$1" ten nccl NCCL --k 10 --link nccl --batch 4 --device-memory 60K
    used=$(sed -n 's/^ *"used_bytes": \([0-9]*\),\{0,1\}$/\1/p' "$job/json" | sort -n | tail -n 1)
    if ((used > 0 && used <= 60000)); then pass; else complain "$used bytes of device memory"; fi
}

expected ten --k 10
expected codes --k 300 --refine none
expected all --k 2003 --oversample 1
"$program" search --index "$folder/index.raw" --queries "$queries" --query-rows 0:12 --quiet --device cpu \
    --out "$folder/expected.raw" --k 10
for ranks in "${ranks_axis[@]}"; do
    for batch in 1 5 1000; do
        start same "$ranks" ten nccl 'NCCL 2.28.9"' --k 10 --link nccl --batch "$batch"
    done
    start same "$ranks" ten mpi 'as asked for' --k 10 --link mpi --batch 5
    shards=1 start same "$ranks" ten nccl NCCL --k 10 --link nccl --batch 3 --merge gather # replicas
    start same "$ranks" codes nccl NCCL --k 300 --refine none --link nccl --batch 7 --merge ladder --overlap on
    # All rows survive: transfers that no socket takes at once.
    start same "$ranks" all nccl NCCL --k 2003 --oversample 1 --link nccl --warmup 1
    start within_memory "$ranks"
    shards=raw start same "$ranks" raw nccl NCCL --k 10 --link nccl --batch 5
done

# ---- auto ----------------------------------------------------------------------------------------

version=BITSWEEP_EMULATOR_NCCL_VERSION
start same 1 ten mpi 'one rank' --k 10
start same 2 ten nccl 'NCCL 2.28.9"' --k 10
export $version=21805
start same 2 ten mpi 'rank 0: NCCL 2.18.5 (.*) is too old: 2.19.0' --k 10
unset $version
BITSWEEP_EMULATOR_NCCL=$folder/none.so start same 2 ten mpi 'rank 0: NCCL cannot be loaded: .*none.so' --k 10
device=cpu start same 2 ten mpi 'rank 0 has no GPU' --k 10
device=emulated:0 start same 2 ten mpi 'ranks 0 and 1 share emulated:0 (.*), which NCCL 2.28.9 refuses' --k 10
export $version=23000
device=emulated:0 start same 2 ten mpi 'ranks 0 and 1 share emulated:0"' --k 10
# The stand-in, as NCCL, refuses it unless a variable says otherwise.
device=emulated:0 start same 2 ten nccl 'NCCL 2.30.0' --k 10 --link nccl
unset $version

# NCCL that a rank can load and not use, for example with an old driver.
export BITSWEEP_EMULATOR_NCCL_REFUSE=1 BITSWEEP_EMULATOR_NCCL_RANK=1
start same 2 ten mpi 'rank 1: emulated:1: joining all ranks over NCCL: unhandled system error' --k 10
unset BITSWEEP_EMULATOR_NCCL_REFUSE BITSWEEP_EMULATOR_NCCL_RANK

# Joining or the first transfers that fail or hang, on one rank or all: within half the timeout. A
# rank may still be joining when another is at the transfers.
stall=BITSWEEP_EMULATOR_NCCL_STALL fail=BITSWEEP_EMULATOR_NCCL_FAIL
for number in 0 1 2; do
    for rank in '' 1; do
        if [[ $rank ]]; then export BITSWEEP_EMULATOR_NCCL_RANK=$rank; fi
        export $stall=$number
        start same 2 ten mpi 'rank 0: emulated:0: [a-z ]* over NCCL: not done within' --k 10 --timeout 6
        unset $stall
        export $fail=$number
        start same 4 ten mpi 'rank [0-3]: emulated:[0-3]: [a-z ]* over NCCL: ' --k 10 --timeout 6
        unset $fail BITSWEEP_EMULATOR_NCCL_RANK
    done
done
export BITSWEEP_EMULATOR_NCCL_HANG=1 $stall=0
start same 2 ten mpi 'rank 0: emulated:0: joining all ranks over NCCL: not done' --k 10 --timeout 6
unset BITSWEEP_EMULATOR_NCCL_HANG $stall

# ---- errors --------------------------------------------------------------------------------------

# expect RANKS CODE SECONDS PATTERN ARGUMENTS: one line, no result.
expect() {
    local ranks=$1 code=$2 seconds=$3 pattern=$4 got=0 begin=$SECONDS
    shift 4
    search "$ranks" --k 10 --link nccl --batch 5 --merge ladder "$@" || got=$?
    # mpirun itself sometimes says so when a rank ends: libevent, of a pipe that is closed already.
    sed -i '/^\[warn\] Epoll /d' "$job/stderr"
    if ((got != code)); then
        complain "exit code $got instead of $code, $pattern" "$job/stderr"
    elif [[ $(wc -l <"$job/stderr") != 1 ]] || ! grep -Eq -- "$pattern" "$job/stderr"; then
        complain "not one line like $pattern" "$job/stderr"
    elif ((SECONDS - begin > seconds)); then
        complain "$pattern: took $((SECONDS - begin)) s"
    elif [[ -e $job/found ]]; then
        complain "$pattern: a result was written"
    else
        pass
    fi
}

# expect_end RANKS SECONDS: a rank is killed, and the others end too; mpirun says so, or a rank that
# noticed it first, or both.
expect_end() {
    local got=0 begin=$SECONDS seconds=$2
    search "$1" --k 10 --link nccl --batch 5 --merge ladder || got=$?
    if ((got != 75 && got != 74)); then
        complain "a rank was killed: exit code $got" "$job/stderr"
    elif ((SECONDS - begin > $2)); then
        complain "a rank was killed: took $((SECONDS - begin)) s"
    else
        pass
    fi
}

# A link that does not come to its end holds nobody up.
end_in_time() {
    local begin=$SECONDS seconds=15
    same "$1" ten nccl NCCL --k 10 --link nccl
    if ((SECONDS - begin <= 15)); then pass; else complain "the end took $((SECONDS - begin)) s"; fi
}

export $version=21805
start expect 1 2 10 '^bitsweep: --link nccl: rank 0: NCCL 2.18.5 .* is too old: 2.19.0 or later'
start expect 2 2 10 \
    '^bitsweep: --link nccl: rank 0: NCCL 2.18.5 \(.*nccl_stand_in.so\) is too old: 2.19.0 or later'
unset $version
BITSWEEP_EMULATOR_NCCL=$folder/none.so start expect 2 2 10 \
    '--link nccl: rank 0: NCCL cannot be loaded: .*none.so: '
# Unless it is named there is none: a test program must not take the real one.
BITSWEEP_EMULATOR_NCCL='' start expect 2 2 10 '--link nccl: rank 0: NCCL cannot be loaded'
device=cpu start expect 2 2 10 '--link nccl: rank 0 has no GPU'
device=emulated:0 start expect 2 2 10 \
    '--link nccl: ranks 0 and 1 share emulated:0 .*, which NCCL 2.28.9 refuses and 2.30 or later'

# NCCL that never answers: while joining, at the first transfer, for queries of the first batch, or the second; on all
# ranks or one. Rank 0 waits for 2 s and is the first to speak. Candidates are merged by hosts:
# check_device_merge.sh has what devices do.
late='over NCCL: not done within 2 s'
export $stall=0
start expect 1 74 15 "^bitsweep: emulated:0: joining all ranks $late" --timeout 2
start expect 4 74 15 "rank 0: emulated:0: joining all ranks $late" --timeout 2
export $stall=1
start expect 2 74 15 "rank 0: emulated:0: first transfer $late" --timeout 2
export $stall=3
start expect 4 74 15 "rank 0: emulated:0: queries to all ranks $late" --timeout 2
export $stall=4 BITSWEEP_EMULATOR_NCCL_RANK=0
start expect 2 74 15 "rank 0: emulated:0: queries to all ranks $late" --timeout 2
unset BITSWEEP_EMULATOR_NCCL_RANK
# Giving NCCL up does not return either.
export $stall=5 BITSWEEP_EMULATOR_NCCL_HANG=1
start expect 2 74 20 "rank 0: emulated:0: queries to all ranks $late" --timeout 2
unset $stall
start end_in_time 2
start end_in_time 1
unset BITSWEEP_EMULATOR_NCCL_HANG

export BITSWEEP_EMULATOR_NCCL_REFUSE=1
start expect 1 74 10 '^bitsweep: emulated:0: joining all ranks over NCCL: unhandled system error'
export BITSWEEP_EMULATOR_NCCL_RANK=2
start expect 4 74 15 'rank 2: emulated:2: joining all ranks over NCCL: unhandled system error'
unset BITSWEEP_EMULATOR_NCCL_RANK
unset BITSWEEP_EMULATOR_NCCL_REFUSE

# An error of NCCL is told at once, also that of another rank than 0.
told='over NCCL: unhandled system error: as told'
export $fail=0
start expect 2 74 15 "rank 0: emulated:0: joining all ranks $told"
for rank in 0 1; do
    export BITSWEEP_EMULATOR_NCCL_RANK=$rank
    export $fail=2
    start expect 2 74 15 "rank $rank: emulated:$rank: first transfer $told"
    export $fail=3
    start expect 4 74 15 "rank $rank: emulated:$rank: queries to all .*$told"
    export $fail=4
    start expect 2 74 15 "rank $rank: emulated:$rank: queries to all .*$told"
    unset $fail
    export BITSWEEP_EMULATOR_NCCL_KILL=5
    start expect_end 2 15
    unset BITSWEEP_EMULATOR_NCCL_KILL
done
unset BITSWEEP_EMULATOR_NCCL_RANK

# Errors beside the link, with a link open: a device that fails, and memory too small for it.
BITSWEEP_EMULATOR_FAIL=16 start expect 2 74 15 'emulated:[0-9]+: .*LaunchFailure'
start expect 2 74 15 ': no device memory for|bytes of device memory are free' --device-memory 3K

begin=$SECONDS
finish_all_jobs || complain "a job did not come to its end"
finish
