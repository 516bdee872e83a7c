#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Random questions asked in random ways. Ground truth, searches that refine all rows or some, and codec raw, against
# brute force; indexes and unrefined searches, against the same in another way. Rows of all kinds, types and shapes; 1 to
# 4 ranks, devices (emulated), runs stopped or killed and resumed.
# usage: check_fuzzed_searches.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# FUZZ_MINUTES: how long it draws cases (half a minute). FUZZ_SEED: the number of the first case (1), from which they count up. FUZZ_CASES:
# how many, instead. A number always is the same case, but for the moment at which a run is struck, where the same kernel
# levels, ranks and devices can be had. A case that fails prints its commands, for an empty folder, and how to repeat it:
#     FUZZ_SEED=123 FUZZ_CASES=1 tests/cluster/check_fuzzed_searches.sh build/release/bitsweep .
# With FUZZ_KEEP=FOLDER the files of the last case stay there, which must be empty.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
script=$(realpath "$0")
source_folder=$(realpath "$2")
tools=$(dirname "$program")/tests
run=$(realpath "$run")
needs "$tools/brute_force" "$tools/hostile_rows"
most_seconds=$((${FUZZ_MINUTES:-0} > 0 ? 60 * FUZZ_MINUTES : 30))
num_cases=${FUZZ_CASES:-}
number=${FUZZ_SEED:-1}
work=${FUZZ_KEEP:-$folder/cases}
mkdir -p "$work"
[[ -z $(ls -A "$work") ]] || { echo "FUZZ_KEEP=$work: is not empty" >&2 && exit 2; }
cd "$work"
find_levels
find_ranks 2 3 4
export BITSWEEP_JOURNAL_SECONDS=0.001 # else a short run has no journal to go on from

# What a case is: rows, queries, the question, the index.
kind="" rows=0 dims=0 asked=0 ending="" asked_ending="" asked_file="" metric="" part="" asked_part="" many=0 most=0 k=0
exclude=() corpus=() queries=() truth=() codec="" coding=() asking=() scans=() selection="" title=""

# ---- drawing -------------------------------------------------------------------------------------

# draw N: drawn is one of 0 .. N - 1. Knuth's MMIX generator, mixed, as it is linear in the number of the case.
draw() {
    local mixed
    state=$((state * 6364136223846793005 + 1442695040888963407))
    mixed=$(((state ^ (state >> 32 & 0xffffffff)) * 6364136223846793005))
    drawn=$(((mixed >> 33 & 0x7fffffff) % $1))
}

one_in() {
    draw "$1"
    ((drawn == 0))
}

# pick NAME VALUE...: one of them.
pick() {
    local -n picked=$1
    shift
    draw $#
    shift "$drawn"
    # shellcheck disable=SC2034 # is a name of the caller's
    picked=$1
}

# draw_part NAME COUNT: A:B, every other time all of 0:COUNT; B - A into many.
draw_part() {
    local -n drawn_part=$1
    local first=0
    many=$2
    if one_in 2; then
        draw "$2"
        first=$drawn
        draw $(($2 - first))
        many=$((drawn + 1))
    fi
    # shellcheck disable=SC2034
    drawn_part=$first:$((first + many))
}

# ---- running -------------------------------------------------------------------------------------

# blame WHAT: this case fails.
blame() {
    failed=$((failed + 1))
    {
        echo "FAILED: case $number: $1"
        echo "  $title"
        sed -e 's/^/  /' -e 15q stdout stderr
        echo "  again: FUZZ_SEED=$number FUZZ_CASES=1 $script $program $source_folder"
        echo "  by hand, in an empty folder:"
        sed 's/^/    /' commands
    } >&2
    return 1
}

# is_refused CODE: by a program that is right to, as codes can do nothing with such rows: those that lie too near to
# each other for float32, and too few axes for two stages. What follows in the case is left out.
is_refused() {
    case $1 in
    65) grep -q "which codes cannot keep" stderr ;;
    2) grep -q -- "--stage 32: the codes have bits of .* too few for two stages" stderr ;;
    *) return 1 ;;
    esac
}

# ran COMMAND: succeeds and says nothing on stderr.
ran() {
    local code=0
    echo "${*@Q}" | sed "s/'\([A-Za-z0-9_./:=-]*\)'/\1/g" >>commands
    "$@" </dev/null >stdout 2>stderr || code=$?
    if ((code == 0)) && [[ ! -s stderr ]]; then return; fi
    if is_refused $code; then return 1; fi
    blame "exit code $code: $(tail -n 1 commands)"
}

# struck SECONDS SIGNAL COMMAND: sent that signal after so long; to have come to its end is as good.
struck() {
    local code=0
    echo "timeout --foreground --preserve-status -s $2 $1 ${*:3}" >>commands
    timeout --foreground --preserve-status -s "$2" "$1" "${@:3}" </dev/null >stdout 2>stderr || code=$?
    case $code in
    0 | 75 | 137 | 143) ;;
    *) is_refused $code || blame "exit code $code: $(tail -n 1 commands)" ;;
    esac
}

# draw_way COMMAND [RANKS]: what changes no byte: starter, ranks, way; and is_on_device.
draw_way() {
    local binary=$program value level
    ranks=${2:-1} is_on_device=0
    if [[ -z ${2:-} ]] && one_in 5; then pick ranks "${ranks_axis[@]}"; fi
    pick level "${levels[@]}"
    draw 4
    way=(--level "$level" --threads $((drawn + 1)))
    if [[ -z ${2:-} && -e $emulated && $codec != raw && "$1 $codec" != encode\ rbe ]] && one_in 4 && ((rows * dims * asked < 2000000)); then
        binary=$emulated is_on_device=1
        way+=(--device emulated)
    fi
    case $1 in
    groundtruth) pick value 0 1 7 33 100 1000 && way+=(--block-rows "$value") ;;
    search)
        pick value 1 3 17 1000 && way+=(--batch "$value")
        pick value auto gather ladder && way+=(--merge "$value")
        pick value auto on off && way+=(--overlap "$value")
        pick value never 0 300 && way+=(--check-every "$value")
        pick value "${scans[@]}" && way+=(--scan "$value")
        ;;
    esac
    starter=("$binary")
    if ((ranks > 1)); then starter=(env "BITSWEEP=$binary" "$run" -n "$ranks"); fi
}

# is_complete OUT: an index or a result, and its run had the time to tidy up.
is_complete() {
    if [[ -d $1 ]]; then [[ -e $1/manifest.pb && ! -e $1/encode.plan ]]; else [[ -e $1 && ! -e $1.journal ]]; fi
}

# ask OUT COMMAND ARGUMENTS: in a drawn way. Now and then it is stopped or killed and resumed in another, of
# groundtruth on as many ranks; on a GPU that has no journal.
ask() {
    local out=$1 command=$2 signal=TERM wait
    local arguments=("${@:2}" --out "$1" --quiet)
    if [[ $command == encode ]]; then arguments=("${@:2}" --index "$1" --quiet); fi
    rm -rf "$out" "$out".*
    draw_way "$command"
    if one_in 10 && [[ $command != groundtruth || $is_on_device == 0 ]]; then
        if ((ranks == 1)) && one_in 2; then signal=KILL; fi
        draw 60
        wait=0.$((100 + 5 * drawn + (ranks > 1 ? 400 : -90)))
        if ((ranks == 1)); then printf -v wait 0.%03d $((1 + drawn)); fi
        struck "$wait" $signal "${starter[@]}" "${arguments[@]}" "${way[@]}" || return
        if is_complete "$out"; then return; fi
        if [[ $command == groundtruth ]]; then draw_way "$command" "$ranks"; else draw_way "$command"; fi
        way+=(--resume)
    fi
    ran "${starter[@]}" "${arguments[@]}" "${way[@]}"
}

# same EXPECTED FOUND
same() {
    ran "$tools/brute_force" compare "$1" "$2"
}

# ---- a question ----------------------------------------------------------------------------------

draw_shape() {
    local short
    draw 4
    case $drawn in
    0) draw 40 && rows=$((1 + drawn)) ;;
    3) draw 2600 && rows=$((401 + drawn)) ;;
    *) draw 400 && rows=$((1 + drawn)) ;;
    esac
    draw 20
    asked=$((1 + drawn))
    pick short 1 2 3 31 32 33 63 64 65 96 127 128
    draw 400
    pick dims "$short" $((1 + drawn))
    if [[ $kind == steps || $kind == heavy ]]; then dims=$((dims + 250)); fi
    if one_in 25; then rows=$((1 + rows % 200)) asked=$((1 + asked % 3)) dims=4096; fi
}

# Rows are the queries.
ask_rows() {
    local first last
    draw "$many"
    first=$((${part%:*} + drawn))
    last=$((first + asked))
    if ((last > ${part#*:})); then last=${part#*:}; fi
    asked_file=base.$ending asked_ending=$ending asked_part=$first:$last
}

# draw_question: rows, queries, and what is asked; 1 where no row can be an answer.
draw_question() {
    local endings=(fbin npy u8bin i8bin)
    pick kind copies parts units large mixed zeros far between noise3 noise6 steps heavy scaled broken plain
    draw_shape
    pick ending "${endings[@]}"
    pick asked_ending "$ending" "$ending" "${endings[@]}"
    pick metric l2 ip cosine
    draw_part asked_part "$asked"
    draw_part part "$rows"
    exclude=()
    if one_in 4; then exclude=(--exclude-self); fi
    asked_file=asked.$asked_ending
    ran "$tools/hostile_rows" "$kind" "$rows" "$asked" "$dims" "base.$ending" "$asked_file" "$number" &&
        ran "$tools/brute_force" good "base.$ending" "$part" "$metric" || return
    most=$(cat stdout)
    if ((${#exclude[@]} && most == many)) && one_in 2; then ask_rows; fi
    most=$((most - ${#exclude[@]}))
    title="$kind, $rows x $dims .$ending $part, $asked_file $asked_part, $metric${exclude[0]:+, ${exclude[0]}}"
    ((most > 0)) || return
    draw "$most"
    pick k 1 "$most" $((1 + drawn)) $((1 + drawn % 10)) $((1 + drawn % 10))
    title+=", k $k of $most"
    corpus=(--base "base.$ending" --rows "$part" --metric "$metric" --drop-bad-rows)
    queries=(--queries "$asked_file" --query-rows "$asked_part" "${exclude[@]}")
    truth=("base.$ending" "$part" "$asked_file" "$asked_part" "$metric")
}

check_truth() {
    ran "$tools/brute_force" truth "${truth[@]}" "$k" expected ${exclude[0]:+exclude-self} || return
    for _ in 1 2; do
        ask found groundtruth "${corpus[@]}" "${queries[@]}" --k "$k" && same expected found || return
        one_in 2 || return 0
    done
}

# ---- an index ------------------------------------------------------------------------------------

draw_saq() {
    local bits half
    pick bits 1 1.5 2 2.5 3 4.25 6 8
    coding+=(--bits "$bits")
    if ((dims > 32)) && one_in 5; then
        draw $((dims - 1))
        half=$((drawn + 1))
        draw 8
        coding=(--codec saq --segments "${half}x$((drawn + 1)),$((dims - half))x3")
    elif ((dims > 64)) && one_in 3; then
        coding+=(--stage 32)
        scans+=(progressive-matrix progressive-planes)
    fi
    if one_in 3; then coding+=(--axes random); fi
}

draw_rbe() {
    pick value 20 32 50
    asking=()
    ran "$program" train --base "base.$ending" --metric cosine --sample "$rows" --code-dims "$value" --query-planes 3 \
        --document-planes 2 --epochs 1 --model model --quiet || return
    coding+=(--model model)
}

# Floats if they are bytes.
does_raw_take_queries() {
    [[ $ending == "$asked_ending" || "$kind $ending" == @(steps|heavy)\ u8bin && $asked_ending != i8bin ]]
}

# draw_coding: of an index; asking is what a search adds. 1 where no code takes these rows: long frames take long,
# and rbe learns nothing from zeros and the like.
draw_coding() {
    local codecs=() value
    if ((dims < 700)); then codecs=(saq saq); fi
    if [[ $metric == cosine ]]; then codecs+=(xfbq); fi
    if [[ $metric == cosine && $kind != [mzb]* && $part == "0:$rows" ]] && ((dims < 200 && rows > 100)); then codecs+=(rbe); fi
    if [[ $metric != cosine && $ending == ?8bin ]] && does_raw_take_queries; then codecs+=(raw raw); fi
    ((${#codecs[@]})) || return
    pick codec "${codecs[@]}"
    asking=() scans=(auto matrix planes)
    coding=(--codec "$codec")
    if [[ $codec != raw ]] && one_in 2; then draw 7 && asking+=(--query-bits $((drawn + 1))); fi
    case $codec in
    saq) draw_saq ;;
    xfbq) draw 8 && coding+=(--bits $((drawn + 1))) ;;
    rbe) draw_rbe || return ;;
    raw) scans=(auto matrix) ;;
    esac
    if one_in 3; then coding+=(--copy-vectors); fi
    title+=", ${coding[*]:1} ${asking[*]}"
}

# check_index: index, now and then the same again; and other, in other shards. A killed run may leave a journal that
# it was about to begin.
check_index() {
    local shards
    draw $((many < 7 ? many : 7))
    shards=$((drawn + 1))
    ask index encode "${corpus[@]}" "${coding[@]}" --shards "$shards" || return
    if one_in 3; then
        ask again encode "${corpus[@]}" "${coding[@]}" --shards "$shards" &&
            ran diff -r index again && ran "$program" verify again --quiet || return
    fi
    draw $((many < 7 ? many : 7))
    ask other encode "${corpus[@]}" "${coding[@]}" --shards $((drawn + 1))
}

# ---- searches ------------------------------------------------------------------------------------

# search OUT K OPTIONS: of one of the indexes.
search() {
    local folders=(index other)
    [[ $selection != *queue* ]] || folders=(index) # its groups follow the shards
    pick value "${folders[@]}"
    ask "$1" search --index "$value" "${queries[@]}" "${asking[@]}" --k "$2" "${@:3}"
}

# Nothing is left of the codes: all rows are candidates.
check_all_rows() {
    local options=(--oversample 10000)
    if [[ $codec == xfbq ]] && ((dims < 200)) && one_in 2; then
        options=(--select histogram --extra-distance 2147483647 --max-candidates 100000)
    fi
    selection=threshold
    search found "$k" "${options[@]}" && same expected found
}

# Candidates, which the other search refines, of threshold or queues.
check_some_rows() {
    local halves candidates options=()
    pick halves 2 3 4 7 10 40
    candidates=$(((k * halves + 1) / 2))
    if ((candidates > many - ${#exclude[@]})); then
        if ((${#exclude[@]})); then return; fi # one more is refined than can be listed
        candidates=$many
    fi
    selection=threshold
    if one_in 4; then
        selection=queue
        pick value 1 2 8 64 256
        draw 4
        options=(--select queue --items "$value" --queue-length $((drawn + 1)))
        scans=(auto matrix planes)
    fi
    search candidates "$candidates" --refine none "${options[@]}" &&
        ran "$tools/brute_force" sorted candidates "$metric" || return
    if one_in 2; then
        search found "$candidates" --refine none "${options[@]}" && same candidates found || return
    fi
    ran "$tools/brute_force" truth "${truth[@]}" "$k" expected among candidates || return
    options+=(--oversample $((halves / 2)).$((halves % 2 * 5)))
    search found "$k" "${options[@]}" && same expected found || return
    if one_in 2; then search found "$k" "${options[@]}" && same expected found; fi
}

# How many rows a histogram keeps is not known beforehand: the same in two ways.
check_histogram() {
    local options=(--select histogram)
    draw 60
    if one_in 2; then options+=(--extra-distance "$drawn"); fi
    if one_in 2; then options+=(--max-candidates $((k + drawn))); fi
    pick value exact none
    options+=(--refine "$value")
    selection=histogram
    search candidates "$k" "${options[@]}" && ran "$tools/brute_force" sorted candidates "$metric" &&
        search found "$k" "${options[@]}" && same candidates found
}

check_searches() {
    if [[ $codec == raw ]]; then
        selection=threshold
        search found "$k" && same expected found || return
        if one_in 2; then search found "$k" && same expected found; fi
        return
    fi
    check_all_rows && check_some_rows || return
    if [[ $codec == xfbq ]] && ((dims < 200)); then check_histogram; fi # its bins take memory
}

# ---- cases ---------------------------------------------------------------------------------------

check_case() {
    local state=$number value drawn
    codec="" title="" scans=(auto)
    find . -mindepth 1 -delete
    touch commands stdout stderr
    draw_question || return 0
    check_truth || return 0
    draw_coding || return 0
    check_index && check_searches || return 0
}

begin=$SECONDS
done=0 failed=0
while if [[ $num_cases ]]; then ((done < num_cases)); else ((SECONDS - begin < most_seconds)); fi; do
    check_case
    echo "case $number: $title"
    number=$((number + 1))
    done=$((done + 1))
done
cd /
echo "$done cases, $failed of them failed; the next is FUZZ_SEED=$number"
((failed == 0))
