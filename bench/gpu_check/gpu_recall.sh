#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whole searches of generated rows on a GPU: first what each costs, a line of a table each, then what it finds of the
# true neighbours, which takes the longest; who stops it in between has the first.
# usage: gpu_recall.sh CASE BITSWEEP_BINARY PROGRAM DEVICE     --list prints the cases
#
# The index goes to TMPDIR. QUICK=1 in the environment divides rows by 50,000, for the emulator.
set -euo pipefail

# "name rows dims most_batch; options of encode": 96 and 128 dims resemble pictures, 768 texts.
cases=("rows_1e8 100000000 96 10000; --codec saq --bits 3"
    "rows_1e9 1000000000 96 4000; --codec saq --bits 3"
    "dims_768 4000000 768 4000; --codec saq --bits 3"
    "lists_1e7 10000000 96 10000; --codec saq --bits 3 --lists 8192"
    "lists_1e6 1000000 128 10000; --codec saq --bits 3 --lists 4096"
    "tables 10000000 96 1000; --codec pq --bits 8 --subspaces 48 --calibrate off")
spectrum=0.625 # SIFT's, about

if [[ ${1:-} == --list ]]; then
    printf '%s\n' "${cases[@]}"
    exit
fi
(($# == 4)) || { echo "usage: gpu_recall.sh CASE BITSWEEP_BINARY PROGRAM DEVICE" >&2 && exit 2; }
name=$1 program=$2 other=$3 device=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 143' TERM

choose_case() {
    local line
    for line in "${cases[@]}"; do
        [[ $line != "$name "* ]] || break
    done
    [[ $line == "$name "* ]] || { echo "gpu_recall.sh: unknown case '$name'; --list prints them" >&2 && exit 2; }
    read -r _ rows dims queries <<<"${line%%;*}"
    read -ra encoding <<<"${line#*;}"
    if [[ -n ${QUICK:-} ]]; then
        rows=$((rows / 50000 > 2000 ? 2000 : rows / 50000 < 1000 ? 1000 : rows / 50000)) queries=20
        read -ra encoding < <(sed -E 's/--lists [0-9]+/--lists 16/' <<<"${encoding[*]}")
    fi
    base=synth:count=$rows,dims=$dims,seed=1,spectrum=$spectrum
    asked=synth:count=$queries,dims=$dims,seed=2,spectrum=$spectrum
}

# The searches of a case: "queries batch options". Fewer queries in small batches.
choose_searches() {
    local few=$((queries < 200 ? queries : 200)) half=$((queries / 10 > 0 ? queries / 10 : 1)) recall table
    case $name in
    lists_*)
        for recall in 0.9 0.95 0.98 0.99; do searches+=("$queries $queries --recall $recall"); done
        searches+=("$queries $half --recall 0.95" "$few 1 --recall 0.95")
        ;;
    tables)
        for table in float32 float16 e5m3 e4m4; do searches+=("$queries $queries --table $table"); done
        ;;
    rows_1e9) searches=("$queries 1000" "$queries $queries" "$few 1" "$few 8") ;;
    *)
        searches=("$queries $half" "$queries $queries" "$queries $half --scan matrix" "$few 1" "$few 8" "$few 64"
            "$queries $half --refine none")
        ;;
    esac
    if [[ -n ${QUICK:-} ]]; then searches=("${searches[0]}" "${searches[-1]}"); fi
}

# refuse_without_space: codes have some 3 bits a dimension.
refuse_without_space() {
    local wanted=$((rows * dims / 2000000)) free # MB
    free=$(df -Pm "$folder" | awk 'NR == 2 {print $4}')
    if ((wanted > free)); then
        echo "skipped: $wanted MB for an index, $free are free in ${folder%/*}"
        exit 77
    fi
}

# value NAME: a number or word of the last command that printed JSON, of its first rank.
value() {
    sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$folder/json" | head -n 1
}

# encode: on the GPU where the codec can; lists and product codes may be made by the CPU alone.
encode() {
    local on
    for on in "$device" cpu; do
        if "$other" encode --base "$base" --index "$folder/index" --metric l2 --device "$on" --quiet --force --json \
            "${encoding[@]}" >"$folder/json" 2>"$folder/stderr"; then
            printf 'encoded on %s: %s s in all, lists %s s, training %s s, codes %s s; %s bytes a vector\n\n' "$on" \
                "$SECONDS" "$(value lists_seconds)" "$(value train_seconds)" "$(value encode_seconds)" \
                "$(value bytes_per_vector)"
            return
        fi
        head -n 2 "$folder/stderr"
    done
    return 1
}

# per_batch NAME: of what the device counts over all passes, of which there are two.
per_batch() {
    local count
    count=$(value "$1")
    if [[ -z $count ]]; then echo "-"; else awk -v n="$count" -v b="$num_batches" 'BEGIN {printf "%.1f", n / b / 2}'; fi
}

# search NUMBER QUERIES BATCH OPTIONS...: a line of the table.
search() {
    local number=$1 count=$2 batch=$3 num_batches=$((($2 + $3 - 1) / $3)) what
    shift 3
    what="$*, batches of $batch"
    if ! "$other" search --index "$folder/index" --queries "$asked" --query-rows "0:$count" --batch "$batch" --k 10 \
        --device "$device" --check-every never --warmup 1 --out "$folder/found.$number" --quiet --json "$@" \
        >"$folder/json" 2>"$folder/stderr"; then
        echo "FAILED: ${what#, }: $(head -n 1 "$folder/stderr")"
        num_failed=$((num_failed + 1))
        return
    fi
    if [[ $(value device) != "${device%%:*}" ]]; then
        echo "FAILED: ${what#, }: on $(value device)"
        num_failed=$((num_failed + 1))
    fi
    printf '| %s | %s | %s | %.1f | %.3f | %s | %s | %s | %s | %s | %s |\n' "${what#, }" "$count" "$(value scan)" \
        "$(value queries_per_second)" "$(awk -v s="$(value seconds)" -v b="$num_batches" 'BEGIN {print 1000 * s / b}')" \
        "$(per_batch launches)" "$(per_batch waits)" "$(per_batch copied_bytes)" "$(per_batch graphs)" \
        "$(awk -v b="$(value used_bytes)" 'BEGIN {print int(b / 1e6)}')" "$(value load_seconds)"
}

# each_search COMMAND: with number, queries, batch and options of every search.
each_search() {
    local i count batch options
    for ((i = 0; i < ${#searches[@]}; i++)); do
        read -r count batch options <<<"${searches[i]}"
        # shellcheck disable=SC2086
        "$1" "$i" "$count" "$batch" $options
    done
}

measure() {
    echo "| search | queries | scan | queries/s | ms a batch | launches | waits | bytes copied | graphs | MB on the GPU | load s |"
    echo "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    each_search search
}

# find_truth: on the GPU where there are kernels for the type of rows.
find_truth() {
    local on
    for on in "$device" cpu; do
        if "$other" groundtruth --base "$base" --queries "$asked" --k 10 --metric l2 --device "$on" --quiet --force --json \
            --out "$folder/truth" >"$folder/json" 2>"$folder/stderr"; then
            printf '\nground truth on %s: %s s\n\n' "$on" "$(value seconds)"
            return
        fi
        head -n 2 "$folder/stderr"
    done
    return 1
}

# judge NUMBER QUERIES BATCH OPTIONS...: what it found; searches of fewer queries found what the others did.
judge() {
    local number=$1 count=$2 batch=$3 what
    shift 3
    what="$*, batches of $batch"
    if ((count < queries)) || [[ ! -e $folder/found.$number ]]; then return; fi
    "$program" eval --results "$folder/found.$number" --groundtruth "$folder/truth" --json >"$folder/json"
    echo "| ${what#, } | $(value 10-recall@10) | $(value 1-recall@10) |"
}

evaluate() {
    echo "| search | 10-recall@10 | 1-recall@10 |"
    echo "| --- | ---: | ---: |"
    each_search judge
}

num_failed=0
searches=()
choose_case
refuse_without_space
choose_searches
printf '%s rows of %s dims, spectrum %s, seeds 1 and 2, l2, k 10: %s\n\n' "$rows" "$dims" "$spectrum" "${encoding[*]}"
encode
measure
find_truth
evaluate
echo "$num_failed failures"
((num_failed == 0))
