#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Codec pq: the same index and results for any number of ranks, threads, shards, kernel levels and
# queries of a batch, with and without lists, for every type of table; what cannot be is refused.
# usage: check_pq.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_levels
find_ranks 3

check "rows" "$program" synth --count 1600 --dims 45 --clusters 20 --seed 4 --out "$folder/base.fbin" \
    --queries 25 --queries-out "$folder/queries.fbin"

# next_level: another one by turns.
turn=0
next_level() {
    level=${levels[turn % ${#levels[@]}]}
    turn=$((turn + 1))
}

# make METRIC BITS ROTATION LISTS FOLDER ARGUMENT...
make() {
    local metric=$1 bits=$2 rotation=$3 lists=$4 index=$5
    shift 5
    "$@" encode --base "$folder/base.fbin" --codec pq --metric "$metric" --bits "$bits" --subspaces 7 \
        --rotation "$rotation" --lists "$lists" --residual "$residual" --calibrate off --index "$index" --force --quiet \
        --shards "$shards" --threads 2 --level "$level"
}

# search INDEX OUT ARGUMENT...
search() {
    local index=$1 out=$2
    shift 2
    "$program" search --index "$index" --queries "$folder/queries.fbin" --k 10 --out "$out" --force --quiet \
        --threads 2 "$@"
}

residual=auto
while read -r metric bits rotation lists probe tables <&3; do
    what="$metric, $bits bits, $rotation, $lists lists"
    shards=4 level=auto
    check "encode, $what" make "$metric" "$bits" "$rotation" "$lists" "$folder/one" "$program"
    check "verify, $what" "$program" verify "$folder/one" --quiet
    for ranks in "${ranks_axis[@]}"; do
        next_level
        check "encode, $what, $ranks ranks, $level" make "$metric" "$bits" "$rotation" "$lists" "$folder/other" on "$ranks"
        for file in manifest.pb shard-00000-of-00004.codes shard-00003-of-00004.codes; do
            check "$file is the same" cmp "$folder/one/$file" "$folder/other/$file"
        done
    done
    "$program" info "$folder/one" >"$folder/info"
    check "$what: subspaces" grep -q ', 7 subspaces of 7 dims (4 of them 0)$' "$folder/info"
    shards=1
    check "encode, $what, 1 shard" make "$metric" "$bits" "$rotation" "$lists" "$folder/whole" "$program"
    for table in float32 ${tables//,/ }; do
        arguments=(--refine none --table "$table")
        [[ $table != float32 ]] || arguments=(--refine exact --oversample 20)
        ((probe == 0)) || arguments+=(--probe "$probe")
        check "search, $what, $table" search "$folder/one" "$folder/first" "${arguments[@]}"
        next_level
        check "search, $what, $table, 1 shard, $level" search "$folder/whole" "$folder/again" "${arguments[@]}" \
            --level "$level" --batch 7
        check "the same bytes" cmp "$folder/first" "$folder/again"
        for ranks in "${ranks_axis[@]:1}"; do
            next_level
            check "search, $what, $table, $ranks ranks, $level" on "$ranks" search --index "$folder/one" \
                --queries "$folder/queries.fbin" --k 10 --out "$folder/again" --force --quiet --level "$level" \
                --threads 1 "${arguments[@]}"
            check "the same bytes" cmp "$folder/first" "$folder/again"
        done
        if [[ $table == float32 ]]; then
            check "ground truth, $metric" "$program" groundtruth --base "$folder/base.fbin" \
                --queries "$folder/queries.fbin" --metric "$metric" --k 10 --out "$folder/truth" --force --quiet
            recall=$("$program" eval --results "$folder/first" --groundtruth "$folder/truth" --json |
                sed -nE 's/.*"10-recall@10": ([0-9.]+).*/\1/p')
            check "recall of $what: $recall" awk -v a="$recall" 'BEGIN {exit !(a >= 0.9)}'
        fi
    done
done 3<<'CASES'
l2 8 none 0 0 e4m4
cosine 4 random 0 0 e5m3
l2 4 opq 20 12 float16,e5m3,e4m4
ip 8 none 20 20 float16,e4m4
CASES

# Without residuals lists are an order of rows.
level=auto shards=2 residual=no
check "encode without residuals" make l2 8 none 20 "$folder/lists" "$program"
check "encode without lists" make l2 8 none 0 "$folder/flat" "$program"
for table in float32 e4m4; do
    check "all lists, $table" search "$folder/lists" "$folder/first" --probe all --refine none --table "$table"
    check "no lists, $table" search "$folder/flat" "$folder/again" --refine none --table "$table"
    check "the same bytes" cmp "$folder/first" "$folder/again"
done

# Rows of all sizes, from below the normal numbers up: tables of 8 bits keep to their rules on every level.
tools=$(dirname "$program")/tests
needs "$tools/hostile_rows"
"$tools/hostile_rows" mixed 700 25 45 "$folder/mixed.fbin" "$folder/asked.fbin" 5
for metric in l2 ip; do
    check "encode rows of all sizes, $metric" "$program" encode --base "$folder/mixed.fbin" --codec pq --metric $metric \
        --subspaces 9 --rotation none --lists 0 --index "$folder/mixed" --force --quiet
    for table in e4m4 e5m3 float16; do
        expected=
        for level in "${levels[@]}"; do
            check "rows of all sizes, $metric, $table, $level" "$program" search --index "$folder/mixed" --queries \
                "$folder/asked.fbin" --k 10 --refine none --table $table --level "$level" --batch 9 --threads 2 \
                --out "$folder/mixed-$level" --force --quiet
            check "the same bytes" cmp "$folder/mixed-$level" "${expected:=$folder/mixed-$level}"
        done
    done
done

# A row is not its own neighbour; codebooks of another index are those of this one.
check "exclude-self" "$program" search --index "$folder/flat" --queries "$folder/base.fbin" --query-rows 0:50 --k 1 \
    --exclude-self --oversample 20 --out "$folder/first" --force --quiet
# shellcheck disable=SC2016 # of awk
check "no row finds itself" awk '{for (i = 1; i <= NF; i++) if ($i == n++) exit 1}' \
    <(od -An -v -tu4 -w4 -j8 -N200 "$folder/first")
check "encode --model" "$program" encode --base "$folder/base.fbin" --codec pq --metric l2 --model "$folder/flat" \
    --index "$folder/model" --shards 2 --force --quiet
check "the same codes" cmp "$folder/flat/manifest.pb" "$folder/model/manifest.pb"
shards=4 residual=auto
check "encode with lists" make l2 8 none 20 "$folder/trained" "$program"
check "encode --model, lists too" "$program" encode --base "$folder/base.fbin" --codec pq --metric l2 --lists 20 \
    --model "$folder/trained" --calibrate off --index "$folder/model" --shards 4 --force --quiet
check "the same codes and lists" cmp "$folder/trained/manifest.pb" "$folder/model/manifest.pb"

encode=("$program" encode --base "$folder/base.fbin" --metric l2 --index "$folder/none" --quiet)
refused 2 "bits 5: --codec pq has 4 or 8 a subspace" "${encode[@]}" --codec pq --bits 5
refused 2 "subspaces 46: .* has 45 dims" "${encode[@]}" --codec pq --subspaces 46
refused 2 "subspaces is for --codec pq" "${encode[@]}" --codec saq --subspaces 4
refused 2 "rotation is for --codec pq" "${encode[@]}" --codec sq8 --rotation opq
refused 2 "segments is for --codec saq" "${encode[@]}" --codec pq --segments 45x4
refused 2 "model brings its own" "${encode[@]}" --codec pq --model "$folder/flat" --bits 8
refused 2 "one: its metric is ip, not l2" "${encode[@]}" --codec pq --model "$folder/one"
refused 2 "its codes are of residuals, those asked for are not: give --lists" "$program" encode \
    --base "$folder/base.fbin" --metric ip --index "$folder/none" --quiet --codec pq --model "$folder/one"
refused 2 "query-bits: queries of codec pq are tables" search "$folder/flat" "$folder/x" --query-bits 4
refused 2 "scan matrix: codec pq is scanned by tables" search "$folder/flat" "$folder/x" --scan matrix
refused 2 "select queue: codec pq is not scanned for it" search "$folder/flat" "$folder/x" --select queue
refused 2 "'e3m4'" search "$folder/flat" "$folder/x" --table e3m4
check "encode saq" "$program" encode --base "$folder/base.fbin" --codec saq --metric l2 --index "$folder/saq" --quiet
refused 2 "table: codec saq has no tables" search "$folder/saq" "$folder/x" --table e5m3
finish
