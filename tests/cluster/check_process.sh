#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program among others: what variables of OpenMP say is held to the limits of --threads, and never ends it by a
# signal; threads that wait spin for a short while only, unless the user has chosen how long. Outputs go through symbolic
# links, and beyond a limit of file sizes they are an error.
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
    spins "short spins" 10000
    spins "as GOMP_SPINCOUNT has them" 77 GOMP_SPINCOUNT=77
    spins "as OMP_WAIT_POLICY has them" 0 OMP_WAIT_POLICY=passive
fi

# ---- outputs that are symbolic links ----

# through WHAT COMMAND...: @ stands for the output. It gets what the command writes elsewhere, behind a link to a file,
# behind one to a link, and behind one that leads nowhere yet; links stay.
through() {
    local what=$1 ending=$2
    shift 2
    check "$what" "$program" "${@//@/whole$ending}" --quiet
    mkdir there
    echo old >"there/file$ending"
    ln -s "file$ending" "there/inner$ending"
    ln -s "there/inner$ending" "link$ending"
    check "$what: a link" "$program" "${@//@/link$ending}" --quiet --force
    check "$what: the links stay" test -L "link$ending" -a -L "there/inner$ending"
    check "$what: the bytes" cmp "whole$ending" "there/file$ending"
    rm -f "there/file$ending" link*.json
    check "$what: a link that leads nowhere" "$program" "${@//@/link$ending}" --quiet
    check "$what: the bytes that are new" cmp "whole$ending" "there/file$ending"
    check "$what: nothing else is there" test "$(find there | wc -l)" = 3
    rm -rf there "link$ending"* "whole$ending"*
    ln -s "link$ending" "link$ending"
    refused 2 "link$ending: symbolic links lead in a circle: name another output" "$program" "${@//@/link$ending}" --quiet
    rm "link$ending"
}

through synth .fbin synth --count 9 --dims 4 --out @
through convert .npy convert --in base.fbin --out @
through search "" search --index index --queries q.fbin --k 5 --out @
through groundtruth "" groundtruth --base base.fbin --queries q.fbin --metric l2 --k 5 --out @
"$program" search --index index --queries q.fbin --k 5 --out found --quiet
through "convert of results" .ibin convert --in found --out @
through train .rbe train --base base.fbin --metric cosine --code-dims 8 --epochs 1 --model @
ln -s nothing.fbin link.fbin
refused 2 'are the same file: name two' "$program" synth --count 9 --dims 4 --out nothing.fbin --queries-out link.fbin
mkfifo pipe
ln -s pipe link
refused 2 'link: not a regular file' "$program" search --index index --queries q.fbin --k 5 --out link --force

# ---- a limit of file sizes ----

# too_large COMMAND...: one line, and only what was there.
too_large() {
    ls >before
    (ulimit -f 8 && refused 74 'cannot write: File too large' "$program" "$@" --quiet)
    ls >after
    check "$1: nothing is left" diff before after
}

touch before after
too_large synth --count 9000 --dims 4 --out large.fbin
too_large convert --in base.fbin --out large.npy
too_large groundtruth --base base.fbin --queries base.fbin --metric l2 --k 100 --out large
too_large search --index index --queries base.fbin --k 100 --out large
too_large train --base base.fbin --metric cosine --code-dims 512 --epochs 1 --model large
code=0
said=$(ulimit -f 0 && "$program" info plain 2>&1 >words) || code=$?
check "a limit of standard output: exit code $code, $said" \
    test "$code $said" = "74 bitsweep: cannot write to standard output"

finish
