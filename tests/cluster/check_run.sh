#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deploy/run.sh when ranks are killed and stopped at random moments, fall silent, do not start, signals
# come, time is up: exit codes, what it says, retries that end in the bytes of an undisturbed run, and
# nothing left behind.
# usage: check_run.sh BITSWEEP_BINARY SOURCE_FOLDER
# ctest: alone
#
# BITSWEEP_RUN_KILLS: how many times a random rank is killed (4); BITSWEEP_RUN_SEED: of the ranks and
# moments (1). Moments are shares of the time that an undisturbed run takes here. Functions are called
# through `start`, which shellcheck does not see.
# shellcheck disable=SC2317
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
kills=${BITSWEEP_RUN_KILLS:-4}
RANDOM=${BITSWEEP_RUN_SEED:-1}
ranks=3
pool=6 # a run that ends badly is mostly waiting for mpirun
most_ms=5000  # until all of a job is gone
plain_ms=1500 # what Open MPI's mpirun takes to start, lose a rank and end where nothing else runs
num_jobs=0
export BITSWEEP_JOURNAL_SECONDS=0.02 # else a short run has no journal to be killed at

find_ranks "$ranks"
((has_mpi && ${#ranks_axis[@]} > 1)) || exit 77

# ---- one run -------------------------------------------------------------------------------------

# The program under test, which notes the process of each rank in $NOTES.
cat >"$folder/noted" <<'WRAPPER'
#!/usr/bin/env bash
echo $$ >"$NOTES/${OMPI_COMM_WORLD_RANK:-0}.new"
mv "$NOTES/${OMPI_COMM_WORLD_RANK:-0}.new" "$NOTES/${OMPI_COMM_WORLD_RANK:-0}"
exec "$PROGRAM" "$@"
WRAPPER
chmod +x "$folder/noted"
export PROGRAM=$program

# start FUNCTION ARGUMENTS: in the background, with a folder $job of its own.
start() {
    while (($(jobs -rp | wc -l) >= pool)); do wait -n || true; done
    num_jobs=$((num_jobs + 1))
    job=$folder/$num_jobs
    mkdir -p "$job/notes" "$job/tmp"
    (
        "$@"
        echo "done" >>"$verdicts"
    ) </dev/null &
}

verdict() { # verdict WHAT COMMAND: ok if it succeeds
    local what=$1
    shift
    if "$@" >"$job/verdict" 2>&1; then
        echo ok >>"$verdicts"
    else
        echo "FAILED: $what; stderr: $(tr '\n' '|' <"$job/stderr")" | tee -a "$verdicts"
    fi
}

# begin ARGUMENTS: run.sh with them in the background, marked as of this job, on process $runner.
begin() {
    rm -f "$job/notes/"*
    began=${EPOCHREALTIME/./}
    # Background jobs of a script ignore SIGINT otherwise.
    NOTES=$job/notes TMPDIR=$job/tmp BITSWEEP=${binary:-$folder/noted} RUN_MARK=$job \
        env -u OMPI_MCA_btl_vader_backing_directory --default-signal=INT "$run" --time-limit 200 "$@" >"$job/stdout" 2>"$job/stderr" &
    runner=$!
}

since() { # milliseconds since $began
    echo $(((${EPOCHREALTIME/./} - began) / 1000))
}

# Until the run is over and all of it is gone: $got is its exit code, $took the milliseconds since $began.
end_run() {
    local tries
    got=0
    wait "$runner" || got=$?
    for ((tries = 0; tries < 200; tries++)); do
        [[ -n $(marked) ]] || break
        sleep 0.05
    done
    took=$(since)
    verdict "$1: left processes: $(marked | tr '\n' ' ')" test -z "$(marked)"
    verdict "$1: left temporary files: $(ls -A "$job/tmp")" test -z "$(ls -A "$job/tmp")"
    verdict "$1: left shared memory" test -z "$(compgen -G "/dev/shm/.bitsweep-run.$runner.*")"
}

has_mark() { # has_mark PROCESS: it is of this job
    grep -qzxF "RUN_MARK=$job" "/proc/$1/environ" 2>/dev/null
}

marked() { # what there is of this job
    { grep -lzxF "RUN_MARK=$job" /proc/[0-9]*/environ 2>/dev/null || true; } | cut -d/ -f3
}

# The process of rank $1, once it has begun; nothing if the run is over before.
process_of() {
    until [[ -e $job/notes/$1 ]]; do
        kill -0 "$runner" 2>/dev/null || return 0
        sleep 0.01
    done
    cat "$job/notes/$1"
}

# strike SIGNAL PROCESS...: only what this job has started, all at once; $began is now.
strike() {
    local signal=$1 one mine=()
    shift
    for one; do
        if [[ $one =~ ^[0-9]+$ ]] && ((one > 1)) && has_mark "$one"; then mine+=("$one"); fi
    done
    began=${EPOCHREALTIME/./}
    ((${#mine[@]} == 0)) || kill -"$signal" "${mine[@]}" 2>/dev/null || true
}

# Milliseconds that a plain mpirun takes now to start, lose a rank and end: how slow the machine is.
pace() {
    local began=${EPOCHREALTIME/./}
    # shellcheck disable=SC2016
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$job timeout 100 mpirun --quiet \
        --oversubscribe --bind-to none -n "$ranks" \
        bash -c '((OMPI_COMM_WORLD_RANK)) || kill -KILL $$; exec sleep 60' >/dev/null 2>&1 || true
    since
}

# in_time WHAT MILLISECONDS LIMIT: longer only as far as the machine is slower than a quiet one.
in_time() {
    local limit=$3 now=$plain_ms
    if (($2 >= limit)); then
        now=$(pace)
        ((now <= plain_ms)) || limit=$((limit * now / plain_ms))
    fi
    verdict "$1: $2 ms, where a plain mpirun takes $now ms" test "$2" -lt "$limit"
}

# Until this job's search has begun: no deadline of the transport covers MPI_Init.
await_output() {
    until compgen -G "$job/out*" >/dev/null; do
        kill -0 "$runner" 2>/dev/null || return 0
        sleep 0.01
    done
}

# Until the first attempt is over, and the next begins or none does.
await_retry() {
    until [[ $(<"$job/stderr") == *"run.sh: retry"* ]]; do
        kill -0 "$runner" 2>/dev/null || return 0
        sleep 0.02
    done
}

# Until its journal has begun.
await_journal() {
    until [[ -e $job/out.journal ]]; do
        kill -0 "$runner" 2>/dev/null || return 0
        sleep 0.01
    done
}

says() { # says WHAT PATTERN: on stderr
    verdict "$1: does not say '$2'" grep -qE -e "$2" "$job/stderr"
}

num_retries() {
    grep -c '^run.sh: retry' "$job/stderr" || true
}

# $job/out is finished: the bytes of the undisturbed run.
is_whole() {
    cmp "$job/out" "$folder/reference" && [[ ! -e $job/out.journal && ! -e $job/out.partial ]]
}

"$program" encode --base synth:count=24K,dims=96,clusters=30,seed=3 --index "$folder/index" \
    --metric l2 --shards 3 --threads 1 --quiet
"$program" synth --count 10 --dims 96 --out "$folder/b.fbin" --queries 2400 --queries-out \
    "$folder/q.fbin" --quiet
find=(search --index "$folder/index" --queries "$folder/q.fbin" --k 10 --batch 24 --threads 1 --quiet)
"$program" "${find[@]}" --out "$folder/reference"
long=("${find[@]}" --repeat 1000)
small=("${find[@]/24/2}") # batches

# ---- cases ---------------------------------------------------------------------------------------

# What run.sh or a rank says of a rank that was killed; the last two where mpirun has not noticed it.
lost="run.sh: a rank was ended by signal 9|is lost: its connection broke"
lost+="|and mpirun has not noticed it|run.sh: mpirun did not end after"

# killed RANK MILLISECONDS RETRIES: that rank is killed so long after it began.
killed() {
    local what="kill -9 of rank $1 after $2 ms, $3 retries" first one left="" gone
    begin -n "$ranks" --retries "$3" "${find[@]}" --resume --out "$job/out"
    process=$(process_of "$1")
    sleep "$(printf '%d.%03d' $(($2 / 1000)) $(($2 % 1000)))"
    mapfile -t first < <(cat "$job/notes/"[0-9] 2>/dev/null)
    strike KILL "$process"
    if (($3)); then # all of the first attempt is gone when the next begins
        await_retry
        gone=$(since)
        for one in "${first[@]}"; do ! has_mark "$one" || left+=" $one"; done
    fi
    end_run "$what"
    (($3)) || gone=$took
    if ((got == 0 && $(num_retries) == 0)); then
        echo "late" >>"$verdicts"
    else
        echo "gone $gone" >>"$verdicts"
        says "$what" "$lost"
        verdict "$what: exit code $got" test "$got" = $(($3 ? 0 : 75))
        verdict "$what: $(num_retries) retries" test "$(num_retries)" = "$3"
        verdict "$what: left to the retry:$left" test -z "$left"
        in_time "$what" "$gone" "$most_ms"
        if ((got == 75)); then
            begin -n "$ranks" "${find[@]}" --resume --out "$job/out"
            end_run "$what, resumed"
        fi
    fi
    verdict "$what: the bytes" is_whole
}

# silent RANK: stopped for good; found by its heartbeats, whatever the others wait for.
silent() {
    local what="SIGSTOP of rank $1"
    begin -n "$ranks" "${small[@]}" --heartbeat 4 --out "$job/out"
    process=$(process_of "$1")
    await_journal
    strike STOP "$process"
    end_run "$what"
    if ((got == 0)); then
        echo "late" >>"$verdicts"
        return
    fi
    verdict "$what: exit code $got" test "$got" = 75
    local line="bitsweep: .*rank $1 on host .* has been silent for 4 s; --resume goes on"
    says "$what" "$line"
    # A second message comes from rank 0 where mpirun takes too long to end it.
    verdict "$what: something else" test "$(grep -cvE -e "$line" "$job/stderr")" = 0
    verdict "$what: after $took ms" test "$took" -gt 2000
    in_time "$what" "$took" $((4000 + most_ms))
    begin -n 1 "${find[@]}" --resume --out "$job/out"
    end_run "$what, resumed"
    verdict "$what: the bytes" is_whole
}

# not_started RANK: stopped before MPI has connected it. mpirun lets it run on before it ends it, and
# then it must not make the run complete.
not_started() {
    local what="rank $1 does not start" binary=$job/program
    # shellcheck disable=SC2016
    printf '#!/usr/bin/env bash\n[[ $OMPI_COMM_WORLD_RANK != %d ]] || { kill -STOP $$; exec sleep 100; }\nexec "$PROGRAM" "$@"\n' \
        "$1" >"$binary"
    chmod +x "$binary"
    begin -n "$ranks" --start-limit 6 "${find[@]}" --out "$job/out"
    end_run "$what"
    verdict "$what: exit code $got" test "$got" = 75
    says "$what" "run.sh: the ranks have not found each other within 6 s: rank $1 \(process [0-9]*\) is stopped"
    in_time "$what" "$took" $((6000 + 4000 + most_ms)) # mpirun is given 4 s
}

# stalled RANK: stopped for good; found by the deadline of the others.
stalled() {
    local what="SIGSTOP of rank $1"
    begin -n "$ranks" "${long[@]}" --timeout 4 --heartbeat 30 --out "$job/out"
    process=$(process_of "$1")
    await_output
    sleep 0.3
    strike STOP "$process"
    end_run "$what"
    verdict "$what: exit code $got" test "$got" = 75
    says "$what" "rank $1 did not"
    in_time "$what" "$took" $((4000 + 4000 + most_ms)) # the others give rank 0 4 s more
}

# paused SECONDS OPTIONS RANK...: all of these ranks, and nobody minds.
paused() {
    local what="SIGSTOP of ranks ${*:3} for $1 s" rank processes=()
    # shellcheck disable=SC2086
    begin -n "$ranks" "${find[@]}" --repeat 3 --timeout 30 $2 --out "$job/out"
    for rank in "${@:3}"; do processes+=("$(process_of "$rank")"); done
    await_output
    strike STOP "${processes[@]}"
    sleep "$1"
    strike CONT "${processes[@]}"
    end_run "$what"
    verdict "$what: exit code $got" test "$got" = 0
    verdict "$what: it says something" test ! -s "$job/stderr"
    verdict "$what: the bytes" is_whole
}

# signalled SIGNAL RANKS: to run.sh alone.
signalled() {
    local what="SIG$1 to run.sh, $2 ranks"
    begin -n "$2" --retries 2 "${find[@]}" --out "$job/out"
    await_journal
    strike "$1" "$runner"
    end_run "$what"
    if ((got == 0)); then
        echo "late" >>"$verdicts"
        return
    fi
    verdict "$what: exit code $got" test "$got" = 75
    verdict "$what: retried" test "$(num_retries)" = 0
    in_time "$what" "$took" "$most_ms"
    says "$what" 'stopped by SIG(TERM|INT|USR1)'
    begin -n 1 --retries 1 "${find[@]}" --resume --out "$job/out"
    end_run "$what, resumed"
    verdict "$what, resumed: the bytes" is_whole
}

# limited RANKS [STOPPED]: the time limit; with mpirun stopped, so that KILL is needed.
limited() {
    local what="time limit, $*" parent from seconds=2
    (($# == 1)) || seconds=6 # until then it must have started a rank
    begin -n "$1" --time-limit "$seconds" --retries 3 "${long[@]}" --out "$job/out"
    from=$began
    if (($# > 1)); then
        process=$(process_of 0)
        parent=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$process/status" 2>/dev/null) || true
        if [[ $(cat "/proc/$parent/comm" 2>/dev/null) == mpirun ]]; then strike STOP "$parent"; fi
    fi
    began=$from
    end_run "$what"
    verdict "$what: exit code $got" test "$got" = 75
    says "$what" "run.sh: stopped at the time limit of $seconds s"
    verdict "$what: retried" test "$(num_retries)" = 0
    verdict "$what: after $took ms" test "$took" -ge $((seconds * 1000 - 100))
    in_time "$what" "$took" $((seconds * 1000 + 4000 + most_ms)) # mpirun is given 4 s
}

# retried_alone: one rank, which run.sh starts itself.
retried_alone() {
    begin -n 1 --retries 1 --time-limit 60 "${find[@]}" --out "$job/out"
    process=$(process_of 0)
    await_journal
    strike KILL "$process"
    end_run "kill -9, alone"
    verdict "kill -9, alone: exit code $got" test "$got" = 0
    verdict "kill -9, alone: the bytes" is_whole
    if [[ -s $job/stderr ]]; then says "kill -9, alone" 'retry 1 of 1, with --resume'; fi
}

# expect CODE LINES PATTERN ARGUMENTS: of a run that nothing disturbs; lines on stderr.
expect() {
    local code=$1 num_lines=$2 pattern=$3
    shift 3
    begin "$@"
    end_run "$*"
    verdict "$*: exit code $got, not $code" test "$got" = "$code"
    verdict "$*: not $num_lines lines" test "$(wc -l <"$job/stderr")" = "$num_lines"
    says "$*" "$pattern"
}

# fake CODE LINES PATTERN RETRIES TEXT: the same of a program that is the shell script TEXT.
fake() {
    printf '#!/usr/bin/env bash\n%s\n' "$5" >"$job/program"
    chmod +x "$job/program"
    local binary=$job/program
    echo '  "exit_code": 0' >"$job/status" # of an earlier run
    export BITSWEEP_STATUS=$job/status
    expect "$1" "$2" "$3" -n 2 --retries "$4" info
}

# bereft EXIT_CODE LINES PATTERN TEXT: an mpirun that is killed, after TEXT.
bereft() {
    mkdir "$job/bin"
    # shellcheck disable=SC2016
    printf '#!/usr/bin/env bash\nif [[ $1 == --version ]]; then echo "mpirun (Open MPI)" && exit; fi\n%s\nkill -KILL $$\n' "$4" \
        >"$job/bin/mpirun"
    chmod +x "$job/bin/mpirun"
    PATH=$job/bin:$PATH expect "$1" "$2" "$3" -n 2 info
}

# stuck EXIT_CODE LINES PATTERN: an mpirun that takes no note of the end of its only rank, which has
# written the code if it is not 75, and ends once mpirun is stopped: a shell that still runs would
# take note of it.
stuck() {
    mkdir "$job/bin"
    cat >"$job/bin/mpirun" <<'MPIRUN'
#!/usr/bin/env bash
if [[ $1 == --version ]]; then echo "mpirun (Open MPI)" && exit; fi
OMPI_COMM_WORLD_RANK=0 bash -c "until grep -q '^State:.T' /proc/$$/status; do sleep 0.01; done; $RANK" &
kill -STOP $$
MPIRUN
    chmod +x "$job/bin/mpirun"
    local RANK="$4"
    export RANK
    PATH=$job/bin:$PATH expect "$1" "$2" "$3" -n 2 info
    in_time "mpirun that is stuck, $1" "$took" $((5000 + most_ms))
}

# ---- all of it -----------------------------------------------------------------------------------

# An undisturbed run, for the time it takes.
job=$folder/0
mkdir -p "$job/notes" "$job/tmp"
begin -n "$ranks" "${find[@]}" --out "$job/out" </dev/null
end_run "undisturbed"
verdict "undisturbed: exit code $got" test "$got" = 0
verdict "undisturbed: the bytes" is_whole
whole_ms=$took

start limited 2 stopped
start stalled 0
start stalled 1
start paused 3 "" 1
start paused 3 "" 0
start paused 6 "--heartbeat 4" 0 1 2
for ((i = 0; i < ranks; i++)); do start silent "$i"; done
start not_started 1
start limited 2
for ((i = 0; i < kills; i++)); do
    start killed $((RANDOM % ranks)) $((RANDOM % 1000 * whole_ms / 1000)) $((i % 2))
done
start signalled TERM 2
start signalled INT 2
start signalled USR1 2
start signalled TERM 1
start limited 1
start retried_alone
printf garbage >"$folder/bad.fbin"
start expect 2 1 "unknown command 'nothing'" -n 2 --retries 2 nothing
start expect 65 1 'bad.fbin' -n 2 --retries 2 info "$folder/bad.fbin"
# What mpirun does not do it says itself, in the same line.
start expect 74 1 'mpirun failed with exit code 1: There are not enough slots available .* the 4 slots that were requested' \
    -n 4 --host localhost:2 info
start expect 74 1 'mpirun failed with exit code 1: .*unable to open the hostfile: /nowhere/hosts' \
    -n 2 --hostfile /nowhere/hosts info
start expect 2 1 '--time-limit 0: not' -n 2 --time-limit 0 info
start expect 2 1 '--retries x: not' -n 2 --retries x info
start expect 2 1 '--start-limit 0: not' -n 2 --start-limit 0 info
# Rank 0 writes a code and stays, and rank 1 sees it before it goes on.
# shellcheck disable=SC2016
{
    written='printf "{\n  \"exit_code\": %s,\n" CODE >"$BITSWEEP_STATUS"'
    after='if ((OMPI_COMM_WORLD_RANK == 0)); then WRITTEN; exec sleep 100; fi
        until [[ -s $BITSWEEP_STATUS ]]; do sleep 0.01; done'
    after=${after/WRITTEN/$written}
    start fake 74 1 'rank 0 wrote no STATUS file' 0 'exit 0'
    start fake 74 1 'mpirun failed with exit code 3' 2 'exit 3'
    start fake 65 1 'nothing' 2 '((OMPI_COMM_WORLD_RANK)) || exec sleep 100; echo nothing >&2; exit 65'
    start fake 0 1 'complete, and then: a rank was ended by signal 9' 1 "${after/CODE/0}; kill -KILL \$\$"
    start fake 0 1 'complete, and then: a rank was ended by signal 14' 1 "${after/CODE/0}; kill -ALRM \$\$"
    start fake 75 3 'ended by signal 9 .*' 1 'kill -KILL $$'
    start fake 74 1 'complete, and then: mpirun failed with exit code 3' 1 "${after/CODE/0}; exit 3"
    start fake 70 1 'nothing' 2 "${after/CODE/75}"'; echo nothing >&2; exit 70'
    start bereft 75 1 'mpirun was ended by signal 9' :
    start bereft 75 1 'mpirun was ended by signal 9' "${written/CODE/74}" # a rank that could not write to it
    start bereft 65 1 'nothing' "echo nothing >&2; ${written/CODE/65}"
    start stuck 0 1 'mpirun did not end after' ': >"$BITSWEEP_STARTED"; '"${written/CODE/0}"
    start stuck 65 1 'mpirun did not end after' ': >"$BITSWEEP_STARTED"; '"${written/CODE/65}"
    start stuck 75 1 'mpirun did not end after' 'exit 2'
}
wait
(($(grep -c '^done' "$verdicts") == num_jobs)) || echo "FAILED: a check did not come to its end" | tee -a "$verdicts"

num_late=$(grep -c '^late' "$verdicts" || true)
slowest=$(sed -n 's/^gone //p' "$verdicts" | sort -n | tail -n 1)
echo "$kills kills: slowest ${slowest:-0} ms; $num_late signals came after the end"
finish
