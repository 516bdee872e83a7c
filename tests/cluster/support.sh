# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what is set here is for the scripts; they set `asked`
# The head of the shell tests, which source it right after `set`; their arguments are BITSWEEP_BINARY
# and SOURCE_FOLDER. It sets
#   program, run      BITSWEEP_BINARY, which run.sh starts too unless told otherwise, and deploy/run.sh
#   emulated          the program with emulated devices; may not be built
#   base, queries     20,000 rows and 200 queries
#   folder            for files of the test, removed at the end when no job writes there any more
#   verdicts          a file with a line for each check, "ok" or "FAILED: ...", also of jobs in the background;
#                     the last line of a script, finish, counts them

program=$(realpath -s "$1")
run=$2/deploy/run.sh
emulated=$(dirname "$program")/tests/bitsweep_emulated
base=$2/tests/data/sift20k_base.u8bin
queries=$2/tests/data/sift20k_query.u8bin
folder=$(mktemp -d)
trap 'wait; rm -rf "$folder"' EXIT
verdicts=$folder/verdicts
: >"$verdicts"

export BITSWEEP=$program
BITSWEEP_RUN=$(dirname "$program")/bitsweep-run # also where a test wraps the program
export BITSWEEP_RUN
# More threads than cores: a thread that waits must not keep the one it waits for from running.
export OMP_WAIT_POLICY=passive
# Tests run side by side. Several mpirun in one folder for temporary files sometimes remove each
# other's, and each would think that all of /dev/shm is its own.
export TMPDIR=$folder OMPI_MCA_btl_vader_backing_directory=$folder

# pass [WHAT]
pass() {
    local what
    echo ok >>"$verdicts"
    for what; do echo "ok: $what"; done
}

# complain WHAT [FILE]: with what FILE says, or the last stderr.
complain() {
    local file=${2:-$folder/stderr}
    echo "FAILED: $1" | tee -a "$verdicts" >&2
    if [[ -s $file ]]; then head -n 60 "$file" >&2; fi
}

# fail WHAT [FILE]: the same.
fail() {
    complain "$@"
}

# finish: the exit code is 1 after a failure, 77 where several ranks were left out.
finish() {
    local num_failed
    num_failed=$(grep -c '^FAILED' "$verdicts" || true)
    echo "$(grep -c '^ok$' "$verdicts" || true) passed, $num_failed failed [$SECONDS s]"
    ((num_failed == 0)) || exit 1
    ((${has_mpi:-1})) || exit 77
}

# check WHAT COMMAND: passes if it succeeds and prints nothing on stderr but how far a sweep is, which a log
# has every ten seconds.
check() {
    local what=$1
    shift
    if "$@" >"$folder/stdout" 2>"$folder/stderr" && ! grep -qvE '^point [0-9]+ of [0-9]+, ' "$folder/stderr"; then
        pass
    else
        complain "$what"
        head -n 20 "$folder/stdout" >&2
    fi
}

# refused CODE PATTERN COMMAND...: it ends with that exit code, and says one line like the pattern.
refused() {
    local code=$1 pattern=$2 got=0
    shift 2
    "$@" >"$folder/stdout" 2>"$folder/stderr" || got=$?
    if ((got == code)) && (($(wc -l <"$folder/stderr") == 1)) && grep -qE -e "$pattern" "$folder/stderr"; then
        pass
    else
        complain "$*: exit code $got, not $code, or not one line like '$pattern'"
    fi
}

# same_bytes NAME NAME [WHAT]: files in $folder.
same_bytes() {
    if cmp -s "$folder/$1" "$folder/$2"; then pass; else complain "${3:-$1 and $2}: other bytes" /dev/null; fi
}

# use_device [cuda]: kind is where `same` searches: GPU 0 with the program itself, or an emulated device.
use_device() {
    kind=${1:-emulated}
    if [[ $kind == cuda ]]; then emulated=$program; fi
    needs "$emulated"
}

# make_gpu_lists_tuning: $gpu_lists, a file for BITSWEEP_TUNING by which devices choose lists and make work items.
make_gpu_lists_tuning() {
    local row
    gpu_lists=$folder/gpu_lists
    for row in 8.0 8.6 9.0 10.0 10.3 11.0 12.0; do echo "device $row gpu_lists=on"; done >"$gpu_lists"
}

# needs_emulator WHAT: 0, and WHAT counts as skipped, where there are switches of the emulator but
# none is there to see them.
skipped=0
needs_emulator() {
    [[ $kind != emulated && -n "${!BITSWEEP_EMULATOR_@}" ]] || return 1
    skipped=$((skipped + 1))
    echo "skipped, needs the emulator (${!BITSWEEP_EMULATOR_@}): $1"
}

# search_cpu NAME OPTIONS: what `same` is to find, by the CPU and the index $folder/NAME.1; $folder/said has its
# --json. $asked are options of all searches of a script: the queries.
search_cpu() {
    local name=$1
    shift
    check "cpu, $name $*" "$program" search --index "$folder/$name.1" "${asked[@]}" --quiet --device cpu \
        --out "$folder/expected" --force --json "$@"
    cp "$folder/stdout" "$folder/said"
}

# device_finds WHAT RANKS DEVICE ARGUMENTS: on it the program writes the bytes of $folder/expected, and says that it was
# there. $folder/json is what it says.
device_finds() {
    local what=$1 ranks=$2 on=$3
    shift 3
    if ! BITSWEEP=$emulated "$run" -n "$ranks" "$@" --quiet --json --device "$on" --force \
        --out "$folder/found" >"$folder/json" 2>"$folder/stderr" || [[ -s $folder/stderr ]]; then
        complain "$what"
    elif ! cmp -s "$folder/expected" "$folder/found"; then
        complain "$what: other bytes"
    elif ! grep -q "^  \"device\": \"$kind\"" "$folder/json"; then
        complain "$what: not on the device"
    else
        pass
    fi
}

# same NAME RANKS SHARDS OPTIONS: the bytes of search_cpu from $folder/NAME.SHARDS on a device: $device, or one of
# $kind.
same() {
    local name=$1 ranks=$2 shards=$3 what
    shift 3
    what="$name, $ranks ranks, $shards shards, $*"
    if needs_emulator "$what"; then return; fi
    device_finds "$what" "$ranks" "${device:-$(device_for "$ranks")}" search --index "$folder/$name.$shards" \
        "${asked[@]}" "$@"
}

# sum_of NAME: the sum of a number over the ranks of $folder/json.
sum_of() {
    sed -n "s/^ *\"$1\": \([0-9]*\),\{0,1\}\$/\1/p" "$folder/json" | awk '{sum += $1} END {print sum + 0}'
}

# json_says FILE FACT...: whether the JSON there has them at its outer level. No process is started, as this is
# asked after every search.
json_says() {
    local IFS=$'\n' lines text fact
    mapfile -t lines <"$1"
    shift
    text=$'\n'"${lines[*]}"$'\n'
    for fact; do
        [[ $text == *$'\n  '"$fact"$'\n'* || $text == *$'\n  '"$fact",$'\n'* ]] || return 1
    done
}

# on RANKS COMMAND
on() {
    local ranks=$1
    shift
    if ((ranks == 1)); then "$program" "$@"; else "$run" -n "$ranks" "$@"; fi
}

# shown_in PAGE HEADING: the lines of a section that stand indented by four blanks, blocks apart by an empty line.
# Without heading what stands before the first one.
shown_in() {
    awk -v heading="${2:-}" '
        /^## / {section = substr($0, 4)}
        section != heading {next}
        /^    / {print substr($0, 5); on = 1; next}
        on {print ""; on = 0}' "$1"
}

# stand_in FILE LINES: a script.
stand_in() {
    mkdir -p "$(dirname "$1")"
    printf '#!/bin/sh\n%s\n' "$2" >"$1"
    chmod +x "$1"
}

# needs PROGRAM...: without one of them the test is skipped.
needs() {
    local file
    for file; do
        [[ -e $file ]] || { echo "$file is not built" && exit 77; }
    done
}

# device_for RANKS: what --device says for so many ranks on devices of `kind`. A host may have one GPU only, which
# ranks share when they are told so.
device_for() {
    if [[ $kind == cuda ]] && (($1 > 1)); then echo cuda:0; else echo "$kind"; fi
}

# find_python: python is one that has NumPy; without one the test is skipped.
find_python() {
    local candidate
    for candidate in python3 /usr/bin/python3; do
        if "$candidate" -c 'import sys, numpy; assert sys.version_info >= (3, 9)' 2>/dev/null; then
            python=$candidate
            return
        fi
    done
    echo "no python3 with numpy here; in Debian it is the package python3-numpy" && exit 77
}

# find_ranks COUNT...: ranks_axis is 1 and, where several ranks can be started, those counts that
# BITSWEEP_MAX_RANKS allows. has_mpi says whether they can.
find_ranks() {
    local ranks
    ranks_axis=(1) has_mpi=0
    if ! command -v mpirun >/dev/null || ! "$run" -n 2 -- --version >/dev/null 2>&1; then
        echo "mpirun is missing or this build has no MPI: one rank only, several ranks are skipped"
        return
    fi
    has_mpi=1
    for ranks; do
        ((ranks > ${BITSWEEP_MAX_RANKS:-ranks})) || ranks_axis+=("$ranks")
    done
}

# find_levels: levels are those of kernels that this CPU has.
find_levels() {
    local level built
    levels=(reference)
    built=$("$program" info --help all | grep -oE 'auto\|reference[a-z0-9|]*')
    for level in $(tr '|' ' ' <<<"${built#auto|reference}"); do
        ! "$program" info synth:count=1,dims=1 --level "$level" >/dev/null 2>&1 || levels+=("$level")
    done
}

# next_job POOL: waits until fewer jobs than that run, and makes the folder $job for one more.
num_jobs=0
: >"$folder/ended"
next_job() {
    local running
    while jobs -rp >"$folder/running" && mapfile -t running <"$folder/running" && ((${#running[@]} >= $1)); do
        wait -n || true
    done
    num_jobs=$((num_jobs + 1))
    job=$folder/$num_jobs
    mkdir "$job"
}

# run_job FUNCTION ARGUMENTS: for the background. Its folder also is the one for temporary files: several
# mpirun in one sometimes remove each other's.
run_job() {
    TMPDIR=$folder/$num_jobs "$@" </dev/null
    echo >>"$folder/ended"
}

# finish_all_jobs: waits; fails if bash left one of them half-way, which then has said nothing.
finish_all_jobs() {
    wait
    [[ $(wc -l <"$folder/ended") == "$num_jobs" ]]
}

# put FILE OFFSET BYTES: as printf has them.
put() {
    # shellcheck disable=SC2059
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# add_to_ids FILE COUNT NUMBER: to the first COUNT ids of a result or ground truth of 32-bit ids.
add_to_ids() {
    local id ids bytes=
    ids=$(od -An -v -td4 -w4 -j 8 -N $((4 * $2)) "$1")
    for id in $ids; do
        id=$((id + $3))
        bytes+=$(printf '\\x%02x' $((id & 255)) $((id >> 8 & 255)) $((id >> 16 & 255)) $((id >> 24 & 255)))
    done
    put "$1" 8 "$bytes"
}

# flip FILE OFFSET: the lowest bit of a byte; a negative offset counts from the end.
flip() {
    local offset=$2 byte
    ((offset >= 0)) || offset=$(($(wc -c <"$1") + offset))
    byte=$(od -An -tu1 -j "$offset" -N 1 "$1")
    put "$1" "$offset" "\\x$(printf %x $((byte ^ 1)))"
}
