# SPDX-License-Identifier: Apache-2.0
# Sourced by check_errors.sh: how a case is run and judged, and the files and indexes that cases ask for.
#
# Functions are called through `start`, which shellcheck does not see.
# shellcheck shell=bash disable=SC2317,SC2154,SC2034

# ---- jobs ----------------------------------------------------------------------------------------

# start FUNCTION ARGUMENTS: in the background, with a folder $job and an output folder $out.
start() {
    next_job "$pool"
    out=$job/out
    mkdir "$out"
    run_job "$@" &
}

section() {
    wait
    echo "$1 [$SECONDS s]"
}

# snapshot FOLDER: what is in it; most are empty, which no process is started for.
snapshot() {
    if compgen -G "$1/*" >/dev/null || compgen -G "$1/.[!.]*" >/dev/null; then
        (cd "$1" && find . | sort && find . -type f -exec cksum {} + | sort)
    fi
}

find_ranks "$ranks"
has_mpi=$((ranks_axis[-1] == ranks))

# A program that, as the last rank, gets $BAD where the others get $GOOD; it notes each rank's
# process in $PIDS.
cat >"$folder/other_view" <<'WRAPPER'
#!/usr/bin/env bash
set -euo pipefail
rank=${OMPI_COMM_WORLD_RANK:-0}
arguments=("$@")
if ((rank + 1 == ${OMPI_COMM_WORLD_SIZE:-1})); then
    for i in "${!arguments[@]}"; do
        [[ ${arguments[i]} != "${GOOD:-}" ]] || arguments[i]=$BAD
    done
fi
[[ -z ${PIDS:-} ]] || echo $$ >"$PIDS/$rank"
exec "$PROGRAM" "${arguments[@]}"
WRAPPER
chmod +x "$folder/other_view"
export PROGRAM=$program

# ---- one case ------------------------------------------------------------------------------------

# judge WHAT CODE PATTERN GOT SECONDS: of the output in $job/stdout and $job/stderr, and what is left
# in $out, which was as in $job/before.
judge() {
    local what=$1 code=$2 pattern=$3 got=$4 seconds=$5 lines said=() line
    snapshot "$out" >"$job/after"
    mapfile -t lines <"$job/stderr"
    # mpirun itself sometimes says so when a rank ends: libevent, of a pipe that is closed already.
    for line in "${lines[@]}"; do [[ $line == "[warn] Epoll "* ]] || said+=("$line"); done
    if ((got != code)); then
        complain "$what: exit code $got instead of $code" "$job/stderr"
    elif ((${#said[@]} != 1)) || [[ ! ${said[0]} =~ ^bitsweep:\ .*($pattern) ]]; then
        complain "$what: stderr is not one line like '$pattern'" "$job/stderr"
    elif [[ -s $job/stdout ]]; then
        complain "$what: wrote to stdout" "$job/stdout"
    elif ((seconds > most_seconds)); then
        complain "$what: took $seconds s"
    elif ! diff "$job/before" "$job/after" >"$job/diff"; then
        complain "$what: left something behind" "$job/diff"
    else
        pass
    fi
}

# run_case RANKS CODE PATTERN ARGUMENTS: OUT at the beginning of an argument is the output folder.
# $prepare, if set, fills it before.
run_case() {
    local num_ranks=$1 code=$2 pattern=$3 got=0 begin=$SECONDS arguments
    shift 3
    arguments=("${@/#OUT/$out}")
    [[ -z ${prepare:-} ]] || "$prepare"
    snapshot "$out" >"$job/before"
    local command=("$program")
    ((num_ranks == 1)) || command=("$run" -n "$num_ranks" --)
    BITSWEEP=${binary:-$program} timeout 20 "${command[@]}" "${arguments[@]}" >"$job/stdout" 2>"$job/stderr" || got=$?
    judge "$num_ranks ranks: $*${GOOD:+ (rank $((ranks - 1)): $BAD)}" "$code" "$pattern" "$got" \
        $((SECONDS - begin))
}

# run_alone CODE PATTERN: without any argument, which run.sh would not pass on.
run_alone() {
    local got=0
    snapshot "$out" >"$job/before"
    "$program" >"$job/stdout" 2>"$job/stderr" || got=$?
    judge "no argument" "$1" "$2" "$got" 0
}

# expect CODE PATTERN ARGUMENTS: alone, and by turns on several ranks.
expect() {
    start run_case 1 "$@"
    num_expected=$((num_expected + 1))
    if ((has_mpi)) && { [[ -n ${FULL:-} ]] || ((num_expected % every == 0)); }; then
        start run_case "$ranks" "$@"
    fi
}

# expect_last GOOD BAD CODE PATTERN ARGUMENTS: the last rank sees BAD in place of GOOD. Where `turn` is set two calls
# with the same files take turns.
expect_last() {
    ((has_mpi)) || return 0
    if [[ ${turn:-} && -z ${FULL:-} ]]; then
        turn=$((turn + 1))
        ((turn / 2 % 2)) || return 0
    fi
    GOOD=$1 BAD=$2 binary=$folder/other_view start run_case "$ranks" "${@:3}"
}

# succeed WHAT COMMAND: runs now.
succeed() {
    local what=$1
    shift
    if "$@" >"$folder/stdout" 2>"$folder/stderr"; then pass; else complain "$what" "$folder/stderr"; fi
}

# ---- data ----------------------------------------------------------------------------------------

bitsweep() {
    "$program" "$@" --quiet
}

make_files() {
    local i
    bitsweep synth --count 300 --dims 16 --out "$in/base.fbin" --queries 7 --queries-out "$in/q.fbin"
    bitsweep synth --count 300 --dims 16 --type uint8 --out "$in/base.u8bin" --queries 7 \
        --queries-out "$in/q.u8bin"
    bitsweep synth --count 300 --dims 16 --seed 2 --out "$in/other.fbin"
    bitsweep synth --count 290 --dims 16 --seed 2 --out "$in/fewer.fbin"
    bitsweep synth --count 7 --dims 17 --out "$in/wide.fbin"
    : >"$in/empty.fbin"
    head -c 5 "$in/base.fbin" >"$in/head.fbin"
    head -c 19000 "$in/base.fbin" >"$in/short.fbin"
    cp "$in/base.fbin" "$in/long.fbin" && printf x >>"$in/long.fbin"
    cp "$in/base.u8bin" "$in/bytes.fbin"
    cp "$in/base.fbin" "$in/floats.u8bin"
    cp "$in/base.fbin" "$in/text.npy"
    cp "$in/base.fbin" "$in/base.dat"
    printf '\2\0\0\0\1\0\0\0\5\0\0\0' >"$in/ids.ivecs"
    printf '\0\0\0\0\20\0\0\0' >"$in/norows.fbin"
    printf '\377\377\377\377\377\377\377\377' >"$in/huge.fbin"
    # 12 rows of 16 dims, the second says 15
    for ((i = 0; i < 12; i++)); do printf '\20\0\0\0' && head -c 64 "$in/base.fbin"; done >"$in/ragged.fvecs"
    put "$in/ragged.fvecs" 68 '\17'
    mkdir "$in/folder.fbin"
    mkfifo "$in/fifo.fbin"
}

# row 290 of a base, which the last of three ranks has, and row 3 of the queries
make_bad_rows() {
    local offset=$((8 + 290 * 64 + 12))
    for name in nan inf zero; do
        cp "$in/base.fbin" "$in/$name.fbin"
        cp "$in/q.fbin" "$in/q-$name.fbin"
    done
    put "$in/nan.fbin" $offset '\0\0\300\177'
    put "$in/inf.fbin" $offset '\0\0\200\377'
    put "$in/q-nan.fbin" $((8 + 3 * 64)) '\0\0\300\177'
    put "$in/q-inf.fbin" $((8 + 3 * 64)) '\0\0\200\177'
    # Zeros, but for a half in row 3 and a NaN in row 5.
    { printf '\7\0\0\0\20\0\0\0' && head -c 448 /dev/zero; } >"$in/q-half.fbin"
    put "$in/q-half.fbin" $((8 + 3 * 64 + 8)) '\0\0\0\77'
    put "$in/q-half.fbin" $((8 + 5 * 64)) '\0\0\300\177'
    dd if=/dev/zero of="$in/zero.fbin" bs=1 seek=$((8 + 290 * 64)) count=64 conv=notrunc status=none
    dd if=/dev/zero of="$in/q-zero.fbin" bs=1 seek=$((8 + 3 * 64)) count=64 conv=notrunc status=none
}

# Three shards, so that the last of three ranks has the last one to itself.
make_indexes() {
    bitsweep encode --base "$in/base.fbin" --metric l2 --shards 3 --index "$index/good"
    bitsweep encode --base "$in/base.fbin" --metric l2 --shards 3 --seed 2 --index "$index/seed"
    bitsweep encode --base "$in/other.fbin" --metric l2 --shards 3 --index "$index/source"
    bitsweep encode --base "$in/base.fbin" --metric l2 --shards 2 --index "$index/two"
    bitsweep encode --base "$in/base.fbin" --metric l2 --shards 3 --copy-vectors --index "$index/copied"
    bitsweep encode --base "$in/base.fbin" --codec xfbq --shards 3 --index "$index/xfbq"
    bitsweep encode --base "$in/base.u8bin" --metric l2 --shards 3 --index "$index/bytes"
    bitsweep encode --base "$in/base.u8bin" --codec raw --metric l2 --shards 3 --index "$index/raw"
    cp -r "$index/raw" "$index/rawcodes"
    flip "$index/rawcodes/shard-00002-of-00003.codes" 5000
    cp "$in/base.u8bin" "$in/base.i8bin"
    bitsweep encode --base "$in/base.i8bin" --codec raw --metric ip --shards 3 --index "$index/rawsigned"
    local last=shard-00002-of-00003 name
    for name in manifest codes footer header swapped missing longer emptied nomanifest; do
        cp -r "$index/good" "$index/$name"
    done
    flip "$index/manifest/manifest.pb" 40
    flip "$index/codes/$last.codes" 5000
    flip "$index/footer/$last.codes" -12
    flip "$index/header/$last.codes" 30
    cp "$index/seed/$last.codes" "$index/swapped/$last.codes"
    rm "$index/missing/$last.codes"
    printf x >>"$index/longer/$last.codes"
    : >"$index/emptied/manifest.pb"
    rm "$index/nomanifest/manifest.pb"
    cp -r "$index/copied" "$index/vectors"
    flip "$index/vectors/$last.vectors" -100
    cp -r "$index/copied" "$index/novectors"
    rm "$index/novectors/$last.vectors"
    # Indexes whose source changed: theirs is one folder up, as they name it.
    for name in row size cut gone; do
        mkdir "$folder/$name" "$folder/$name/in"
        cp -r "$index" "$folder/$name/index"
        cp "$in/base.fbin" "$folder/$name/in/base.fbin"
    done
    flip "$folder/row/in/base.fbin" $((8 + 290 * 64 + 9))
    cp "$in/fewer.fbin" "$folder/size/in/base.fbin"
    head -c -64 "$in/base.fbin" >"$folder/cut/in/base.fbin"
    rm "$folder/gone/in/base.fbin"
}
