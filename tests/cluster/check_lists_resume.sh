#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# encode --lists, stopped and killed while lists are trained and while the table of recalls is
# measured: --resume goes on, and the index has the bytes of a run that nothing disturbed.
# usage: check_lists_resume.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
cd "$folder"
export BITSWEEP_JOURNAL_SECONDS=0 # each round is on disk once it is whole
find_ranks 2
most_ranks=${ranks_axis[-1]}

base="synth:count=20K,dims=64,clusters=30,seed=3"
bare=(encode --base "$base" --metric l2 --lists 256 --shards 2 --copy-vectors --quiet)
encode=("${bare[@]}" --bits 2 --calibrate 300)
check "undisturbed" "$program" "${encode[@]}" --index whole --threads 2
check "nothing is left to resume" test -z "$(compgen -G 'whole/encode.*')"

# has_rounds INDEX NUMBER: rounds of 256 lists of 64 numbers are in its journal
has_rounds() {
    local bytes
    bytes=$(stat -c %s "$1/encode.lists" 2>/dev/null || echo 0)
    ((bytes > $2 * 256 * 64 * 4))
}

# is_whole INDEX: it is whole, and its table is being measured
is_whole() {
    [[ -e $1/manifest.pb && -e $1/encode.table && ! -e $1/encode.plan ]]
}

# struck SIGNAL INDEX CONDITION...: whether a run on INDEX was struck as soon as the condition held, before its
# end; $got is its exit code. A run that is through too early is made again, a few times.
struck() {
    local signal=$1 index=$2 pid tries
    shift 2
    for ((tries = 0; tries < 5; tries++)); do
        rm -rf "$index"
        env --default-signal=INT "$program" "${encode[@]}" --index "$index" --threads 1 2>struck.err &
        pid=$! got=0
        until "$@" || ! kill -0 $pid 2>/dev/null; do sleep 0.002; done
        kill -"$signal" $pid 2>/dev/null || true
        wait $pid 2>/dev/null || got=$?
        if ((got != 0)); then return; fi
    done
    return 1
}

# ---- while lists are trained ----

for signal in KILL TERM USR1; do
    check "struck by $signal" struck $signal some has_rounds some 3
    check "$signal: rounds are kept" has_rounds some 3
    check "$signal: no plan yet" test ! -e some/encode.plan
    refused 74 'some: an index that is not finished; .*--resume' "$program" verify some
    if [[ $signal == KILL ]]; then
        check "its exit code" test "$got" = 137
        refused 2 'some/encode.lists: left by a run.*--resume goes on' "$program" "${encode[@]}" --index some
        refused 2 'some/encode.lists: begun with seed 1, now it is 7; --force' "$program" "${encode[@]}" \
            --index some --seed 7 --resume
        refused 2 'some/encode.lists: begun with .*; --force' "$program" encode --base "$base" --metric l2 --shards 2 \
            --copy-vectors --bits 2 --index some --resume --quiet
        check "rounds are still there" has_rounds some 3
        cp -r some other
    else
        check "$signal: exit code $got" test "$got" = 75
    fi
    check "$signal: resumed" on "$most_ranks" "${encode[@]}" --index some --resume --threads 2
    check "$signal: the same bytes" diff -r whole some
done
check "begun anew" "$program" "${encode[@]}" --index other --force
check "begun anew: the same bytes" diff -r whole other
rm -rf some other

# ---- while rows are coded ----

# has_blocks INDEX: some are recorded, not all
has_blocks() {
    [[ -s $1/encode-00000.journal && -e $1/encode.plan ]]
}

check "struck by KILL, coding" struck KILL some has_blocks some
# Lists that are trained are refused to a run that would train them again, also where no block is recorded yet,
# and though there is an index that only --force replaces.
cp -r some half
rm half/encode-0*.journal
refused 74 'half: an index that is not finished; .*--resume' "$program" info half
for has_index in 0 1; do
    ((!has_index)) || cp whole/manifest.pb half
    refused 2 'half/encode.plan: left by a run.*--resume goes on, --force starts again' "$program" "${encode[@]}" \
        --index half
    refused 2 'half/encode.plan: begun with seed 1, now it is 7; --force without --resume starts again' "$program" \
        "${encode[@]}" --index half --seed 7 --resume --force
    check "coding: the plan is still there" cmp some/encode.plan half/encode.plan
done
printf 'x' | dd of=half/encode.plan bs=1 seek=60 conv=notrunc status=none
refused 65 'half/encode.plan: header is corrupt; --force without --resume starts again' "$program" "${encode[@]}" --index half \
    --resume
rm -r half
check "coding: resumed" on "$most_ranks" "${encode[@]}" --index some --resume --threads 2
check "coding: the same bytes" diff -r whole some
rm -rf some

# ---- a disk that becomes full ----

# shellcheck disable=SC2016
mkdir full
if unshare -Urm bash -c 'mount -t tmpfs -o size=4M tmpfs full' 2>/dev/null; then
    refused 74 'is unfinished, --resume goes on with it: full/i/shard-.*tmp: cannot write: No space left' \
        unshare -Urm bash -c 'mount -t tmpfs -o size=4M tmpfs full && exec "$@"' - "$program" encode --base "$base" \
        --metric l2 --lists 64 --copy-vectors --quiet --index full/i
else
    echo "  skipped: a small tmpfs needs user name spaces (unshare -Urm)"
fi
rm -r full

# ---- while the table is measured ----

for signal in KILL TERM USR1; do
    check "struck by $signal, measuring" struck $signal some is_whole some
    check "$signal: the index is whole" "$program" verify --index some --quiet
    check "$signal: the index has no table" test "$(stat -c %s some/manifest.pb)" -lt \
        "$(stat -c %s whole/manifest.pb)"
    if [[ $signal == KILL ]]; then
        cp -r some late
        cp -r some other
        refused 2 'some: holds an index that only lacks its table.*--resume or bitsweep calibrate' "$program" \
            "${encode[@]}" --index some
        refused 2 'calibrate makes, too: some/encode.table: begun with calibrate 300 rows, now it is 200 rows' \
            "$program" "${bare[@]}" --bits 2 --calibrate 200 --index some --resume
        refused 2 'begun with calibrate 300 rows, now it is 1000 rows' "$program" "${bare[@]}" --bits 2 --index some \
            --resume
        refused 2 'some/encode.table: begun with bits 2, now it is 3' "$program" "${bare[@]}" --bits 3 \
            --calibrate 300 --index some --resume
        refused 2 'some: holds an index already' "$program" "${bare[@]}" --bits 2 --calibrate off --index some \
            --resume
    else
        check "$signal: exit code $got" test "$got" = 75
        check "$signal: it says what to do" grep -q "stopped by SIG$signal; --resume goes on\$" struck.err
    fi
    check "$signal: resumed" on "$most_ranks" "${encode[@]}" --index some --resume --json
    cp stdout facts
    check "$signal: it went on with the index" json_says facts '"index_found": true' '"rows": 20000'
    check "$signal: the same bytes" diff -r whole some
    refused 2 'some: holds an index already' "$program" "${encode[@]}" --index some --resume
done
check "the table, by calibrate" "$program" calibrate late --sample 300 --quiet
check "by calibrate: the same bytes" diff -r whole late
check "anew" "$program" "${encode[@]}" --index other --force
check "anew: the same bytes" diff -r whole other
finish
