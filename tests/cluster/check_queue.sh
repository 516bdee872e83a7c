#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# search --select queue: the same bytes for any ranks, threads, batches, levels and scans; what long
# queues, long threads and other shard cuts change; what is refused.
# On devices: check_device.sh.
# usage: check_queue.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_levels
find_ranks 2 4

# search RANKS NAME OPTIONS: into the file NAME.
search() {
    local ranks=$1 name=$2
    shift 2
    on "$ranks" search --queries "$queries" --query-rows 0:40 --out "$folder/$name" --force \
        --quiet "$@" >"$folder/json" 2>"$folder/stderr" || complain "search $*"
    [[ -s $folder/stderr ]] && complain "search $*: $(head -n 1 "$folder/stderr")"
    return 0
}

differ() {
    if cmp -s "$folder/$1" "$folder/$2"; then complain "$3"; else pass; fi
}

for shards in 1 3; do
    "$program" encode --base "$base" --index "$folder/saq.$shards" --bits 2.5 --metric l2 \
        --shards "$shards" --quiet
done
"$program" encode --base "$base" --index "$folder/xfbq.3" --codec xfbq --bits 3 --shards 3 --quiet
"$program" encode --base "$base" --index "$folder/raw.3" --codec raw --metric l2 --shards 3 --quiet

for index in saq.1 saq.3 xfbq.3 raw.3; do
    options=(--index "$folder/$index" --select queue --items 8 --k 20)
    search 1 expected "${options[@]}" --level reference --threads 1
    for ranks in "${ranks_axis[@]}"; do
        search "$ranks" found "${options[@]}" --batch 7
        same_bytes expected found "$index: $ranks ranks"
    done
    for level in "${levels[@]:1}"; do
        search 1 found "${options[@]}" --level "$level" --threads 3
        same_bytes expected found "$index: level $level"
    done
    for scan in matrix planes; do
        if [[ $index == raw.3 && $scan == planes ]]; then continue; fi
        search 1 found "${options[@]}" --scan "$scan" --merge ladder
        same_bytes expected found "$index: $scan"
    done
    options+=(--queue-length 3)
    search 1 long "${options[@]}" --level reference --threads 1
    search "${ranks_axis[-1]}" found "${options[@]}" --merge gather
    same_bytes long found "$index: queues of 3"
    differ long expected "$index: queues of 1 and 3 keep the same"
    for refine in exact none; do
        search 1 threshold --index "$folder/$index" --refine "$refine"
        search 1 found --index "$folder/$index" --refine "$refine" --select queue --items 4 \
            --queue-length 4
        same_bytes threshold found "$index, refine $refine: queues as long as threads"
    done
    search 1 found --index "$folder/$index" --k 1000 --refine none --select queue
    search 1 threshold --index "$folder/$index" --k 1000 --refine none
    differ threshold found "$index: nothing was missed"
done

# Groups follow the shards.
search 1 one --index "$folder/saq.1" --select queue --items 64 --k 100
search 1 three --index "$folder/saq.3" --select queue --items 64 --k 100
differ one three "1 and 3 shards miss the same"

# One block of a shard keeps 256 rows; the other places stay empty.
search 1 found --index "$folder/saq.1" --k 1000 --refine none --select queue --items 20K --json
kept=$(od -An -v -t d4 -w4 -j 8 -N $((4 * 40 * 1000)) "$folder/found" | grep -vc -- "-1$" || true)
if [[ $kept == $((40 * 256)) ]]; then pass; else complain "$kept rows kept, 256 a query expected"; fi
for line in '"select": "queue"' '"items": 20000' '"queue_length": 1'; do
    if grep -q "^  $line,\$" "$folder/json"; then pass; else complain "--json lacks $line"; fi
done

# facts FILE LINE...: FILE.json beside a result has these, and no others of a selection.
facts() {
    local name=$1 expected got
    shift
    expected=$(printf '  %s\n' "$@")
    got=$(sed -nE '/"(select|items|queue_length|extra_distance|max_candidates)"/s/,?$//p' "$folder/$name.json")
    if [[ $got == "$expected" ]]; then pass; else complain "$name.json says $got, not $expected"; fi
}

facts found '"select": "queue"' '"items": 20000' '"queue_length": 1'
facts threshold '"select": "threshold"'
search 1 histogram --index "$folder/xfbq.3" --extra-distance 7 --max-candidates 300
facts histogram '"select": "histogram"' '"extra_distance": 7' '"max_candidates": 300'
# A share of what distances run over: 2^(3 + 6) * scale^2.
extra=$("$program" info "$folder/xfbq.3" | sed -nE 's/.* scale ([0-9.]+).*/\1/p' | awk '{printf "%.0f", 0.05 * 512 * $1 * $1}')
search 1 share --index "$folder/xfbq.3" --extra-distance 5%
facts share '"select": "histogram"' "\"extra_distance\": $extra" '"max_candidates": 100000'
search 1 number --index "$folder/xfbq.3" --extra-distance "$extra"
same_bytes share number "5 % is $extra"

# evaluated SELECT LINES FILE: so many lines of eval speak of queues; --json names the selection.
evaluated() {
    local lines select
    "$program" eval --results "$folder/$3" --groundtruth "$folder/$3" >"$folder/text"
    lines=$(grep -c "^selected by queues of 1 over 20000 rows each" "$folder/text" || true)
    select=$("$program" eval --results "$folder/$3" --groundtruth "$folder/$3" --json |
        sed -n 's/^  "select": //p')
    if [[ "$select $lines" == "$1 $2" ]]; then pass; else complain "eval of $3: $select, $lines lines"; fi
}

evaluated '"queue"' 1 found
evaluated '"threshold"' 0 threshold
"$program" groundtruth --base "$base" --queries "$queries" --query-rows 0:40 --k 10 --metric l2 \
    --rows 0:100 --out "$folder/truth" --quiet
evaluated null 0 truth

options=("$program" search --index "$folder/saq.3" --queries "$queries" --out "$folder/none" --select queue --quiet)

refused 2 "--extra-distance" "${options[@]}" --extra-distance 5
refused 2 "every key" "${options[@]}" --scan progressive-matrix
refused 2 "--items" "${options[@]}" --items 0
refused 2 "--queue-length" "${options[@]}" --queue-length 257

finish
