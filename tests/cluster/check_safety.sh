#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nothing is lost: an output that is an input is refused by every command that writes, by whatever name;
# of two encodes into one folder one is refused at once, and the other is not harmed; an input that becomes
# shorter while it is read ends the run with one line, exit code 65 and no retry.
# usage: check_safety.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
cd "$folder"
find_ranks 2

# refused CODE PATTERN COMMAND...: one line on stderr, and every file is as it was.
refused() {
    local code=$1 pattern=$2 got=0
    shift 2
    find . -path ./said -prune -o -type f -exec cksum {} + | sort >said/before
    "$@" >said/out 2>said/err || got=$?
    sed -i '/^\[warn\] Epoll /d' said/err # mpirun's, when a rank ends
    find . -path ./said -prune -o -type f -exec cksum {} + | sort >said/after
    if [[ $got != "$code" || $(wc -l <said/err) != 1 ]] || ! grep -qE "$pattern" said/err; then
        fail "$*: exit code $got instead of $code, or not one line like '$pattern'" said/err
    elif ! cmp -s said/before said/after; then
        fail "$*: changed a file" <(diff said/before said/after)
    else
        pass
    fi
}

# never INPUT PATTERN COMMAND...: @ stands for the output, which is INPUT, a symbolic and a hard link to it,
# with the ending that $ending says.
never() {
    local input=$1 pattern=$2 name
    shift 2
    ln -sf "$(realpath "$input")" "soft$ending"
    ln -f "$input" "hard$ending"
    for name in "$input" "soft$ending" "hard$ending"; do
        [[ $name == *"$ending" ]] || continue
        refused 2 "$pattern" "${@//@/$name}" --force
    done
    refused 2 "$pattern" "${@//@/$name}"
    rm "soft$ending" "hard$ending"
}

# ---- outputs that are inputs ---------------------------------------------------------------------

mkdir said
"$program" synth --count 3000 --dims 16 --out base.fbin --queries 50 --queries-out q.fbin --quiet
"$program" synth --count 3000 --dims 16 --type uint8 --out base.u8bin --quiet
"$program" encode --base base.fbin --metric l2 --shards 2 --index idx --quiet
"$program" encode --base base.fbin --metric l2 --shards 2 --copy-vectors --index copied --quiet
"$program" encode --base base.fbin --metric l2 --shards 2 --lists 8 --index listed --quiet
"$program" groundtruth --base base.fbin --queries q.fbin --metric l2 --out truth --split --quiet
printf 'codec=saq bits=2\n' >plan
train=("$program" train --base base.fbin --metric cosine --code-dims 8 --epochs 1 --quiet)
"${train[@]}" --model model
"$program" encode --base base.fbin --codec rbe --model model --index learned --quiet

ending=
same='same file as|is an input|is part of|is the raw rows'
search=("$program" search --index idx --queries q.fbin --k 5 --quiet)
never q.fbin "$same" "${search[@]}" --out @
never base.fbin "$same" "${search[@]}" --out @
never idx/manifest.pb "$same" "${search[@]}" --out @
never idx/shard-00001-of-00002.codes "$same" "${search[@]}" --out @
never copied/shard-00000-of-00002.vectors "$same" "${search[@]/#idx/copied}" --out @
never listed/shard-00001-of-00002.lists "$same" "${search[@]/#idx/listed}" --out @
# What an encode of another index leaves there to be resumed.
for name in encode.plan encode.lists encode.table encode-00000.journal shard-00000-of-00003.codes.tmp; do
    printf x >listed/$name
    never listed/$name "$same" "${search[@]/#idx/listed}" --out @
    rm listed/$name
done
never learned/model.rbe "$same" "${search[@]/#idx/learned}" --out @
ending=.partial never base.fbin "$same" "${search[@]}" --out soft
ending=.json never q.fbin "$same" "${search[@]}" --out hard
never base.fbin "$same" "${search[@]}" --out @ --resume
"$program" search --index copied --queries q.fbin --k 5 --out base.copy --quiet
cp base.fbin source.fbin # what an index has copied is no longer read
"$program" encode --base source.fbin --metric l2 --copy-vectors --index own --quiet
check "the source of an index that has a copy" "$program" search --index own --queries q.fbin --k 5 \
    --out source.fbin --force --quiet
rm -r base.copy* source.fbin* own*

truth=("$program" groundtruth --base base.fbin --queries q.fbin --metric l2 --quiet)
never base.fbin "$same" "${truth[@]}" --out @
never q.fbin "$same" "${truth[@]}" --out @
ending=.neighbors.ibin never base.fbin "$same" "${truth[@]}" --split --out hard
ending=.distances.fbin never q.fbin "$same" "${truth[@]}" --split --out soft

ending=.fbin never base.fbin "$same" "$program" convert --in base.fbin --quiet --out @
ending=.u8bin never base.u8bin "$same" "$program" convert --in base.u8bin --quiet --out @
never truth "$same" "$program" convert --in truth --quiet --out @
never truth.json "$same" "$program" convert --in truth --quiet --out @
ending=.ibin never truth.neighbors.ibin "$same" "$program" convert --in truth.neighbors.ibin --quiet --out @
never truth.distances.fbin "$same" "$program" convert --in truth.neighbors.ibin --quiet --out @
ending=.distances.fbin never truth "$same" "$program" convert --in truth --quiet --out soft.neighbors.ibin

refused 2 'are the same file: name two' "$program" synth --count 9 --dims 4 --out n.fbin --queries-out ./n.fbin
ln -s q.fbin link.fbin
refused 2 'are the same file: name two' "$program" synth --count 9 --dims 4 --out q.fbin \
    --queries-out link.fbin --force
rm link.fbin

never base.fbin "$same" "${train[@]}" --model @
never base.fbin "$same" "${train[@]}" --model other --checkpoint @
ending=.svg never base.fbin "$same" "${train[@]}" --model other --plot hard.svg
ending=.tsv never base.fbin "$same" "${train[@]}" --model other --plot soft.svg
never truth "$same" "$program" train --base base.fbin --metric l2 --queries q.fbin --groundtruth truth --model @
refused 2 'are the same file: name two' "${train[@]}" --model new --checkpoint new

sweep=("$program" sweep --base base.fbin --queries q.fbin --metric l2 --bits 2 --folder swept --quiet)
mkdir swept
for name in sweep.csv sweep.journal sweep.gnuplot sweep-pareto.svg report.html step.out step.result.partial groundtruth \
    groundtruth.partial; do
    ln -s ../base.fbin swept/$name
    refused 2 "$name: is the same file as base.fbin" "${sweep[@]}" --force
    rm swept/$name
done
ln plan swept/sweep.json
refused 2 'sweep.json: is the same file as plan' "${sweep[@]}" --plan plan --force
rm -r swept
cp plan swept.json
refused 2 'swept.json: is the same file as swept.json' "${sweep[@]}" --plan swept.json --force
: >swept.json # as `--json >swept.json` begins
refused 2 'swept.json: is empty' "${sweep[@]}" --force
mv swept.json out.json
refused 2 'out.json: is empty' "${search[@]}" --out out
mv out.json new.json

encode=("$program" encode --base base.fbin --metric l2 --quiet)
refused 2 'new.json: is empty' "${encode[@]}" --index new/
rm new.json
refused 2 'idx.*: is an input' "${encode[@]}" --model idx --index idx --force
ln -s idx link
refused 2 'link.*: is the same file as idx' "${encode[@]}" --model idx --index link --force
rm link
refused 2 'learned/model.rbe: is an input' "$program" encode --base base.fbin --codec rbe --model learned/model.rbe \
    --index learned --force
mkdir made
for name in shard-00000-of-00001.codes shard-00000-of-00001.codes.tmp shard-00003-of-00007.vectors model.rbe \
    encode.plan encode.lists encode.table encode-00000.journal; do
    ln base.fbin made/$name
    refused 2 "made/$name: is the same file as base.fbin" "${encode[@]}" --index made --force
    rm made/$name
done
mv base.fbin made/rows.fbin # but one of a name of its own may lie there
check "a base in the folder of its index" "$program" encode --base made/rows.fbin --metric l2 --index made --quiet
mv made/rows.fbin base.fbin
rm -r made*

# Shard files without a manifest go with --force alone, be they of an index or somebody's own.
mkdir orphans
for name in shard-00003-of-00007.vectors shard-00000-of-00001.codes shard-00000-of-00001.lists; do
    printf x >orphans/$name
    refused 2 "orphans: has files of an index without a manifest, such as $name; --force" "${encode[@]}" \
        --index orphans
    refused 2 "orphans: has files of an index without a manifest, such as $name; --force" "${encode[@]}" \
        --index orphans --resume
    [[ $name == *.lists ]] || rm orphans/$name
done
check "files without a manifest, --force" "${encode[@]}" --index orphans --force
check "they are gone" test ! -e orphans/shard-00000-of-00001.lists
rm -r orphans*

if ((has_mpi)); then
    refused 2 "$same" on 2 "${search[@]:1}" --out base.fbin --force
    refused 2 "$same" on 2 "${truth[@]:1}" --out q.fbin --force
    refused 2 'idx.*: is an input' on 2 "${encode[@]:1}" --model idx --index idx --force
fi
echo "outputs that are inputs [$SECONDS s]"

# ---- two encodes at once -------------------------------------------------------------------------

"$program" synth --count 100K --dims 256 --type uint8 --out large.u8bin --quiet
encode=(encode --base large.u8bin --metric l2 --bits 6.5 --axes random --threads 1 --quiet)
"$program" "${encode[@]}" --index whole

# await TEST...: until it succeeds or process $pid is gone.
await() {
    until "$@" 2>/dev/null || ! kill -0 "$pid" 2>/dev/null; do sleep 0.01; done
}

is_there() { # PATTERN
    compgen -G "$1" >/dev/null
}

# The files of index $1 are those of an undisturbed run, and no others are there.
is_whole() {
    diff -r "$1" whole && "$program" verify "$1" --quiet >/dev/null
}

# A program that notes the process of each rank.
cat >said/noted <<'WRAPPER'
#!/usr/bin/env bash
echo $$ >"said/process.${OMPI_COMM_WORLD_RANK:-0}"
exec "$PROGRAM" "$@"
WRAPPER
chmod +x said/noted

# busy RANKS: while one run encodes, others are refused at once, and it comes to its end. It is paused so that
# it does not do so before.
busy() {
    local ranks=$1 option others begin got=0 took
    BITSWEEP=$folder/said/noted PROGRAM=$program "$run" -n "$ranks" "${encode[@]}" --heartbeat 100 --index busy &
    pid=$!
    await is_there busy/encode.plan
    kill -STOP "$(cat said/process.0)"
    for option in --seed=2 --force --resume; do
        for others in 1 "$ranks"; do
            begin=${EPOCHREALTIME/./}
            got=0
            on "$others" "${encode[@]}" --index busy $option >said/out 2>said/err || got=$?
            took=$(((${EPOCHREALTIME/./} - begin) / 1000))
            if ((got == 2 && took < 9000)) && [[ $(wc -l <said/err) == 1 ]] && grep -q ' busy: another run is writing it' said/err; then
                pass
            else
                fail "$others ranks with $option beside another encode: exit code $got after $took ms" said/err
            fi
            if ((ranks == 1)) || [[ $option != --force ]]; then break; fi
        done
    done
    kill -CONT "$(cat said/process.0)"
    got=0
    wait $pid || got=$?
    check "$ranks ranks, an encode that others stood beside: $got" is_whole busy
    rm -r busy busy.json
}

# race RANKS: of two that start together one makes the index.
race() {
    local ranks=$1 got=0 others=0
    on "$ranks" "${encode[@]}" --index race 2>said/err &
    pid=$!
    on "$ranks" "${encode[@]}" --index race 2>said/other || others=$?
    wait $pid || got=$?
    if [[ $got,$others == 0,2 || $got,$others == 2,0 ]]; then
        pass
    else
        fail "$ranks ranks, two at once: exit codes $got and $others" <(cat said/err said/other)
    fi
    check "$ranks ranks, two at once" is_whole race
    rm -r race race.json
}

for ranks in "${ranks_axis[@]}"; do
    busy "$ranks"
    race "$ranks"
done

# The lock goes with the process, whatever ends it; the file may stay until a run comes to its end.
for signal in KILL TERM; do
    BITSWEEP_JOURNAL_SECONDS=0 "$program" "${encode[@]}" --index killed 2>said/err &
    pid=$!
    await is_there 'killed/encode-*.journal'
    kill -$signal $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    check "resumed after $signal" "$program" "${encode[@]}" --index killed --resume
    check "an index resumed after $signal" is_whole killed
    rm -r killed killed.json
done
echo "two encodes at once [$SECONDS s]"

# ---- inputs that become shorter ------------------------------------------------------------------

cp large.u8bin kept
"$program" synth --count 1 --dims 256 --type uint8 --out one.u8bin --queries 4000 --queries-out many.u8bin --quiet
"$program" encode --base large.u8bin --metric l2 --bits 2 --shards 2 --index cut --quiet

# Both shards' rows are mapped, by one process or two: each checks the size of the file before. The name is
# that of this test alone.
is_mapped() {
    (($(cat /proc/[0-9]*/maps | grep -c "$folder/large.u8bin") >= 2))
}

# shrink RANKS BYTES PATTERN AWAIT... -- COMMAND: the rows are cut once what AWAIT says has happened.
shrink() {
    local ranks=$1 bytes=$2 pattern=$3 awaited=() got=0
    shift 3
    while [[ $1 != -- ]]; do awaited+=("$1") && shift; done
    shift
    cp kept large.u8bin
    export BITSWEEP_STATUS=$folder/said/status
    rm -f said/status
    timeout 100 "$run" -n "$ranks" --retries 2 "$@" >said/out 2>said/err &
    pid=$!
    await "${awaited[@]}"
    truncate -s "$bytes" large.u8bin
    wait $pid || got=$?
    unset BITSWEEP_STATUS
    sed -i '/^\[warn\] Epoll /d' said/err
    if [[ $got != 65 || $(wc -l <said/err) != 1 ]] || ! grep -qE "^bitsweep: (rank [0-9]+: )?[^ ]*$pattern" said/err; then
        fail "$ranks ranks, $1, cut to $bytes: exit code $got, or not one line like '$pattern'" said/err
    elif ! grep -q '"exit_code": 65' said/status; then
        fail "$ranks ranks, $1, cut to $bytes: STATUS.json says otherwise" said/status
    else
        pass
    fi
    cp kept large.u8bin
}

bytes=$(stat -c %s large.u8bin)
for ranks in "${ranks_axis[@]}"; do
    search=(search --index cut --queries many.u8bin --k 10 --threads 1 --quiet --out found)
    shorter='large.u8bin: became shorter while it was read: '
    # Without a page, so that most reads fault; without one byte, which reads as 0.
    shrink "$ranks" 4096 "$shorter" is_mapped -- "${search[@]}" --batch 10 --repeat 1000
    shrink "$ranks" $((bytes - 1)) "$shorter" is_mapped -- "${search[@]}" --batch 10 --repeat 1000
    shrink "$ranks" 4096 'large.u8bin: truncated: ' is_there 'shorter/shard-*.tmp' -- \
        "${encode[@]}" --index shorter --copy-vectors
    rm -rf shorter*
    shrink "$ranks" 4096 'large.u8bin: truncated: ' is_there found.partial -- groundtruth --base large.u8bin \
        --queries many.u8bin --metric l2 --block-rows 500 --threads 1 --quiet --out found
    if is_there 'found*'; then fail "left behind: $(echo found*)"; fi

    # What was answered before stays, once the rows are back.
    "$program" "${search[@]}" --batch 10 && mv found expected && rm found.*
    BITSWEEP_JOURNAL_SECONDS=0 shrink "$ranks" 4096 "$shorter" is_there found.journal -- "${search[@]}" --batch 10
    check "$ranks ranks, resumed over rows that are back" on "$ranks" "${search[@]}" --batch 10 --resume
    check "$ranks ranks, resumed over rows that are back: the same bytes" cmp found expected
    rm -f found* expected
done
finish
