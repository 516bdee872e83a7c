#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ground truth on hostile rows, a search that refines all of them and codec raw against the definition of exact values,
# computed plainly: the same bytes for any type, metric, level, block, number of threads and ranks, and after a stop or
# kill and --resume.
# usage: check_truth_definition.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# Short: every kind of rows with each type, by turns with everything else, 1 to 8 ranks here and there, a few
# runs killed. FULL=1: with each type and metric; of each on one rank and three other numbers of ranks, so that a kind
# and type has been on all of 1 to 8, and a run stopped or killed.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
tests=$(dirname "$program")/tests
needs "$tests/brute_force" "$tests/hostile_rows"
find_levels
find_ranks 2 3 4 5 6 7 8
full=${FULL:-0}
# shape_of KIND: a ragged last bundle, ragged ranges of ranks; long rows where sums of bytes are to pass 2^24.
shape_of() {
    case $1 in
    steps) rows=611 asked=7 dims=300 ;;
    heavy) rows=301 asked=5 dims=4096 ;;
    *) rows=2917 asked=23 dims=37 ;;
    esac
}
blocks=(0 1000 100 33 7 1)
if ((!full)); then blocks=(0 1000 100 33); fi
ks=(1 10 150)
num_runs=0
num_resumed=0
num_rows_checked=0
turn=0
next=0

# same_bytes WHAT: as the definition has it.
same_bytes() {
    if cmp "$folder/expected" "$folder/found" >"$folder/stdout" 2>&1; then pass; else complain "$1" "$folder/stdout"; fi
    rm -f "$folder"/found*
}

# next_way: block, threads and level of the next run. In the short test floats are for levels that have codes: some
# kinds of rows are made for these.
next_way() {
    local level=${levels[turn / 2 % ${#levels[@]}]}
    if ((!full)) && [[ $level == avx2 && ${job[1]} == *.fbin ]]; then level=${levels[-1]}; fi
    turn=$((turn + 1))
    way=(--block-rows "${blocks[turn % ${#blocks[@]}]}" --threads $((1 + turn % 3)) --level "$level")
}

# found_on RANKS WHAT
found_on() {
    local what
    next_way
    what="$2, $1 ranks, ${way[*]}"
    num_runs=$((num_runs + 1))
    check "$what" on "$1" groundtruth "${job[@]}" "${way[@]}" --out "$folder/found" --quiet
    same_bytes "$what"
}

# resumed_on RANKS WHAT: struck as soon as there is a journal; a rank alone is killed, several are stopped.
resumed_on() {
    local pid signal=KILL what="$2, resumed on $1 ranks"
    next_way
    way[1]=1 # there is time to strike
    if (($1 > 1)); then signal=TERM; fi
    if (($1 == 1)); then
        "$program" groundtruth "${job[@]}" "${way[@]}" --out "$folder/found" --quiet >"$folder/stdout" 2>&1 &
    else
        "$run" -n "$1" groundtruth "${job[@]}" "${way[@]}" --out "$folder/found" --quiet >"$folder/stdout" 2>&1 &
    fi
    pid=$!
    until compgen -G "$folder/found.[0-9]*.journal" >/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.002; done
    kill -$signal $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    num_runs=$((num_runs + 1))
    if [[ ! -e $folder/found ]]; then
        num_resumed=$((num_resumed + 1))
        next_way
        check "$what" on "$1" groundtruth "${job[@]}" "${way[@]}" --out "$folder/found" --quiet --resume
    fi
    same_bytes "$what"
}

# searched RANKS CODEC METRIC ENDING K WHAT: all rows are candidates, so that nothing is left of the codes.
searched() {
    local what="$6, codec $2, $1 ranks" options=(--codec "$2" --metric "$3")
    next_way
    check "encode: $what" "$program" encode --base "$folder/base.$4" --index "$folder/index" --force --quiet \
        --drop-bad-rows --shards $((1 + turn % 3)) "${options[@]}"
    check "search: $what, ${way[*]:2}" on "$1" search --index "$folder/index" --queries "$folder/asked.$4" --k "$5" \
        --oversample 10000 "${way[@]:2}" --out "$folder/found" --quiet
    same_bytes "search: $what, ${way[*]:2}"
}

# check_searches KIND ENDING METRIC K WHAT: codec raw, where it can be, and by turns a code. Long frames take long. In
# the short test of every other kind, type and metric.
check_searches() {
    local ranks=1 codec=saq
    num_rows_checked=$((num_rows_checked + 1))
    if ((!full && num_rows_checked % 2 && dims == 37)); then return; fi
    if ((full)); then ranks=${ranks_axis[next % ${#ranks_axis[@]}]}; fi
    if [[ $3 == cosine ]] && ((turn % 2 || dims > 1000)); then codec=xfbq; fi
    if [[ $codec == xfbq ]] || ((dims < 1000)); then searched "$ranks" $codec "$3" "$2" "$4" "$5"; fi
    if [[ $2 == ?8bin && $3 != cosine ]]; then searched "$ranks" raw "$3" "$2" "$4" "$5"; fi
}

# check_rows KIND ENDING METRIC
check_rows() {
    local what="$1 as .$2, $3" k=${ks[turn % 3]}
    job=(--base "$folder/base.$2" --queries "$folder/asked.$2" --metric "$3" --k "$k" --drop-bad-rows)
    "$tests/brute_force" truth "$folder/base.$2" 0:$rows "$folder/asked.$2" 0:$asked "$3" "$k" "$folder/expected"
    found_on 1 "$what, k $k"
    if ((full)); then
        for _ in 1 2 3; do
            found_on "${ranks_axis[next % ${#ranks_axis[@]}]}" "$what, k $k"
            next=$((next + 1))
        done
        resumed_on "${ranks_axis[next % ${#ranks_axis[@]}]}" "$what, k $k"
    elif ((turn % 15 == 0)); then
        found_on "${ranks_axis[turn / 15 * 3 % ${#ranks_axis[@]}]}" "$what, k $k"
    elif ((turn % 20 == 7)); then
        resumed_on 1 "$what, k $k"
    fi
    check_searches "$1" "$2" "$3" "$k" "$what, k $k"
}

# The test itself must see a wrong id and a wrong value.
shape_of copies
"$tests/hostile_rows" copies $rows $asked $dims "$folder/base.fbin" "$folder/asked.fbin"
"$tests/brute_force" truth "$folder/base.fbin" 0:$rows "$folder/asked.fbin" 0:$asked l2 10 "$folder/expected"
for offset in 8 $((8 + asked * 10 * 4)); do
    "$program" groundtruth --base "$folder/base.fbin" --queries "$folder/asked.fbin" --metric l2 --k 10 \
        --out "$folder/found" --force --quiet
    flip "$folder/found" "$offset"
    check "a wrong byte $offset is seen" test "$(cmp "$folder/expected" "$folder/found" | wc -l)" = 1
done
rm -f "$folder"/found*

# And the definition must tell sums apart that are one float32.
shape_of steps
"$tests/hostile_rows" steps 256 1 $dims "$folder/base.u8bin" "$folder/asked.u8bin"
"$tests/brute_force" truth "$folder/base.u8bin" 0:256 "$folder/asked.u8bin" 0:1 ip 4 "$folder/expected"
check "the largest sum is the first" test "$(od -An -v -td4 -j 8 -N 16 "$folder/expected" | xargs)" = "255 254 253 252"

# A query that is no row of the index has all rows as candidates, also where its own row is to be left out.
"$tests/hostile_rows" mixed 35 13 65 "$folder/base.i8bin" "$folder/asked.fbin" 18
"$tests/brute_force" truth "$folder/base.i8bin" 22:30 "$folder/asked.fbin" 0:13 ip 1 "$folder/expected" exclude-self
"$program" encode --base "$folder/base.i8bin" --rows 22:30 --metric ip --codec saq --bits 1.5 --axes random \
    --index "$folder/few" --quiet
"$program" search --index "$folder/few" --queries "$folder/asked.fbin" --exclude-self --query-bits 2 --k 1 \
    --oversample 10000 --out "$folder/found" --force --quiet
check "all rows but the query's own are candidates" cmp "$folder/expected" "$folder/found"
rm -rf "$folder"/found* "$folder/few"

export BITSWEEP_JOURNAL_SECONDS=0.001
for kind in copies parts units large mixed zeros far between noise3 noise6 steps heavy scaled; do
    shape_of $kind
    for ending in fbin npy u8bin i8bin; do
        "$tests/hostile_rows" $kind $rows $asked $dims "$folder/base.$ending" "$folder/asked.$ending"
        metrics=(l2 ip cosine)
        if ((!full)) && [[ $ending != fbin ]]; then metrics=("${metrics[(num_rows_checked + num_rows_checked / 6) % 3]}"); fi
        if ((!full && dims != 37)); then metrics=(ip); fi # where sums are long
        # Cosines that are equal, of few numbers and of so many that squares pass 2^53.
        if ((!full)) && [[ $kind$ending == scaled?8bin ]]; then metrics=(cosine); fi
        if ((!full)) && [[ $kind$ending == heavyu8bin ]]; then metrics=(ip cosine); fi
        for metric in "${metrics[@]}"; do check_rows $kind $ending "$metric"; done
    done
done

echo "$num_runs runs, $num_resumed of them stopped or killed and resumed"
finish
