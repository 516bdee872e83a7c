#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# encode, search and groundtruth where the Nth allocation, open, read, write, fsync, rename or send
# fails, N from 1 until the command no longer gets there: exit code 74, one line on stderr, nothing
# under a final name that is not whole, nothing left but what --resume needs, and --resume or --force
# afterwards gives the bytes of an undisturbed run. Where a message cannot be sent the code is 75. And
# where the process is killed at the Nth rename: an output that has its name is whole, an index that
# has its manifest too, and --resume gives the bytes all the same.
# usage: check_faults.sh BITSWEEP_BINARY BITSWEEP_FAULTS_BINARY
#
# FAULT_STEP: every how manieth N is tried, beside the first 10 and the last 3 (7; where a job differs
# little from another, three times that and the first); 1: all, and each with --resume and with
# --force, which else take turns. FAULT_JOBS: some of the jobs only.
set -euo pipefail
shopt -s extglob

launch=$(realpath "${BASH_SOURCE[0]%/*}/../../deploy/run.sh")
release=$(realpath "$1")
program=$(realpath "$2")
export BITSWEEP_RUN=${release%/*}/bitsweep-run
step=${FAULT_STEP:-7}
all_jobs=(encode encode-journal encode-resumed encode-killed search search-journal search-resumed search-killed groundtruth
    groundtruth-killed ranks)
read -ra jobs <<<"${FAULT_JOBS:-${all_jobs[*]}}"
folder=$(realpath "$(mktemp -d)")
trap 'wait; rm -rf "$folder"' EXIT
cd "$folder"
left_by_kill=()
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
export TMPDIR=$folder OMPI_MCA_btl_vader_backing_directory=$folder # of mpirun, removed with the rest
unset BITSWEEP_FAIL BITSWEEP_FAULT_LOG BITSWEEP_STATUS BITSWEEP_JOURNAL_SECONDS

complain() { # complain WHAT [FILE]
    echo "FAILED: $1" >>failures
    if [[ -s ${2:-} ]]; then head -n 30 "$2" | sed 's/^/    /' >>failures; fi
}

# ---- one job, in a folder JOB.d with the folders want, begun and now -----------------------------

# prepare JOB: its command; X-journal and X-killed note what is finished all the time, X-resumed goes on with
# it.
prepare() {
    local base=$folder/base.fbin queries=$folder/q.fbin
    resume=() first=10 stride=$step
    export BITSWEEP_JOURNAL_SECONDS=1000 BITSWEEP_FAULT_LOG=$PWD/log
    case $1 in
    encode*) arguments=(encode --base "$base" --index i --metric l2 --bits 3 --shards 2 --copy-vectors) ;;
    search*) arguments=(search --index "$folder/index" --queries "$queries" --k 5 --batch 8 --out r) ;;
    groundtruth*) arguments=(groundtruth --base "$base" --queries "$queries" --k 5 --metric l2 --split --out r) ;;
    esac
    arguments+=(--threads 1 --quiet)
    [[ $1 != *-@(journal|resumed|killed) ]] || BITSWEEP_JOURNAL_SECONDS=0
    [[ $1 != *-resumed ]] || resume=(--resume)
    case $1 in
    encode | search | *-resumed) ((step == 1)) || first=1 stride=$((3 * step)) ;;
    esac
}

# run FOLDER FAULT OPTIONS: sets `code`.
run() {
    code=0
    : >log
    cd "$1"
    BITSWEEP_FAIL=$2 "$program" "${arguments[@]}" "${@:3}" >../stdout 2>../stderr || code=$?
    cd ..
}

begin() { # an empty folder `now`, or one with what a run left unfinished
    rm -rf now
    if [[ -d begun ]]; then cp -r begun now; else mkdir now; fi
}

# What is there is an undisturbed run's, and nothing is missing.
has_files() { diff -rq -x '*.json' "${left_by_kill[@]}" want now >differences; }
facts_in() { [[ ! -e $1/r.json ]] || sed '/^  "run": {$/,/^  }$/d; s/,$//' "$1/r.json"; }
has_facts() { diff <(facts_in want) <(facts_in now); }
is_whole() { has_files && has_facts >differences; }

has_output() { [[ -e now/r || -e now/i/manifest.pb ]]; }
has_journal() { compgen -G 'now/r*.journal' >/dev/null || compgen -G 'now/i/encode-*.journal' >/dev/null; }

# Whether what a failed run left is whole, or what --resume needs.
is_clean() {
    local line
    if is_whole; then return 0; fi
    while read -r line; do
        case ${line/now\/i: /now: } in
        "Only in want"*) ;;
        "Only in now: r."@(partial|journal) | "Only in now: encode"@(.plan|-*.journal) | \
            "Only in now: shard-"*.@(codes|vectors).tmp) has_journal || return 1 ;;
        *) return 1 ;;
        esac
    done <differences
    if [[ -d now/i && ! $(ls -A now/i) ]]; then return 1; fi
    if [[ -e now/r ]] && ! has_facts >>differences; then return 1; fi
    ! grep -qs '"status": "complete"' now/*.json
}

# again WHAT WAY: with --resume or --force; the first is not for an output with nothing to resume.
again() {
    if [[ $2 == --resume ]] && has_output && ! has_journal; then return; fi
    if ((step == 1)); then rm -rf kept && cp -r now kept; fi
    run now "" "$2"
    if ((code)) || [[ -s stderr ]]; then
        complain "$1, then $2: exit code $code" stderr
    elif ! is_whole; then
        complain "$1, then $2: other bytes" differences
    fi
    if ((step == 1)); then rm -rf now && mv kept now; fi
}

# disturb JOB KIND N
disturb() {
    local what="$1: $2 $3" expected=74 reached lines
    [[ $2 != send ]] || expected=75
    begin
    run now "$2:$3" "${resume[@]}"
    read -r reached <log || true
    mapfile -t lines <stderr
    if [[ $reached != "reached $2 $3" ]]; then
        complain "$what was not reached, exit code $code" stderr
    elif ((code != expected)); then
        complain "$what: exit code $code, not $expected" stderr
    elif ((${#lines[@]} != 1)) || [[ ${lines[0]} != bitsweep:* ]]; then
        complain "$what: not one line" stderr
    elif ! is_clean; then
        complain "$what: $(<stderr), left:" differences
    else
        if [[ $1 != groundtruth ]] && ((step == 1 || $3 % 2)); then again "$what" --resume; fi
        if [[ $1 == groundtruth ]] || ((step == 1 || $3 % 2 == 0)); then again "$what" --force; fi
    fi
}

# A run that failed after it had a journal, in the folder begun.
leave_unfinished() {
    local n
    for n in {1..40}; do
        rm -rf now && mkdir now
        run now "fsync:$n"
        ! has_journal || break
    done
    has_journal || complain "nothing to resume" stderr
    mv now begun
}

check_kind() { # check_kind JOB KIND COUNT
    local n tried=0
    for ((n = 1; n <= $3; n++)); do
        if ((n > first && n <= $3 - 3 && n % stride != 0)); then continue; fi
        disturb "$1" "$2" "$n"
        tried=$((tried + 1))
    done
    begin
    run now "$2:$n" "${resume[@]}"
    if ((code)) || ! is_whole; then complain "$1: exit code $code with no $2 to fail" stderr; fi
    line+=" $2 $tried of $3,"
}

check_job() {
    local kind count line="$1:"
    mkdir "$1.d" && cd "$1.d"
    prepare "$1"
    mkdir want
    run want ""
    if [[ $1 == *-resumed ]]; then leave_unfinished; fi
    begin
    run now "" "${resume[@]}"
    is_whole || complain "$1: undisturbed, other bytes" stderr
    mv log counts
    while read -r kind count; do check_kind "$1" "$kind" "$count"; done <counts
    echo "${line%,}" | tee "$folder/$1.done"
}

# ---- kills ---------------------------------------------------------------------------------------

# Whether what has its name is whole: this run's, or the index that it was to replace.
is_named_whole() {
    local whole
    if [[ -e now/i/manifest.pb ]]; then
        whole=want
        cmp -s {want,now}/i/manifest.pb || whole=old
        diff -rq -x '*.tmp*' -x 'encode*' $whole/i now/i >differences
    elif [[ -e now/r ]]; then
        cmp {want,now}/r >differences 2>&1
    fi
}

kill_at() { # kill_at JOB N: at the Nth rename
    local what="$1: killed at rename $2" way=--force options=() reached
    rm -rf now
    if [[ -d old ]]; then cp -r old now && options=(--force); else mkdir now; fi
    run now "rename:$2:kill" "${options[@]}" 2>/dev/null # where the shell says so
    read -r reached <log || true
    if ((code != 137)) || [[ $reached != "reached rename $2" ]]; then
        complain "$what: exit code $code" stderr
    elif ! is_named_whole; then
        complain "$what, what has its name is not whole:" differences
    else
        if has_journal; then way=--resume; fi
        left_by_kill=(-x '*.tmp.[0-9]*') # which no one takes away
        again "$what" $way
        left_by_kill=()
    fi
}

# What an earlier run said of its end is not what one says that dies before it has begun.
check_stale_status() {
    echo '{"status": "complete"}' >stale
    rm -rf now && mkdir now
    BITSWEEP_STATUS=$PWD/stale run now open:1:kill 2>/dev/null
    if ((code != 137)) || [[ -e stale ]]; then complain "$1: exit code $code, or an old STATUS.json" stale; fi
}

check_killed() {
    local n count
    mkdir "$1.d" && cd "$1.d"
    prepare "$1"
    mkdir want
    run want ""
    count=$(sed -n 's/^rename //p' log)
    if [[ $1 == encode* ]]; then mkdir old && run old "" --bits 2; fi
    for ((n = 1; n <= count; n++)); do kill_at "$1" "$n"; done
    check_stale_status "$1"
    echo "$1: at each of $count renames" | tee "$folder/$1.done"
}

# ---- several ranks -------------------------------------------------------------------------------

# search_on_ranks FAULT RANK: on two ranks, one of which has the fault; sets `code`.
search_on_ranks() {
    code=0
    rm -rf now log.* && mkdir now && cd now
    BITSWEEP=$PWD/../one_rank FAULT_RANK=$2 BITSWEEP_FAIL=$1 timeout 60 "$launch" -n 2 -- \
        "${arguments[@]}" >../stdout 2>../stderr || code=$?
    cd ..
}

# A rank that cannot send ends the job, and says so once; the other keeps still.
fail_rank() { # fail_rank RANK N
    local what="ranks: send $2 of rank $1" lines
    search_on_ranks "send:$2" "$1"
    mapfile -t lines <stderr
    if ((code != 75)) || ! grep -qsx "reached send $2" "log.$1"; then
        complain "$what: exit code $code" stderr
    elif ((${#lines[@]} != 1)) || [[ ${lines[0]} != "bitsweep: rank $1: MPI_Isend: "* ]]; then
        complain "$what: not one line" stderr
    elif ! is_clean; then
        complain "$what left" differences
    else
        again "$what" --resume
    fi
}

check_ranks() {
    local rank n count tried=0 total=0
    mkdir ranks.d && cd ranks.d
    prepare search
    mkdir want
    run want ""
    # shellcheck disable=SC2016
    printf '#!/usr/bin/env bash\n[[ $OMPI_COMM_WORLD_RANK == "$FAULT_RANK" ]] || unset BITSWEEP_FAIL
        BITSWEEP_FAULT_LOG=%q.$OMPI_COMM_WORLD_RANK exec %q "$@"\n' "$PWD/log" "$program" >one_rank
    chmod +x one_rank
    search_on_ranks "" 0
    is_whole || complain "ranks: undisturbed, other bytes" stderr
    if ((code)); then complain "ranks: exit code $code" stderr; fi
    cp log.0 count.0 && cp log.1 count.1
    for rank in 0 1; do
        count=$(sed -n 's/^send //p' "count.$rank")
        total=$((total + count))
        for ((n = step == 1 ? 1 : 2 + 17 * rank; n <= count; n += step == 1 ? 1 : count)); do
            fail_rank "$rank" "$n"
            tried=$((tried + 1))
        done
    done
    echo "ranks: send $tried of $total" | tee "$folder/ranks.done"
}

# Whether there are ranks to test: MPI has leaks of its own, so only the release build is asked.
has_ranks() {
    ! grep -q __asan_init "$program" && command -v mpirun >/dev/null && "$launch" -n 2 -- --version >/dev/null 2>&1
}

# ---- all of it -----------------------------------------------------------------------------------

: >failures
# The release program has none of it.
for name in BITSWEEP_FAIL BITSWEEP_FAULT_LOG bsw_fault_is_due; do
    if grep -q "$name" "$release"; then complain "$release contains $name"; fi
    grep -q "$name" "$program" || complain "$program does not contain $name"
done
"$program" synth --count 300 --dims 24 --out base.fbin --queries 40 --queries-out q.fbin --quiet
"$program" encode --base base.fbin --index index --bits 3 --metric l2 --shards 2 --threads 1 --quiet
for job in "${jobs[@]}"; do
    while (($(jobs -rp | wc -l) >= 2)); do wait -n; done
    if [[ $job == *-killed ]]; then
        check_killed "$job" &
    elif [[ $job != ranks ]]; then
        check_job "$job" &
    elif BITSWEEP=$program has_ranks; then
        check_ranks &
    else
        echo "ranks: skipped: no MPI, or a build with sanitizers" | tee ranks.done
    fi
done
wait
cat ./*.d/failures >>failures 2>/dev/null || true
num_failed=$(grep -c '^FAILED' failures || true)
head -n 200 failures
num_done=$(find . -maxdepth 1 -name '*.done' | wc -l)
echo "$num_done of ${#jobs[@]} jobs, $num_failed failed [$SECONDS s]"
((num_failed == 0 && num_done == ${#jobs[@]}))
