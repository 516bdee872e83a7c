#!/usr/bin/env bash
# plan: its bytes are those of real indexes, on disk and in memory, for any number of ranks; the
# figures of a billion rows; RBE's Table 7.
# usage: check_plan.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_ranks 2 4

equal() {
    if [[ $2 == "$3" ]]; then
        pass
    else
        complain "$1: $2, expected $3"
    fi
}

# of OBJECT KEY: a number of the plan.
of() {
    sed -n "/^  \"$1\": {/,/^  }/s/^ *\"$2\": \([0-9.]*\),\{0,1\}\$/\1/p" "$folder/plan"
}

# sum KEY, most KEY: over the ranks of a search.
sum() {
    sed -n "s/^ *\"$1\": \([0-9]*\),\{0,1\}\$/\1/p" "$folder/search" | awk '{s += $1} END {print s}'
}

most() {
    sed -n "s/^ *\"$1\": \([0-9]*\),\{0,1\}\$/\1/p" "$folder/search" | sort -n | tail -n 1
}

bytes_of() {
    cat "$folder/index"/*"$1" | wc -c
}

# compare ROWS SHARDS CODEC PLAN_OPTIONS -- ENCODE_OPTIONS
compare() {
    local rows=$1 shards=$2 codec=$3 planned=()
    shift 3
    while [[ $1 != -- ]]; do planned+=("$1") && shift; done
    shift
    "$program" encode --base "$base" --rows "0:$rows" --index "$folder/index" --codec "$codec" \
        --shards "$shards" --copy-vectors --force --quiet "$@"
    local stage what
    stage=$("$program" info "$folder/index" --json | sed -n 's/^ *"stage_dims": \([0-9]*\),$/\1/p')
    for ranks in "${ranks_axis[@]}"; do
        what="$codec, $rows rows, $shards shards, $ranks ranks"
        "$program" plan --rows "$rows" --dims 128 --codec "$codec" --shards "$shards" \
            --ranks "$ranks" --stage "$stage" --vectors uint8 --json "${planned[@]}" >"$folder/plan"
        on "$ranks" search --index "$folder/index" --queries "$queries" --query-rows 0:8 \
            --out "$folder/found" --force --select queue --json --quiet >"$folder/search"
        equal "$what: memory of all ranks" "$(of all_ranks resident_bytes)" "$(sum resident_bytes)"
        equal "$what: most of a rank" "$(of rank resident_bytes)" "$(most resident_bytes)"
        equal "$what: a pass" "$(of all_ranks scanned_bytes)" "$(sum scanned_bytes)"
    done
    equal "$what: .codes files" "$(of index codes_files_bytes)" "$(bytes_of .codes)"
    equal "$what: .vectors files" "$(of index vectors_files_bytes)" "$(bytes_of .vectors)"
}

compare 20000 3 saq --bits 2.5 -- --bits 2.5 --metric l2
compare 3001 2 saq --bits 4 -- --bits 4 --metric l2 --stage 32
compare 3001 1 saq --segments 32x5,96x1 -- --segments 32x5,96x1 --metric ip --stage 0
compare 5000 2 xfbq --bits 3 -- --bits 3
compare 33 2 raw -- --metric l2
"$program" train --base "$base" --sample 300 --batch 64 --epochs 1 --code-dims 50 --document-planes 3 \
    --model "$folder/model" --quiet
compare 3001 2 rbe --code-dims 50 --bits 3 -- --model "$folder/model"

# said OPTIONS -- PATTERN...: the plan has these lines.
said() {
    local options=()
    while [[ $1 != -- ]]; do options+=("$1") && shift; done
    shift
    "$program" plan "${options[@]}" >"$folder/text"
    for pattern in "$@"; do
        equal "plan ${options[*]}: $pattern" "$(grep -cE "$pattern" "$folder/text")" 1
    done
}

said --rows 1G --dims 64 --bits 2 -- "^  codes +14\.9 GiB +14\.9 GiB$" "^  scales +1\.9 GiB" \
    "^  biases +3\.7 GiB"
said --rows 1G --dims 64 --bits 2 --codec xfbq --ranks 4 -- "^  codes +14\.9 GiB +3\.7 GiB$"
# Codes of 64 components stand for vectors of any dims; a query of 3 planes is 3 * 8 + 4 + 4 * 300 bytes.
said --rows 1G --dims 300 --bits 2 --codec rbe --code-dims 64 -- "x 300 dims, rbe 64x2: 24 bytes a row" \
    "^  codes +14\.9 GiB +14\.9 GiB$" "^  scales +1\.9 GiB" "^  biases +3\.7 GiB" \
    "^  raw vectors +1\.1 TiB" "batch of 1000 queries: 1\.2 MiB"
said --rows 1G --dims 300 --codec rbe -- "rbe 64x2: "
said --rows 1G --dims 64 --bits 2 --k 1000 --oversample 1 --select queue -- "^ +0 +88\.040 %$" \
    "^ +1 +99\.256 %$" "^ +2 +99\.969 %$" "99\.9 %: --items 1024$"
said --rows 1M --dims 64 --k 1000 --oversample 1 --select queue -- ": 88\.[34]... % kept$" \
    "99\.9 %: --items 2$"
said --rows 1M --dims 64 --k 1000 --oversample 1 --select queue --queue-length 2 -- \
    ": 99\.0[56].. % kept$" "99\.9 %: --items 64$"
said --rows 20K --dims 64 --k 1000 --select queue --items 8 --queue-length 8 -- "\(simulated\)$"
said --rows 1M --dims 64 --k 10K --select queue --items 100K -- "too many for a table"

# refused WHAT OPTIONS: exit 2 and one line that names it.
refused() {
    local what=$1 code=0
    shift
    "$program" plan "$@" >"$folder/text" 2>&1 || code=$?
    equal "plan $*" "$code $(grep -c . "$folder/text") $(grep -c -- "$what" "$folder/text")" "2 1 1"
}

refused "whole bits" --rows 10 --dims 10 --codec xfbq --bits 2.5
refused "1 to 65536 shards" --rows 10 --dims 10 --shards 11
refused "1 to 65536 shards" --rows 5G --dims 10
refused "5000 dims\|up to 4096 dims" --rows 10 --dims 5000
refused "segments" --rows 10 --dims 64 --segments 32x4
refused "segments" --rows 10 --dims 64 --segments 64x4 --bits 2
refused "keeps all 8" --rows 10 --dims 64 --codec raw --bits 2
refused "up to 4096 dims" --rows 10 --dims 4097 --codec rbe
refused "whole bits" --rows 10 --dims 64 --codec rbe --bits 2.5
refused "--code-dims is for --codec rbe" --rows 10 --dims 64 --code-dims 32
refused "codec" --rows 10 --dims 64 --codec none
refused "rows" --dims 64

echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
