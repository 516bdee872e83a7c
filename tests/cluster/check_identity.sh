#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One result file and one index, byte for byte, whatever the number of ranks, shards, threads and
# queries of a batch, the kernel level, the way of scanning and of merging and the compiler.
# usage: check_identity.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# Every codec is searched with every k and refinement by one rank over one shard with the reference
# kernels; searches with everything else different must give the same bytes. They cover each value
# of each axis with each code, and between codes every pair of values of two axes. With FULL=1 in the
# environment they are all combinations (k and refinement take turns; about an hour), what else takes
# turns does not, and the program is built again with clang. BITSWEEP_OTHER names a program of another
# compiler to compare with.
#
# The answers of the first searches also are those of earlier builds: answer_digests.sh.
#
# Functions are called through `start`, which shellcheck does not see.
# shellcheck disable=SC2317
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
# shellcheck source=tests/cluster/answer_digests.sh
. "$(dirname "$0")/answer_digests.sh"
recorded=$2/tests/data/identity.txt new_digests=$folder/digests
source_folder=$2
tool=$(dirname "$program")/tests/identity_data
full=${FULL:-}
other=${BITSWEEP_OTHER:-}
pool=4 # starting mpirun is mostly waiting

mkdir "$folder/index" "$folder/variant" "$folder/truth"

# ---- jobs ----------------------------------------------------------------------------------------

# start FUNCTION ARGUMENTS: in the background, with a number of its own in $job.
start() {
    next_job "$pool"
    job=$num_jobs
    run_job "$@" &
}

finish_jobs() {
    finish_all_jobs || complain "a job did not come to its end"
    if grep -q '^FAILED' "$verdicts"; then finish; fi
}

# ---- axes ----------------------------------------------------------------------------------------

find_levels
find_ranks 2 3 4 8
shards_axis=(1 4 7)
threads_axis=(1 2)
batch_axis=(1 3 1000)
merge_axis=(gather ladder)
scan_axis=(auto progressive-matrix planes progressive-planes matrix)
pairs=("1 exact" "10 exact" "100 exact" "1000 exact" "1 none" "10 none" "100 none" "1000 none")

# Codes: an index each, "name|base|metric|options of encode". Segments are of 45 dims. All saq codes
# but several2 have a first stage, which progressive scans need.
codes=("xfbq|fbin|cosine|--codec xfbq --bits 3")
for metric in cosine ip l2; do
    codes+=("one2-$metric|fbin|$metric|--segments 45x2 --stage 32"
        "one3-$metric|u8bin|$metric|--segments 45x3 --axes random --stage 32"
        "several2-$metric|u8bin|$metric|--segments 16x4,29x1 --stage 0"
        "several3-$metric|fbin|$metric|--segments 32x3,5x8,8x1 --copy-vectors --stage 32")
done

# Searches of them: "name of the code|selection|options"; K7 is k + 7.
searches=("xfbq|histogram|--select histogram"
    "xfbq|histogram|--extra-distance 60 --max-candidates K7")
for code in "${codes[@]}"; do searches+=("${code%%|*}|threshold|"); done
codes+=("rotated|fbin|cosine|--codec xfbq --bits 4 --rotation random")
searches+=("rotated|histogram|--extra-distance 60 --max-candidates K7")

# ---- data and indexes ----------------------------------------------------------------------------

# compare_index WHAT EXPECTED GOT
compare_index() {
    if diff -r "$2" "$3" >"$folder/diff.$job" 2>&1; then
        pass
        rm -rf "$3"
    else
        complain "$1" "$folder/diff.$job"
    fi
}

# encode_once PROGRAM RANKS THREADS LEVEL BASE SHARDS INDEX OPTIONS...: and checks what it says of itself.
encode_once() {
    local binary=$1 ranks=$2 threads=$3 level=$4 base=$5 shards=$6 index=$7 fact
    shift 7
    BITSWEEP=$binary "$run" -n "$ranks" encode --base "$base" --drop-bad-rows --shards "$shards" \
        --index "$index" --threads "$threads" --level "$level" --quiet --json "$@" \
        >"$folder/json.$job" 2>"$folder/err.$job" || return 1
    for fact in "\"ranks\": $ranks" "\"threads\": $threads" "\"level\": \"$level\""; do
        json_says "$folder/json.$job" "$fact" || return 1
    done
}

# index_job CODE SHARDS TURN: the index that searches use, and the same again in other ways.
index_job() {
    local name base metric options shards=$2 turn=$3 ranks threads level what
    IFS='|' read -r name base metric options <<<"$1"
    local index=$folder/index/$name-$shards arguments
    read -ra arguments <<<"--metric $metric $options"
    base=$folder/base.$base
    if ! encode_once "$program" 1 1 reference "$base" "$shards" "$index" "${arguments[@]}"; then
        complain "encode $name, $shards shards" "$folder/err.$job"
        return
    fi
    if "$program" verify "$index" --quiet >/dev/null 2>"$folder/err.$job"; then
        pass
    else
        complain "verify $name, $shards shards" "$folder/err.$job"
    fi
    for ranks in 1 2 3; do
        # A code meets each of them with another number of shards.
        [[ " ${ranks_axis[*]} " == *" $ranks "* ]] || continue
        if [[ -z $full ]] && ((ranks != (turn + turn / 3) % 3 + 1)); then continue; fi
        threads=${threads_axis[turn % 2]}
        level=${levels[(ranks + turn) % ${#levels[@]}]}
        what="encode $name, $shards shards: $ranks ranks, $threads threads, $level"
        if encode_once "$program" "$ranks" "$threads" "$level" "$base" "$shards" \
            "$folder/variant/$job" "${arguments[@]}"; then
            compare_index "$what" "$index" "$folder/variant/$job"
        else
            complain "$what" "$folder/err.$job"
        fi
    done
}

# ---- searches ------------------------------------------------------------------------------------

# search_job WHAT INDEX QUERIES EXPECTED RANKS THREADS BATCH LEVEL MERGE SELECT K REFINE OPTIONS...
# Makes EXPECTED if it is not there; else compares with it. Facts are those of --json.
search_job() {
    local what=$1 index=$2 queries=$3 expected=$4 ranks=$5 threads=$6 batch=$7 level=$8 merge=$9
    local select=${10} k=${11} refine=${12} out fact overlap=(off on)
    shift 12
    what+=", k $k, refine $refine: $ranks ranks, ${index##*-} shards, $threads threads, batch"
    what+=" $batch, $level, $merge"
    out=$folder/variant/$job.bin
    [[ -e $expected ]] || out=$expected
    if ! "$run" -n "$ranks" search --index "$index" --queries "$queries" --out "$out" --k "$k" \
        --refine "$refine" --threads "$threads" --batch "$batch" --level "$level" --merge "$merge" \
        --overlap "${overlap[job % 2]}" --device cpu --quiet --json "$@" \
        >"$folder/json.$job" 2>"$folder/err.$job"; then
        complain "$what" "$folder/err.$job"
        return
    fi
    for fact in "\"ranks\": $ranks" "\"threads\": $threads" "\"batch\": $batch" \
        "\"level\": \"$level\"" "\"merge\": \"$merge\"" "\"select\": \"$select\"" "\"k\": $k" \
        "\"refine\": \"$refine\"" "\"shards\": ${index##*-}"; do
        json_says "$folder/json.$job" "$fact" || {
            complain "$what: --json does not say $fact"
            return
        }
    done
    if [[ $out == "$expected" ]]; then
        pass
    elif cmp "$expected" "$out" >"$folder/diff.$job" 2>&1 &&
        cmp "$expected.json" "$out.json" >"$folder/diff.$job" 2>&1; then
        pass
        rm "$out" "$out.json"
    else
        complain "$what" "$folder/diff.$job"
    fi
}

# start_search SEARCH PAIR RANKS SHARDS THREADS BATCH LEVEL MERGE SCAN
start_search() {
    local name select options k refine metric arguments type=fbin turn=$2 scan=$9
    IFS='|' read -r name select options <<<"$1"
    read -r k refine <<<"${pairs[turn]}"
    [[ $name != one3-* && $name != several2-* ]] || type=u8bin
    [[ $name != xfbq && $name != rotated && $name != several2-* ]] || scan=${scan#progressive-}
    read -ra arguments <<<"${options/K7/$((k + 7))} --scan $scan"
    metric=${options%% *}
    start search_job "$name${options:+ $options} --scan $scan" "$folder/index/$name-$4" \
        "$folder/query.$type" "$folder/truth/$name${options// /}-$turn" "$3" "$5" "$6" "$7" "$8" "$select" "$k" "$refine" \
        ${arguments[@]+"${arguments[@]}"}
}

# The searches all others are compared with.
search_plainly() {
    local search turn
    for search in "${searches[@]}"; do
        for turn in "${!pairs[@]}"; do
            start_search "$search" "$turn" 1 1 1 1000 reference gather planes
        done
    done
    finish_jobs
}

# Five searches a code: each number of ranks, and each way to scan, once. Every other axis is met by each code, too,
# and between codes every pair of values of two axes.
search_covering() {
    local c r
    local num_ranks=${#ranks_axis[@]} num_levels=${#levels[@]}
    for ((c = 0; c < ${#searches[@]}; c++)); do
        for ((r = 0; r < 5; r++)); do
            start_search "${searches[c]}" $(((r + 3 * c) % 8)) "${ranks_axis[r % num_ranks]}" \
                "${shards_axis[(r + 2 * c) % 3]}" "${threads_axis[(r + c / 2) % 2]}" \
                "${batch_axis[(r + r / 3 + c / 2) % 3]}" "${levels[(r + c) % num_levels]}" \
                "${merge_axis[(r / 2 + c) % 2]}" "${scan_axis[(r + c) % 5]}"
        done
    done
    finish_jobs
}

search_everything() {
    local search ranks shards threads batch level merge turn=0
    for search in "${searches[@]}"; do
        for ranks in "${ranks_axis[@]}"; do
            for shards in "${shards_axis[@]}"; do
                for threads in "${threads_axis[@]}"; do
                    for batch in "${batch_axis[@]}"; do
                        for level in "${levels[@]}"; do
                            for merge in "${merge_axis[@]}"; do
                                start_search "$search" $((turn % 8)) "$ranks" "$shards" "$threads" \
                                    "$batch" "$level" "$merge" "${scan_axis[turn % 5]}"
                                turn=$((turn + 1))
                            done
                        done
                    done
                done
            done
        done
        turn=$((turn + 1))
        echo "  $search: done"
    done
    finish_jobs
}

# ---- ties ----------------------------------------------------------------------------------------

# ties_job CODE: all rows in the order of their keys; L is 5 k, k, or k + 7 above.
ties_job() {
    local name base rest places=(1 5 8 10 17 50 100 107 500 1000)
    IFS='|' read -r name base rest <<<"$1"
    # Rows of zeros are dropped for cosine: there are 992 others.
    [[ $name != *[23]-cosine || $base != u8bin ]] || places=("${places[@]:0:9}")
    if ! "$program" search --index "$folder/index/$name-1" --queries "$folder/query.$base" --k 1037 \
        --refine none --out "$folder/variant/$job.bin" --quiet 2>"$folder/err.$job" ||
        ! "$tool" ties "$folder/base.$base" "$folder/variant/$job.bin" "${places[@]}" \
            >"$folder/ties.$job"; then
        complain "order by key of $name" "$folder/err.$job"
        return
    fi
    while read -r place count; do
        if ((count > 0)); then pass; else complain "$name: no tie at place $place"; fi
    done <"$folder/ties.$job"
}

# is_next TURN: whether it is this one's turn: every other one; all with FULL=1, or few ranks.
is_next() {
    [[ -n $full ]] || ((${#ranks_axis[@]} < 5 || $1 % 2))
}

# ---- tiny and large corpora ----------------------------------------------------------------------

# As many shards as rows, with fewer and more ranks than shards.
check_tiny() {
    local ranks k refine turn=0
    export BITSWEEP=$program
    for shards in 1 13; do
        "$program" encode --base "$folder/tiny.fbin" --metric l2 --segments 32x2,13x4 \
            --shards "$shards" --index "$folder/index/tiny-$shards" --quiet
    done
    for refine in exact none; do
        for k in 1 10 13; do
            start search_job tiny "$folder/index/tiny-1" "$folder/query.fbin" \
                "$folder/truth/tiny-$k-$refine" 1 1 1000 reference gather threshold "$k" "$refine"
        done
    done
    finish_jobs
    for refine in exact none; do
        for k in 1 10 13; do
            for ranks in "${ranks_axis[@]}"; do
                turn=$((turn + 1))
                if ! is_next "$turn"; then continue; fi
                start search_job tiny "$folder/index/tiny-13" "$folder/query.fbin" \
                    "$folder/truth/tiny-$k-$refine" "$ranks" 2 17 \
                    "${levels[turn % ${#levels[@]}]}" "${merge_axis[turn / 2 % 2]}" threshold "$k" \
                    "$refine"
            done
        done
    done
    finish_jobs
}

# Several blocks of codes a shard, and enough rows that threads share a shard. The reference takes seconds, so one run of
# several ranks has it.
large_index_job() {
    local name=$1 shards ranks threads=1 level
    shift
    for shards in 1 3; do
        encode_once "$program" 1 2 "${levels[-1]}" synth:count=100K,dims=64,seed=3 "$shards" \
            "$folder/index/$name-$shards" "$@" || complain "encode $name" "$folder/err.$job"
    done
    for ranks in "${ranks_axis[@]:0:3}"; do
        level=${levels[ranks % ${#levels[@]}]}
        threads=$((3 - threads))
        if encode_once "$program" "$ranks" "$threads" "$level" synth:count=100K,dims=64,seed=3 3 \
            "$folder/variant/$job" "$@"; then
            compare_index "encode $name: $ranks ranks, $threads threads, $level" \
                "$folder/index/$name-3" "$folder/variant/$job"
        else
            complain "encode $name: $ranks ranks, $threads threads, $level" "$folder/err.$job"
        fi
    done
}

check_large() {
    local name ranks merge scan turn=0
    start large_index_job large-xfbq --codec xfbq --bits 3
    start large_index_job large-saq --metric l2 --bits 2.5 --stage 32
    finish_jobs
    for name in large-xfbq large-saq; do
        start search_job "$name" "$folder/index/$name-1" synth:count=37,dims=64,seed=4 \
            "$folder/truth/$name" 1 1 1000 reference gather threshold 100 exact --scan planes
    done
    finish_jobs
    for name in large-xfbq large-saq; do
        for ranks in "${ranks_axis[@]}"; do
            for merge in gather ladder; do
                turn=$((turn + 1))
                if ! is_next $((turn / 2)); then continue; fi
                scan=${scan_axis[turn % 5]}
                [[ $name != large-xfbq ]] || scan=${scan#progressive-}
                start search_job "$name" "$folder/index/$name-$((turn / 4 % 2 * 2 + 1))" \
                    synth:count=37,dims=64,seed=4 "$folder/truth/$name" "$ranks" \
                    $(((turn + turn / 4) % 2 + 1)) "${batch_axis[1 + turn / 3 % 2]}" \
                    "${levels[turn % ${#levels[@]}]}" "$merge" threshold 100 exact --scan "$scan"
            done
        done
    done
    finish_jobs
}

# ---- ground truth --------------------------------------------------------------------------------

# truth_job METRIC TYPE K RANKS THREADS LEVEL: equal to refining every row, whose values and order
# are those of a search of any code with L = all rows.
truth_job() {
    local metric=$1 type=$2 k=$3 ranks=$4 threads=$5 level=$6 code=one2 out=$folder/variant/$job.bin
    local what="groundtruth $metric of .$type: $ranks ranks, $threads threads, $level"
    [[ $type == fbin ]] || code=one3
    local pair=3
    ((k == 1000)) || pair=2
    if ! "$run" -n "$ranks" groundtruth --base "$folder/base.$type" --queries "$folder/query.$type" \
        --metric "$metric" --k "$k" --out "$out" --threads "$threads" --level "$level" \
        --drop-bad-rows --quiet >/dev/null 2>"$folder/err.$job"; then
        complain "$what" "$folder/err.$job"
    elif cmp "$folder/truth/$code-$metric-$pair" "$out" >"$folder/diff.$job" 2>&1; then
        pass
    else
        complain "$what" "$folder/diff.$job"
    fi
}

check_groundtruth() {
    local metric type ranks k turn=0
    for metric in cosine ip l2; do
        for type in fbin u8bin; do
            for ranks in "${ranks_axis[@]}"; do
                turn=$((turn + 1))
                if ! is_next "$turn"; then continue; fi
                k=1000
                [[ $type-$metric != u8bin-cosine ]] || k=100 # without zeros there are 992 rows
                start truth_job "$metric" "$type" $k "$ranks" $((turn / 2 % 2 + 1)) \
                    "${levels[turn % ${#levels[@]}]}"
            done
        done
    done
    finish_jobs
}

# ---- another compiler ----------------------------------------------------------------------------

build_other() {
    if ! command -v clang >/dev/null; then
        echo "clang is missing: the other compiler is skipped"
        return
    fi
    echo "building with clang"
    cmake -S "$source_folder" -B "$folder/clang" -DCMAKE_C_COMPILER=clang \
        -DCMAKE_BUILD_TYPE=Release >"$folder/build.log" 2>&1 || true
    if cmake --build "$folder/clang" --target bitsweep --parallel 2 >>"$folder/build.log" 2>&1; then
        other=$folder/clang/bitsweep
    else
        tail -n 20 "$folder/build.log"
        complain "building with clang"
    fi
}

# other_job CODE: index and two searches of the other program.
other_job() {
    local name base metric options turn arguments
    IFS='|' read -r name base metric options <<<"$1"
    read -ra arguments <<<"--metric $metric $options"
    if encode_once "$other" 1 2 "${levels[-1]}" "$folder/base.$base" 4 "$folder/variant/$job" \
        "${arguments[@]}"; then
        compare_index "encode $name: other compiler" "$folder/index/$name-4" "$folder/variant/$job"
    else
        complain "encode $name: other compiler" "$folder/err.$job"
    fi
    export BITSWEEP=$other
    for turn in 1 6; do
        read -r k refine <<<"${pairs[turn]}"
        search_job "other compiler: $name" "$folder/index/$name-4" "$folder/query.$base" \
            "$folder/truth/$name-$turn" 1 2 17 "${levels[-1]}" gather threshold "$k" "$refine"
    done
}

# ---- earlier builds ------------------------------------------------------------------------------

# What all others have been compared with, a digest for all searches of a code.
check_digests() {
    local search name select options
    for search in "${searches[@]}"; do
        IFS='|' read -r name select options <<<"$search"
        check_digest "$name${options:+-${options//[^a-z]/}}" "$folder/index/$name-1" "$folder/truth/$name${options// /}"-[0-7]
    done
    check_digest tiny "$folder/index/tiny-1" "$folder/truth"/tiny-{1,10,13}-{exact,none}
    for name in large-xfbq large-saq; do
        check_digest "$name" "$folder/index/$name-1" "$folder/truth/$name"
    done
    record_digests
}

# ---- the test itself -----------------------------------------------------------------------------

# A comparison that could not fail would prove nothing.
self_job() {
    "$program" search --index "$folder/index/xfbq-4" --queries "$folder/query.fbin" --k 10 \
        --query-bits 5 --refine none --out "$folder/variant/$job.bin" --quiet
    if cmp -s "$folder/truth/xfbq-5" "$folder/variant/$job.bin"; then
        complain "fewer query bits gave the same results"
    else
        pass
    fi
    "$program" encode --base "$folder/base.fbin" --segments 45x2 --seed 2 --metric l2 --shards 4 \
        --index "$folder/variant/$job" --quiet
    if diff -rq "$folder/index/one2-l2-4" "$folder/variant/$job" >/dev/null; then
        complain "another seed gave the same index"
    else
        pass
    fi
}

section() {
    echo "$1 [$((SECONDS)) s]"
}

"$tool" write "$folder"
echo "levels: ${levels[*]}; ranks: ${ranks_axis[*]}; shards: ${shards_axis[*]}"
section "indexes of ${#codes[@]} codes"
turn=0
for code in "${codes[@]}"; do
    for shards in "${shards_axis[@]}"; do
        start index_job "$code" "$shards" "$turn"
        turn=$((turn + 1))
    done
done
finish_jobs
section "ties at the last place kept"
for code in "${codes[@]}"; do start ties_job "$code"; done
finish_jobs
section "searches to compare with"
search_plainly
section "comparisons that must differ"
start self_job
finish_jobs
if [[ -n $full ]]; then
    section "all searches"
    search_everything
else
    section "covering searches"
    search_covering
fi
section "ground truth"
check_groundtruth
section "13 rows in 13 shards"
check_tiny
section "100,000 rows"
check_large
section "answers of earlier builds"
check_digests
if [[ -n $full && -z $other ]]; then build_other; fi
if [[ -n $other ]]; then
    section "another compiler: $other"
    for code in "${codes[@]}"; do start other_job "$code"; done
    finish_jobs
fi
section "end"
finish
