#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks that talk, fail, fall silent and die: transport_ranks under deploy/run.sh.
# usage: check_transport.sh BITSWEEP_BINARY SOURCE_FOLDER
# ctest labels: asan
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
program=$(dirname "$program")/tests/transport_ranks
max_ranks=${BITSWEEP_MAX_RANKS:-8}
export BITSWEEP=$program

if ! command -v mpirun >/dev/null; then
    echo "skipped: mpirun is missing"
    exit 77
fi
# The extra flag keeps run.sh from starting one rank directly.
if ! "$run" -n 1 --tag-output fail 0 >"$folder/out" 2>&1; then
    if grep -q 'built without MPI' "$folder/out"; then
        echo "skipped: built without MPI"
        exit 77
    fi
    cat "$folder/out"
    exit 1
fi

# expect CODE SECONDS PATTERN RANKS MODE [ARGUMENT]: exit code, longest time, and the only line that
# is printed ("-" for none). After one that fails late nothing more is begun: another that hangs would
# say nothing new, and cost as much again.
expect() {
    local code=$1 seconds=$2 pattern=$3 ranks=$4 got=0 begin=$SECONDS out=$folder/out.$num_jobs lines
    shift 4
    ((ranks <= max_ranks)) && [[ ! -e $folder/hung ]] || return 0
    timeout -k 5 $((seconds + 1)) "$run" -n "$ranks" "$@" >"$out" 2>&1 || got=$?
    lines=$(wc -l <"$out")
    if ((got != code)); then
        complain "exit code $got instead of $code" "$ranks" "$@"
    elif ((SECONDS - begin > seconds)); then
        complain "took too long" "$ranks" "$@"
    elif [[ $pattern == - ]] && ((lines > 0)); then
        complain "printed something" "$ranks" "$@"
    elif [[ $pattern != - ]] && { ((lines != 1)) || ! grep -qE "$pattern" "$out"; }; then
        complain "did not print just one line like '$pattern'" "$ranks" "$@"
    fi
}

# start FUNCTION ARGUMENTS: in the background, as nearly all of its time is waiting.
start() {
    next_job 3
    run_job "$@" &
}

complain() {
    local what=$1 ranks=$2 took=$((SECONDS - begin))
    shift 2
    if ((took >= 15)); then
        what+="; it took $took s, so the rest is left out"
        touch "$folder/hung"
    fi
    {
        echo "transport_ranks $* on $ranks ranks: $what"
        cat "$out"
    } | tee -a "$folder/failures"
}

# The largest message of this check fills two buffers of 1 GiB.
has_memory() {
    local free_kb
    free_kb=$(awk '/^MemAvailable/ {print $2}' /proc/meminfo 2>/dev/null || echo 0)
    ((${free_kb:-0} > 8 * 1024 * 1024))
}

for ranks in 1 2 3 4 8; do
    expect 0 40 '^ok$' "$ranks" all
    expect 65 20 "rank $((ranks > 1 ? ranks - 1 : -1)): it went wrong" "$ranks" fail 3
done
expect 0 40 '^ok$' 4 --mca btl self,tcp all
expect 0 20 - 3 together
# A rank that may use other CPUs than its neighbours counts without them.
if (($(nproc) > 1)); then expect 0 20 - 2 apart; fi
expect 2 20 'rank 1: it went wrong' 2 fail 1
expect 74 20 'rank 1: it went wrong' 2 fail 4

awaited='did not answer within 2 s \(awaiting candidates of batch 7\)'
start expect 75 20 "rank 1 $awaited" 2 silent 1
start expect 75 20 "rank 3 $awaited" 4 silent 3
start expect 75 20 "rank 5 $awaited" 8 silent 5
start expect 75 20 "rank 2 $awaited" 4 stopped 2
start expect 75 25 'rank 0 did not' 2 stopped 0
start expect 75 20 'rank 0: not all ranks came to the end within 2 s' 2 absent 1
for rank in 0 1 3; do start expect 74 20 "rank $rank: it went wrong" 4 alarm "$rank"; done
start expect 74 20 'rank 2: it went wrong' 4 polled 2
start expect 75 20 'a rank was ended by signal 9' 2 killed 1
if ! finish_all_jobs; then echo "a job did not come to its end" | tee -a "$folder/failures"; fi

if [[ -z ${BITSWEEP_MAX_RANKS:-} ]] && has_memory; then
    expect 0 90 '^ok$' 2 pieces
fi
[[ ! -e $folder/failures ]]
