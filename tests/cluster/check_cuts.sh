#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The journals of search, groundtruth and encode cut at bytes of their last three records, and the plan
# of an encode anywhere, as a crash may leave them, and a bit changed of what the records speak of:
# --resume always works, on one rank and on several, and gives the bytes of an undisturbed run.
# usage: check_cuts.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# BITSWEEP_CUT_STEP: every so many bytes (24); 1: at every byte of the three records.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
faulty=$(dirname "$program")/tests/bitsweep_faults
needs "$faulty"
step=${BITSWEEP_CUT_STEP:-24}
find_ranks 2
cd "$folder"
export BITSWEEP_JOURNAL_SECONDS=0 # a record for each batch
small=(--base "$base" --rows 0:3000)
"$program" encode "${small[@]}" --index idx --metric l2 --shards 2 --quiet --threads 1

# job NAME OUT: its arguments, into `arguments`.
job() {
    case $1 in
    search) arguments=(search --index "$folder/idx" --queries "$queries" --k 5 --batch 20) ;;
    groundtruth) arguments=(groundtruth "${small[@]}" --queries "$queries" --metric l2 --k 5 --block-rows 100) ;;
    encode) arguments=(encode "${small[@]}" --bits 3 --axes random --metric l2 --shards 6 --copy-vectors) ;;
    esac
    if [[ $1 == encode ]]; then arguments+=(--index "$2"); else arguments+=(--out "$2"); fi
    arguments+=(--threads 1 --quiet)
}

# Bytes of the records that a journal has.
records_bytes() {
    if [[ -e $1 ]]; then echo $(($(stat -c %s "$1") - $(od -An -tu8 -j24 -N8 "$1"))); else echo 0; fi
}

# unfinished NAME JOURNAL RECORD_BYTES: in the folder NAME.left, by writes that fail, ever later, until the
# journal has three records; NAME.whole is what nothing disturbs.
unfinished() {
    local writes
    mkdir "$1.whole" "$1.left"
    job "$1" out
    (cd "$1.whole" && "$program" "${arguments[@]}")
    for ((writes = 6; $(records_bytes "$1.left/$2") < 3 * $3 && writes < 60; writes += 2)); do
        if (cd "$1.left" && BITSWEEP_FAIL=write:$writes "$faulty" "${arguments[@]}" --resume 2>/dev/null); then
            complain "$1: write $writes did not fail"
        fi
    done
}

resumed() { # resumed NAME RANKS: what is in the folder `now`; the bytes of the whole one
    job "$1" out
    (cd now && on "$2" "${arguments[@]}" --resume) || return 1
    diff -r now "$1.whole"
}

# cut NAME JOURNAL BYTES RANKS: that many off its end.
cut() {
    rm -rf now
    cp -r "$1.left" now
    truncate -s "-$3" "now/$2"
    check "$1, $3 bytes off $2, $4 ranks" resumed "$1" "$4"
}

# cuts NAME JOURNAL RECORD_BYTES
cuts() {
    local most=$((3 * $3)) off ranks
    unfinished "$@"
    if (($(records_bytes "$1.left/$2") < most)); then complain "$1: fewer than three records in $2"; fi
    for ((off = 0; off <= most; off += step)); do cut "$1" "$2" "$off" 1; done
    if [[ $1 == groundtruth ]]; then return; fi # as many ranks as it began with
    for ranks in "${ranks_axis[@]:1}"; do
        for off in 1 $((most - 1)); do cut "$1" "$2" "$off" "$ranks"; done
    done
}

cuts search out.journal 48
cuts groundtruth out.00000.journal 56
cuts encode out/encode-00000.journal 56
plan=$(records_bytes encode.left/out/encode.plan)
for ((off = 1; off <= plan; off += step * 100)); do cut encode out/encode.plan "$off" 1; done

# damaged NAME FILE OFFSET RANKS: a bit of what a record says is done.
damaged() {
    rm -rf now
    cp -r "$1.left" now
    flip "now/$2" "$3"
    check "$1, a bit of $2 changed, $4 ranks" resumed "$1" "$4"
}
damaged search out.partial 100 1
for offset in 20 -20; do damaged groundtruth out.00000.lists $offset 1; done # whichever slot it is
for ranks in "${ranks_axis[@]}"; do
    for part in codes vectors; do damaged encode out/shard-00000-of-00006.$part.tmp 5000 "$ranks"; done
done

finish
