#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program among others: what variables of OpenMP say is held to the limits of --threads, and never ends it by a
# signal; threads that wait spin for a short while only, unless the user has chosen how long.
# usage: check_process.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
cd "$folder"
find_ranks 2
"$program" synth --count 300 --dims 16 --out base.fbin --queries 7 --queries-out q.fbin --quiet
encode=(encode --base base.fbin --metric l2 --quiet --force --index)

# ---- variables of OpenMP ----

for threads in 4097 65536 1000000 2000000001; do
    refused 2 "^bitsweep: (rank 0: )?OpenMP has $threads threads, must be 1 to 4096: change OMP_NUM_THREADS or give --threads" \
        env OMP_NUM_THREADS=$threads "$program" "${encode[@]}" refused
done
for ranks in "${ranks_axis[@]:1}"; do
    refused 2 "OpenMP has 4097 threads, must be 1 to 4096" \
        env OMP_NUM_THREADS=4097 "$run" -n "$ranks" "${encode[@]}" refused
done
check "nothing is there" test ! -e refused
check "--threads goes before" env OMP_NUM_THREADS=1000000 "$program" "${encode[@]}" index --threads 2
"$program" "${encode[@]}" plain --threads 1
check "its files" cmp index/shard-00000-of-00001.codes plain/shard-00000-of-00001.codes
for variable in OMP_NUM_THREADS=4,2 OMP_NUM_THREADS=0 OMP_NUM_THREADS=many OMP_THREAD_LIMIT=1 OMP_DYNAMIC=true; do
    rm -r index
    env "$variable" "$program" "${encode[@]}" index 2>said || fail "$variable: exit code $?" said
    check "$variable: the files" cmp index/shard-00000-of-00001.codes plain/shard-00000-of-00001.codes
done

# ---- threads that wait ----

# spins WHAT TURNS VARIABLE...: libgomp tells what it has read at every start; the last one counts.
spins() {
    local what=$1 turns=$2
    shift 2
    env -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=verbose "$@" "$program" info plain >out 2>said
    check "$what" grep -q "GOMP_SPINCOUNT = '$turns'" <(grep GOMP_SPINCOUNT said | tail -n 1)
}

if grep -q GOMP_SPINCOUNT <(env OMP_DISPLAY_ENV=verbose "$program" --version 2>&1); then
    spins "short spins" 2000
    spins "as GOMP_SPINCOUNT has them" 77 GOMP_SPINCOUNT=77
    spins "as OMP_WAIT_POLICY has them" 0 OMP_WAIT_POLICY=passive
fi

finish
