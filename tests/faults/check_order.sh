#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The order in which commands write, make durable and name what they leave behind, from a log of their
# system calls (call_log.c): what a crash of the machine at any moment may find. That the Nth fsync
# fails is check_faults.sh; here the one that is not made at all is missed.
# usage: check_order.sh BITSWEEP_FAULTS_BINARY
set -euo pipefail

program=$(realpath "$1")
folder=$(realpath "$(mktemp -d)")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
export BITSWEEP_JOURNAL_SECONDS=0 # each batch and block a record
unset BITSWEEP_FAIL BITSWEEP_FAULT_LOG BITSWEEP_STATUS
passed=0
failed=0

complain() {
    echo "FAILED: $1" >&2
    failed=$((failed + 1))
}

# A line for each call that comes too early, or that a crash before the next would undo.
# shellcheck disable=SC2016
rules='
function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
function bare(path) { sub(/\.tmp\.[0-9]+$/, "", path); return path }
function is_journal(path) { return path ~ /\.journal$|\/encode\.plan$/ }
# What a record of this journal speaks of; "": nothing that is in another file.
function data_of(path) {
    if (path ~ /\/encode-[0-9]+\.journal$/) return folder_of(path) "/shards"
    if (path ~ /\/encode\.plan$/) return ""
    if (path ~ /\.[0-9]+\.journal$/) { sub(/journal$/, "lists", path); return path }
    sub(/journal$/, "partial", path)
    return path
}
# What must have its name before this one has, or goes.
function output_of(path) {
    if (path ~ /\/encode(-[0-9]+\.journal|\.plan)$/) return folder_of(path) "/manifest.pb"
    if (path ~ /\.json$/) sub(/\.json$/, "", path)
    else sub(/(\.[0-9]+)?\.journal$/, "", path)
    return path in is_index ? path "/manifest.pb" : path
}
function say(what) { print FILENAME ":" FNR ": " what }
# What a thread does next after a name is to make it durable.
!($2 == "fsync" && ($1 " " $3) in unsynced) {
    for (key in unsynced)
        if (key ~ "^" $1 " ") { say(unsynced[key] " may be lost"); delete unsynced[key] }
}
$2 == "write" || $2 == "cut" {
    journal = bare($3)
    if (is_journal(journal)) {
        if (dirty[$3]) say($3 ": a record follows one that is not durable")
        data = data_of(journal)
        if (data != "" && syncs[data] == syncs_then[journal]) say($3 ": a record of bytes that are not durable")
        syncs_then[journal] = syncs[data]
    }
    dirty[$3] = 1
}
$2 == "fsync" {
    dirty[$3] = 0
    syncs[$3]++
    if ($3 ~ /\.codes\.tmp$/) syncs[folder_of($3) "/shards"]++
    delete unsynced[$1 " " $3]
}
$2 == "rename" {
    if (dirty[$3]) say($4 ": named before its bytes are durable")
    if ($4 ~ /\/manifest\.pb$/) is_index[folder_of($4)] = 1
    if ($4 ~ /\/(shard-[^\/]*|model\.rbe)$/ && folder_of($4) in is_index) say($4 ": named after the manifest")
    if ($4 ~ /\.json$/ && outputs && !(output_of($4) in named) && ++early == outputs)
        say($4 ": complete before there is a result")
    named[$4] = 1
    dirty[$4] = 0
    unsynced[$1 " " folder_of($4)] = "the name " $4
}
$2 == "unlink" {
    if (!is_journal($3)) { dirty[$3] = 0; next }
    if (dirty[$3]) say($3 ": its last record is not durable")
    dirty[$3] = 0
    if (!(output_of($3) in named)) say($3 ": goes before there is a result")
    unsynced[$1 " " folder_of($3)] = "that " $3 " is gone"
}
END {
    for (key in unsynced) say(unsynced[key] " may be lost")
}'

# run JOB OUTPUTS COMMAND...: OUTPUTS is 0 for a command whose output has no journal, 1 for an index, 2 for a
# file: its facts are there before it, and then how the run ended.
run() {
    if ! BITSWEEP_CALL_LOG=$PWD/$1.log "$program" "${@:3}" --quiet >out 2>&1; then
        complain "$1: $(<out)"
        return
    fi
    awk -v outputs="$2" "$rules" "$1.log" >found
    if [[ -s found ]]; then
        complain "$1: $(<found)"
    else
        passed=$((passed + 1))
    fi
}

# miss JOB MOST: each fsync of that log is left out in turn; the rules see it, but for MOST of them, which
# another that follows makes good.
miss() {
    local line missed=0 count=0
    while IFS=: read -r line _; do
        count=$((count + 1))
        sed "${line}d" "$1.log" >less.log
        awk -v outputs=2 "$rules" less.log >found
        [[ -s found ]] || missed=$((missed + 1))
    done < <(grep -n ' fsync ' "$1.log")
    echo "$1: $((count - missed)) of $count fsyncs are missed where they are left out"
    if ((count == 0 || missed > $2)); then complain "$1: $missed of $count are not missed"; fi
}

run synth 0 synth --count 300 --dims 24 --out base.fbin --queries 40 --queries-out q.fbin
run convert 0 convert --in base.fbin --out base.fvecs
run encode 1 encode --base base.fbin --index i --metric l2 --bits 3 --shards 2 --copy-vectors --threads 1
run search 2 search --index i --queries q.fbin --k 5 --batch 8 --out r --threads 1
run groundtruth 2 groundtruth --base base.fbin --queries q.fbin --k 5 --metric l2 --split --out t --threads 1
run train 0 train --base base.fbin --metric cosine --model model.rbe --code-dims 16 --epochs 2 --checkpoint c --threads 1
run rbe 1 encode --base base.fbin --index j --codec rbe --model model.rbe --metric cosine --threads 1
miss search 2      # the partial result is synced once more before it is renamed
miss groundtruth 3 # and lists that are gone without it are never read
echo "$passed of 7 jobs passed, $failed failed [$SECONDS s]"
((failed == 0 && passed == 7))
