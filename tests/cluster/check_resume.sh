#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# search, encode and groundtruth, stopped and killed at random moments and resumed, the first two by
# other numbers of ranks too: the bytes of a run that nothing disturbed. And what --resume and --force refuse, exit codes,
# STATUS.json, and that a stop takes no longer than it should.
# usage: check_resume.sh BITSWEEP_BINARY SOURCE_FOLDER
# ctest labels: asan
#
# BITSWEEP_RESUME_KILLS: how many times search and encode are stopped or killed (6, under sanitizers
# 2), groundtruth a third of that on one rank and on several;
# BITSWEEP_RESUME_SEED: of the moments (1).
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
cd "$folder"
folder=$(pwd -P) # as /proc has it
most_ranks=${BITSWEEP_MAX_RANKS:-3}
kills=${BITSWEEP_RESUME_KILLS:-$((most_ranks < 3 ? 2 : 6))} # fewer where sanitizers slow it down
RANDOM=${BITSWEEP_RESUME_SEED:-1}
export BITSWEEP_JOURNAL_SECONDS=0.02 # else a short run has no journal to be killed at
num_stopped=0  # runs that did not come to their end
num_late=0     # runs that were done when the signal came
num_halvings=0 # of the time until a run is struck: one more for each that was done, one less for each that was not
find_ranks 2
if ((most_ranks < 2)); then has_mpi=0; fi

verdict() { # verdict WHAT COMMAND: passes if it succeeds
    local what=$1
    shift
    if "$@" >verdict.out 2>&1; then pass; else complain "$what" verdict.out; fi
}

refuse() { # refuse CODE PATTERN ARGUMENTS
    refused "$1" "$2" "$program" "${@:3}"
}

# ---- the jobs ------------------------------------------------------------------------------------

base=synth:count=24K,dims=96,clusters=30,seed=3
truth_base=synth:count=$((most_ranks < 3 ? 30 : 120))K,dims=96,clusters=30,seed=3
encode_base=synth:count=$((most_ranks < 3 ? 60 : 160))K,dims=256,seed=5
"$program" synth --count 10 --dims 96 --out base.fbin --queries 4800 --queries-out q.fbin --quiet
"$program" encode --base $base --index idx --metric l2 --shards 3 --threads 1 --quiet

# job NAME OUT: its arguments, into `arguments`; small batches and blocks, so that there are many.
job() {
    case $1 in
    search | lists) arguments=(search --index "${1/#search/idx}" --queries q.fbin --k 10 --batch 24 --out "$2") ;;
    encode) arguments=(encode --base "$encode_base" --bits 6.5 --axes random
        --metric l2 --shards 3 --index "$2" --copy-vectors) ;;
    groundtruth) arguments=(groundtruth --base "$truth_base" --queries q.fbin --query-rows 0:1200 --metric l2
        --block-rows 500 --out "$2") ;;
    esac
    arguments+=(--threads 1 --quiet)
}

same() { # same NAME OUT: as undisturbed, and nothing else left
    if [[ $1 == encode ]]; then
        diff -r "$2" encode.ref
    else
        cmp "$2" "$1.ref" && cmp "$2.json" "$1.ref.json" || return 1
        test "$( (echo "$2" && compgen -G "$2.*") | grep -v '\.tmp\.' | LC_ALL=C sort | tr '\n' ' ')" \
            = "$2 $2.json "
    fi
}

status_says() { # status_says OUT WORD
    grep -qs "\"status\": \"$2\"" "$1.json"
}

has_status() { # has_status OUT: its run has come to an end
    grep -qs '^  "run": {' "$1.json"
}

# ---- one kill ------------------------------------------------------------------------------------

random_pause() { # below $1 thousandths
    printf '0.%03d' $((RANDOM % ($1 > 0 ? $1 : 1)))
}

# Only what this script has started is ever looked at or struck: $1 is a process of ours, or nothing,
# if that is gone, and then there is nothing to find.
children_of() {
    if [[ $1 =~ ^[0-9]+$ ]] && (($1 > 1)); then pgrep -P "$1" || true; fi
}

is_ours() { # a process that runs the program under test, or mpirun, in this folder
    [[ $1 =~ ^[0-9]+$ ]] && (($1 > 1)) && [[ $(readlink "/proc/$1/cwd" 2>/dev/null) == "$folder" ]]
}

# The process of rank $2 below mpirun, whose process is $1.
process_of_rank() {
    local pid
    for pid in $(children_of "$1"); do
        if grep -qszx "OMPI_COMM_WORLD_RANK=$2" "/proc/$pid/environ"; then echo "$pid"; fi
    done
}

mpirun_below() { # of run.sh's process
    local pid
    for pid in $(children_of "$1"); do
        if [[ $(cat "/proc/$pid/comm" 2>/dev/null) == mpirun ]]; then echo "$pid"; fi
    done
}

# Until the process minds signals, or is gone: what strikes it before is not ours.
await_watch() {
    local caught
    while caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null); do
        if (((16#${caught:-0} >> 14) & 1)) && [[ $(cat "/proc/$1/comm" 2>/dev/null) == bitsweep* ]]; then return; fi
        sleep 0.01
    done
}

is_running() { # process $1, and it is not a dead one that nobody has waited for
    grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status"
}

# What the command from $2 on finds, as soon as it finds something; nothing if process $1 is gone.
await_found() {
    local process=$1 found=""
    shift
    while found=$("$@") && [[ -z $found ]] && is_running "$process"; do sleep 0.005; done
    echo "$found"
}

# Sends what $1 says to the run of process $2 with $3 ranks, as soon as there is what it asks for.
strike() {
    local launcher=$2 targets=() signal=KILL process rank
    if (($3 > 1)); then launcher=$(await_found "$2" mpirun_below "$2"); fi
    case $1 in
    KILL) targets=("$launcher") ;;
    rank) mapfile -t targets < <(await_found "$2" process_of_rank "$launcher" $(($3 - 1))) ;;
    rank0) mapfile -t targets < <(await_found "$2" process_of_rank "$launcher" 0) ;;
    all) mapfile -t targets < <(echo "$launcher" && children_of "$launcher") ;;
    TERM | INT | USR1)
        signal=$1
        targets=("$launcher")
        if (($3 == 1)); then await_watch "$2"; fi
        for ((rank = 0; $3 > 1 && rank < $3; rank++)); do
            await_watch "$(await_found "$2" process_of_rank "$launcher" $rank)"
        done
        ;;
    esac
    for process in ${targets[@]+"${targets[@]}"}; do
        if is_ours "$process"; then kill -"$signal" "$process" 2>/dev/null || true; fi
    done
}

# disturbed NAME OUT HOW RANKS: goes on with OUT and is struck; notes how that ended.
disturbed() {
    local name=$1 out=$2 how=$3 num_ranks=$4 got=0 pid begin took
    job "$name" "$out"
    # Background jobs of a script ignore SIGINT otherwise.
    env --default-signal=INT "$run" -n "$num_ranks" -- "${arguments[@]}" --resume >/dev/null 2>stderr &
    pid=$!
    sleep "$(random_pause $(((num_ranks > 1 ? 300 + span : span) >> num_halvings)))"
    strike "$how" "$pid" "$num_ranks"
    begin=${EPOCHREALTIME/./}
    wait "$pid" 2>/dev/null || got=$?
    took=$(((${EPOCHREALTIME/./} - begin) / 1000))
    # mpirun that is struck as the last rank ends fails, whatever the ranks did.
    if ((got == 0 || num_ranks > 1)) && status_says "$out" complete; then
        num_late=$((num_late + 1))
        num_halvings=$((num_halvings + 1))
        verdict "$name done before $how" same "$name" "$out"
        verdict "$name done before $how: STATUS" status_says "$out" complete
        return 1
    fi
    num_stopped=$((num_stopped + 1))
    ((num_halvings == 0)) || num_halvings=$((num_halvings - 1))
    case $how in
    TERM | INT | USR1)
        if ((num_ranks == 1)) || [[ $how == USR1 ]]; then
            verdict "$name, $how, $num_ranks ranks: exit code $got: $(cat stderr)" test $got = 75
        fi
        if ((num_ranks == 1)) && [[ $how != USR1 ]]; then
            if ((took < least_ms)); then least_ms=$took; fi
            verdict "$name, $how: one line: $(cat stderr)" test "$(grep -c 'stopped by' stderr)" = 1
        fi
        # Struck before it had begun it has nothing to say.
        if has_status "$out"; then
            verdict "$name, $how: STATUS" status_says "$out" stopped
        fi
        verdict "$name, $how: temporary files" test -z "$(find . -name '*.tmp.[0-9]*' -newer stderr)"
        ;;
    esac
    return 0
}

# What journals have: the queries of a search, the rows of a ground truth's ranks.
recorded() {
    local journal head bytes rows=0
    if [[ $1 == search && -e $2.journal ]]; then
        head=$(od -An -tu8 -j24 -N8 "$2.journal")
        bytes=$(stat -c %s "$2.journal")
        echo $((24 * ((bytes - head) / 48))) && return # batches of 24
    fi
    for journal in $(compgen -G "$2.[0-9]*.journal"); do # the last record says it
        head=$(od -An -tu8 -j24 -N8 "$journal")
        bytes=$((($(stat -c %s "$journal") - head) / 56 * 56))
        rows=$((rows + $(od -An -tu8 -j$((head + bytes - 40)) -N8 "$journal")))
    done
    echo $rows
}

# chain NAME COUNT [RANKS]: one output, killed COUNT times in a row, then left to finish.
chain() {
    local name=$1 count=$2 fixed=${3:-} out=$1.$RANDOM i how num_ranks ways ended last resumed
    for ((i = 0; i < count; i++)); do
        ways=(KILL TERM INT USR1)
        num_ranks=${fixed:-1}
        if ((num_ranks > 1 || (!fixed && has_mpi && RANDOM % 2))); then
            num_ranks=${fixed:-$((2 + RANDOM % (most_ranks - 1)))}
            ways=(rank rank0 all TERM USR1)
        fi
        how=${ways[RANDOM % ${#ways[@]}]}
        if ! disturbed "$name" "$out" "$how" "$num_ranks"; then
            rm -rf "$out" "$out".*
            return
        fi
    done
    ended=$(recorded "$name" "$out")
    job "$name" "$out"
    last=${fixed:-$((has_mpi ? 1 + RANDOM % most_ranks : 1))}
    verdict "$name resumed" "$run" -n "$last" -- "${arguments[@]}" --resume --json
    if [[ $name != encode ]]; then
        resumed=$(grep -oE '"resumed_(queries|rows)": [0-9]+' verdict.out | grep -oE '[0-9]+$' || true)
        verdict "$name: $ended were recorded, ${resumed:-none} not done again" test "${resumed:-0}" = "$ended"
    fi
    verdict "$name resumed: the same bytes" same "$name" "$out"
    verdict "$name resumed: STATUS" status_says "$out" complete
    rm -rf "$out" "$out".*
}

# ---- all of it -----------------------------------------------------------------------------------

milliseconds() { # of a command
    local begin=${EPOCHREALTIME/./}
    "$@" >/dev/null
    echo $(((${EPOCHREALTIME/./} - begin) / 1000))
}

asked=0
for name in search encode groundtruth; do
    num_halvings=0
    least_ms=1000000 # that a stop took; on a busy machine some take longer than they should
    job $name $name.ref
    span=$(milliseconds "$program" "${arguments[@]}")
    ((span > 100)) || span=100
    ((span < 690)) || span=690
    echo "$name undisturbed: $span ms [$SECONDS s]"
    if [[ $name == groundtruth ]]; then # as many ranks throughout
        turns=(1)
        if ((has_mpi)); then turns=(1 "$most_ranks"); fi
        share=$(((kills + 2) / 3))
    else
        turns=("")
        share=$kills
    fi
    for turn in "${turns[@]}"; do
        for ((goal = num_stopped + share, tries = 0; num_stopped < goal && tries < 6 * share + 20; tries++)); do
            chain $name $((goal - num_stopped < 3 ? goal - num_stopped : 3)) "$turn"
        done
        ((asked += share))
    done
    if ((least_ms < 1000000)); then
        verdict "$name: each stop took $least_ms ms or more" test $least_ms -lt 2000 # asked for is a second
    fi
done
echo "$num_stopped stopped, $num_late too late [$SECONDS s]"
verdict "$num_stopped runs were stopped, not $asked" test $num_stopped -ge $asked

has_journal() { # has_journal OUT
    compgen -G "$1.journal" || compgen -G "$1/encode-*.journal" || compgen -G "$1.[0-9]*.journal"
}

# unfinished NAME OUT OPTIONS: a run to refuse things with, killed as soon as it has a journal; again if it
# was done by then. $old, if set, is what OUT was before.
unfinished() {
    local pid tries
    job "$1" "$2"
    for ((tries = 0; tries < 20; tries++)); do
        rm -rf "$2" "$2".*
        [[ -z ${old:-} ]] || echo "$old" >"$2"
        "$program" "${arguments[@]}" "${@:3}" 2>/dev/null &
        pid=$!
        until has_journal "$2" >/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.002; done
        kill -KILL $pid 2>/dev/null || true
        wait $pid 2>/dev/null || true
        if has_journal "$2" >/dev/null; then return; fi
    done
}

unfinished search s
if [[ -e s.journal ]]; then
    cp s.partial before.partial && cp s.journal before.journal
    refuse 2 's.journal: left by a run.*--resume goes on, --force' "${arguments[@]}"
    refuse 2 's.journal: begun with query-bits 6, now it is 5; --force' "${arguments[@]}" --resume \
        --query-bits 5
    refuse 2 'only a search of one pass|of one pass' "${arguments[@]}" --resume --repeat 2
    printf '\1\0\0\0\2\0\0\0\5\0\0\0\7\0\0\0' >few.u32bin
    refuse 2 's.journal: begun with allow all, now it is [0-9a-f]{16}; --force' "${arguments[@]}" --resume --allow few.u32bin
    cp q.fbin kept.fbin && printf '\1\1' | dd of=q.fbin bs=1 seek=5000 conv=notrunc status=none
    refuse 2 's.journal: begun with queries [0-9a-f]{16}, now it is' "${arguments[@]}" --resume
    mv kept.fbin q.fbin
    verdict "what was refused left the files alone" cmp s.partial before.partial
    verdict "what was refused left the journal alone" cmp s.journal before.journal
    # A batch whose bytes are not as recorded is done again.
    printf 'XX' | dd of=s.partial bs=1 seek=30 conv=notrunc status=none
    verdict "resume over a changed result" env BITSWEEP_STATUS=asked.json "$program" \
        "${arguments[@]}" --resume
    verdict "resume over a changed result: the same bytes" same search s
    verdict "STATUS where the environment asks for it" cmp <(sed 's/^ *//' asked.json) \
        <(sed -n '/"run": {/,/}/{s/^ *//; s/"run": //; p}' s.json)
else
    complain "no unfinished search"
fi
unfinished search m --allow few.u32bin
if [[ -e m.journal ]]; then
    printf '\1\0\0\0\2\0\0\0\5\0\0\0\6\0\0\0' >other.u32bin
    refuse 2 'm.journal: begun with allow [0-9a-f]{16}, now it is [0-9a-f]{16}; --force' "${arguments[@]}" --resume \
        --allow other.u32bin
    refuse 2 'm.journal: begun with allow [0-9a-f]{16}, now it is all; --force' "${arguments[@]}" --resume
    verdict "resumed with the same mask" "$program" "${arguments[@]}" --resume --allow few.u32bin
else
    complain "no unfinished search with a mask"
fi
"$program" encode --base $base --index lists --metric l2 --lists 16 --calibrate off --threads 1 --quiet
unfinished lists l
if [[ -e l.journal ]]; then
    refuse 2 'l.journal: begun with probe (all|[0-9]+), now it is 5; --force' "${arguments[@]}" --resume --probe 5
else
    complain "no unfinished search of lists"
fi

# --force keeps the old result until the new one is there; --resume goes on with that.
old=old unfinished search f --force
verdict "the old result is there" grep -q old f
verdict "resumed without --force" "$program" "${arguments[@]}" --resume
verdict "resumed without --force: the same bytes" same search f
unfinished search g
verdict "--force begins anew" "$program" "${arguments[@]}" --force
verdict "--force begins anew: the same bytes" same search g

# Two at once.
job search w
"$program" "${arguments[@]}" --repeat 50 --force 2>/dev/null & # without a journal
first=$!
"$program" "${arguments[@]}" 2>/dev/null &
second=$!
until [[ -e w.partial ]] || ! kill -0 $second 2>/dev/null; do sleep 0.01; done
refuse 2 'w.partial: another run is writing it|w: exists' "${arguments[@]}" --resume
kill -TERM $first 2>/dev/null || true
wait $first $second 2>/dev/null || true
verdict "a search of many passes leaves no temporary file" test -z "$(find . -name 'w.tmp*')"

unfinished encode e
if compgen -G 'e/encode-*.journal' >/dev/null; then
    refuse 2 'e/encode-00000.journal: left by a run.*--resume goes on' "${arguments[@]}"
    refuse 2 'e/encode.plan: begun with seed 1, now it is 7; --force' "${arguments[@]}" --resume --seed 7
    for file in e/shard-0000?-of-00003.codes.tmp; do
        printf 'XX' | dd of="$file" bs=1 seek=5000 conv=notrunc status=none
    done
    verdict "resume over changed codes" "$program" "${arguments[@]}" --resume
    verdict "resume over changed codes: the same bytes" same encode e
else
    complain "no unfinished index"
fi
unfinished encode e2
verdict "--force begins an index anew" "$program" "${arguments[@]}" --force
verdict "--force begins an index anew: the same bytes" same encode e2

unfinished groundtruth t
if [[ -e t.00000.journal ]]; then
    cp t.00000.lists before.lists && cp t.00000.journal before.journal
    refuse 2 't.00000.journal: left by a run.*--resume goes on, --force' "${arguments[@]}"
    refuse 2 't.00000.journal: begun with k 10, now it is 9; --force' "${arguments[@]}" --resume --k 9
    refuse 2 'begun with exclude-self off, now it is on' "${arguments[@]}" --resume --exclude-self
    refuse 2 'begun with number of rows [0-9]+, now it is 900' "${arguments[@]}" --resume --rows 0:900
    refuse 2 'resume: --device cuda keeps no journal' "${arguments[@]}" --resume --device cuda
    if ((has_mpi)); then
        got=0
        "$run" -n 2 -- "${arguments[@]}" --resume >/dev/null 2>stderr || got=$?
        verdict "other ranks: exit code $got" test $got = 2
        verdict "other ranks: $(cat stderr)" grep -q 'begun with ranks 1, now it is 2; --force' stderr
    fi
    cp q.fbin kept.fbin && printf '\1\1' | dd of=q.fbin bs=1 seek=20 conv=notrunc status=none
    refuse 2 't.00000.journal: begun with queries [0-9a-f]{16}, now it is' "${arguments[@]}" --resume
    mv kept.fbin q.fbin
    verdict "what was refused left the lists alone" cmp t.00000.lists before.lists
    verdict "what was refused left the journal alone" cmp t.00000.journal before.journal
    cp t.00000.lists v.00000.lists && cp t.00000.journal v.00000.journal
    ended=$(recorded groundtruth v)
    job groundtruth v
    verdict "resume of a ground truth" "$program" "${arguments[@]}" --resume --json
    resumed=$(grep -oE '"resumed_rows": [0-9]+' verdict.out || true)
    verdict "resume of a ground truth: $resumed, not $ended" test "$resumed" = "\"resumed_rows\": $ended"
    verdict "resume of a ground truth: nothing was recorded" test "$ended" -gt 0
    verdict "resume of a ground truth: the same bytes" same groundtruth v
    # A journal of a rank that this run does not have.
    cp t.00000.journal u.00002.journal
    job groundtruth u
    refuse 2 'u.00002.journal: left by a run' "${arguments[@]}"
    verdict "--force takes all ranks' journals" "$program" "${arguments[@]}" --force
    verdict "--force takes all ranks' journals: the same bytes" same groundtruth u
    # Lists that are not as recorded are made again, whichever slot counts.
    job groundtruth t
    for ((offset = 10000; offset < $(stat -c %s t.00000.lists); offset += 10000)); do
        printf 'XX' | dd of=t.00000.lists bs=1 seek=$offset conv=notrunc status=none
    done
    verdict "resume over changed lists" "$program" "${arguments[@]}" --resume --json
    resumed=$(grep -oE '"resumed_rows": [0-9]+' verdict.out || true)
    verdict "resume over changed lists: $resumed" test "$resumed" = '"resumed_rows": 0'
    verdict "resume over changed lists: the same bytes" same groundtruth t
else
    complain "no unfinished ground truth"
fi

# Commands without a journal clean up.
for signal in TERM INT USR1; do
    env --default-signal=INT "$program" synth --count 40M --dims 64 --out big.fbin --quiet 2>stderr &
    pid=$!
    until compgen -G 'big.fbin.tmp.*' >/dev/null; do
        sleep 0.01
        kill -0 $pid 2>/dev/null || break
    done
    kill -$signal $pid
    got=0
    wait $pid || got=$?
    verdict "synth, $signal: exit code $got" test $got = 75
    verdict "synth, $signal: temporary file" test -z "$(find . -name 'big.fbin*')"
done

finish
