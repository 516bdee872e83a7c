#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# plan: its bytes are those of real indexes, on disk and in memory, for any number of ranks; the
# figures of a billion rows; RBE's Table 7; times from rates, given or of a file, and from nothing none.
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
"$program" train --base "$base" --metric cosine --sample 300 --batch 64 --epochs 1 --code-dims 50 --document-planes 3 \
    --model "$folder/model" --quiet
compare 3001 2 rbe --code-dims 50 --bits 3 -- --model "$folder/model"

# It knows no sizes of lists, and has to assume some.
# near WHAT GOT EXPECTED: within 5 %.
near() {
    if awk -v a="$2" -v b="$3" 'BEGIN {exit !(b > 0 && a >= 0.95 * b && a <= 1.05 * b)}'; then
        pass
    else
        complain "$1: $2, expected about $3"
    fi
}

for shards in 1 3; do
    "$program" encode --base "$base" --index "$folder/index" --metric l2 --lists 300 --shards "$shards" --copy-vectors \
        --calibrate off --force --quiet
    stage=$("$program" info "$folder/index" --json | sed -n 's/^ *"stage_dims": \([0-9]*\),$/\1/p')
    for ranks in "${ranks_axis[@]}"; do
        what="300 lists, $shards shards, $ranks ranks"
        "$program" plan --rows 20000 --dims 128 --lists 300 --shards "$shards" --ranks "$ranks" --stage "$stage" \
            --vectors uint8 --json >"$folder/plan"
        on "$ranks" search --index "$folder/index" --queries "$queries" --query-rows 0:8 --out "$folder/found" \
            --force --probe 5 --json --quiet >"$folder/search"
        near "$what: memory of all ranks" "$(of all_ranks resident_bytes)" "$(sum resident_bytes)"
        near "$what: most of a rank" "$(of rank resident_bytes)" "$(most resident_bytes)"
    done
    near "$what: .codes files" "$(of index codes_files_bytes)" "$(bytes_of .codes)"
    near "$what: .vectors files" "$(of index vectors_files_bytes)" "$(bytes_of .vectors)"
    near "$what: .lists files" "$(of index lists_files_bytes)" "$(bytes_of .lists)"
    equal "$what: centroids" "$(of index manifest_centroids_bytes)" "$((300 * 128 * 4))"
done

for type in uint8 int8; do "$program" plan --rows 1M --dims 128 --vectors $type >"$folder/$type"; done
check "int8 rows take what uint8 rows take" cmp "$folder/uint8" "$folder/int8"

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

said --rows 1G --dims 64 --bits 2 -- "^  codes +16 GB +16 GB$" "^  scales +2 GB" \
    "^  biases +4 GB"
said --rows 1G --dims 64 --bits 2 --codec xfbq --ranks 4 -- "^  codes +16 GB +4 GB$"
# Codes of 64 components stand for vectors of any dims; a query of 3 planes is 3 * 8 + 4 + 4 * 300 bytes.
said --rows 1G --dims 300 --bits 2 --codec rbe --code-dims 64 -- "x 300 dims, rbe 64x2: 24 bytes a row" \
    "^  codes +16 GB +16 GB$" "^  scales +2 GB" "^  biases +4 GB" \
    "^  raw vectors +1\.2 TB" "batch of 1000 queries: 1\.2.. MB"
said --rows 1G --dims 300 --codec rbe -- "rbe 64x2: "
said --rows 1G --dims 64 --bits 2 --k 1000 --oversample 1 --select queue -- "^ +0 +88\.040 %$" \
    "^ +1 +99\.256 %$" "^ +2 +99\.969 %$" "99\.9 %: --items 1024$"
said --rows 1M --dims 64 --k 1000 --oversample 1 --select queue -- ": 88\.[34]... % kept$" \
    "99\.9 %: --items 2$"
said --rows 1M --dims 64 --k 1000 --oversample 1 --select queue --queue-length 2 -- \
    ": 99\.0[56].. % kept$" "99\.9 %: --items 64$"
said --rows 20K --dims 64 --k 1000 --select queue --items 8 --queue-length 8 -- "\(simulated\)$"
said --rows 1M --dims 64 --k 10K --select queue --items 100K -- "too many for a table"

said --rows 100M --dims 128 --lists 65536 --vectors uint8 --ranks 8 --rank-threads 16 -- \
    "^65536 lists of 1526 rows on average; a sample of 16777216 rows" "^  order of rows in lists +834\.6 MB +104\.3 MB$" \
    "^  sample +344\.7 MB$" "^  the list of each row +400 MB$" "^  training, all rounds +7\.25e\+12 +0\.566 s$" \
    "^  lists of all rows +8\.39e\+14 +65\.5 s$"
# More than 16,384 lists are trained in cells; these are not.
said --rows 100M --dims 128 --lists 16K --list-rate 50G -- "^  training, all rounds +1\.01e\+14 +33\.6 min$"
said --rows 1M --dims 64 --lists auto -- "^4096 lists of 244\.1 rows"
# Where a shard has fewer rows than lists, nearly every row takes a bundle.
said --rows 1M --dims 64 --bits 1 --codec xfbq --lists 64K --shards 1000 -- "^  codes +25[0-9]\.. MB"
said --rows 1G --dims 96 --lists 1024 --ranks 1 --scan-rate 10G -- "^these are times of searches that look at all lists"

# refused WHAT OPTIONS: exit 2 and one line that names it.
refused() {
    local what=$1 code=0
    shift
    "$program" plan "$@" >"$folder/text" 2>&1 || code=$?
    equal "plan $*" "$code $(grep -c . "$folder/text") $(grep -c -- "$what" "$folder/text")" "2 1 1"
}

refused "whole bits" --rows 10 --dims 10 --codec xfbq --bits 2.5
refused "the index has 10 rows only" --rows 10 --dims 10 --lists 11
refused "'x' is not" --rows 10 --dims 10 --lists x
refused "threshold alone" --rows 1K --dims 10 --lists 10 --select queue
refused "more --shards" --rows 4290M --dims 64 --lists 1M --shards 1
refused "1 to 65536 shards" --rows 10 --dims 10 --shards 11
refused "1 to 65536 shards" --rows 5G --dims 10 --shards 1
refused "5000 dims\|up to 4096 dims" --rows 10 --dims 5000
refused "segments" --rows 10 --dims 64 --segments 32x4
refused "segments" --rows 10 --dims 64 --segments 64x4 --bits 2
refused "keeps all 8" --rows 10 --dims 64 --codec raw --bits 2
refused "up to 4096 dims" --rows 10 --dims 4097 --codec rbe
refused "whole bits" --rows 10 --dims 64 --codec rbe --bits 2.5
refused "--code-dims is for --codec rbe" --rows 10 --dims 64 --code-dims 32
refused "codec" --rows 10 --dims 64 --codec none
refused "rows" --dims 64
refused "1 to 10000" --rows 1M --dims 64 --k 10001

# ---- times ----

# sees OPTIONS -- PATTERN...: of several numbers of ranks, or with rates.
sees() {
    said --rows 1G --dims 96 "$@"
}

# A shard of at most 2^32 - 1 rows, and as many on every rank.
said --rows 100G --dims 96 -- "; 24 shards on 1 rank"
said --rows 100G --dims 96 --ranks 16 -- "; 32 shards on 16 ranks"

# From nothing there are no times: memory alone, and what is missing.
sees --ranks 1:1024 -- "^ +1 +1000000000 +44\.62 GB$" "^ +1024 +976563 +43\.58 MB$" "^no times: .*--scan-rate"
sees --encode-rate 1M -- "^no times: .*--scan-rate"
sees --ranks 3:20 -- "^ +3 " "^ +6 " "^ +12 " "^ +20 "
sees --ranks 1 --scan-rate 10G -- "^ +1 +1000000000 .* 100 +- +- +- +100 +10 +100\.0 %$" \
    "^not counted, .*encode .*merge .*refine .*finish"
sees --ranks 1,2 --scan-rate 10G -- "^ +1 +1000000000 .* 10 +100\.0 %$" "^ +2 +500000000 +22\.31 GB$" \
    "^no times of several ranks"
network=(--alpha 1e-6 --beta 1e-10)
sees --ranks 1,2 --scan-rate 10G "${network[@]}" -- "^ +2 +500000000 .* 100\.0 %$"
sees --ranks 1,2 --scan-rate 10G "${network[@]}" --memory 30G -- "^ +1 +1000000000 +44\.62 GB$" \
    "^ +2 +500000000 .* 20 +100\.0 %$" "^no times where a rank's part"
sees --ranks 8 --scan-rate 10G "${network[@]}" --ranks-a-host 8 --cores 2 -- "^up to 4 threads on a core"
sees --ranks 8,1 --scan-rate 10G "${network[@]}" --ranks-a-host 8 --cores 2 -- "^up to 4 threads on a core"
# The more lists rank 0 gathers, the fewer queries a batch may have.
sees --ranks 1,8 --scan-rate 10G "${network[@]}" --k 10K --merge gather -- "^seconds of a batch of 24 to 111 queries, "
# The limits of a device are computed: 989.5e12 / 96 pairs/s, and say so.
sees --ranks 1 --device h200 -- "^ +1 +1000000000 .* 97m " "computed limits of h200 .*not measured"
# Rates of a GPU do not change with threads.
sees --ranks 1 --device gpu --scan-rate 1000G --rank-threads 8 --cores 2 -- "^ +1 +1000000000 .* 1\.00 +1000 +100\.0 %$"
"$program" plan --rows 1G --dims 96 --device gpu --scan-rate 1000G --json >"$folder/text"
equal "plan --device gpu --json" "$(grep -c '"device": "gpu"' "$folder/text")" 1
refused "gpu takes" --rows 1G --dims 96 --device h200 --scan-rate 10G
said --rows 10G --dims 96 --ranks 1 --device h200 -- "^ +1 +10000000000 +446\.3 GB$" "^no times where"

# write_rates [RATES [CODE]]: further or other keys, each with a comma behind it.
write_rates() {
    cat >"$folder/rates.json" <<END
{"rates": {${1-} "scan_pairs_per_second": 4e9, "alpha_seconds": 1e-6, "beta_seconds_per_byte": 1e-10,
 "merge_candidates_per_second": 1e8, "finish_queries_per_second": 1e6, "threads": 2, "cores": 2, "ranks": 1,
 "code": {${2-} "codec": "saq", "dims": 96, "bits": 3, "query_bits": 6, "batch": 1000, "k": 10, "oversample": 5}}}
END
}

rates=(--rates "$folder/rates.json")
write_rates
sees --ranks 1,2 "${rates[@]}" -- "ranks of 2 threads, hosts of 2 cores" "scan 4e\+09 pairs/s.*merge 1e\+08" \
    "^ +1 +1000000000 .* 250 +500u +- +1m +250 "
# What is given goes before the file; half the threads take twice as long.
sees --ranks 1 "${rates[@]}" --scan-rate 1G -- "^ +1 +1000000000 .* 1000 "
sees --ranks 1 "${rates[@]}" --rank-threads 1 -- "^ +1 +1000000000 .* 500 "
# Other codes: twice the padded dims, half the rate; twice the candidates, half of them a second.
said --rows 1G --dims 192 --ranks 1 "${rates[@]}" -- "^ +1 +1000000000 .* 500 +500u +- +1m"
said --rows 1G --dims 96 --k 20 --ranks 1 "${rates[@]}" -- "^ +1 +1000000000 .* 250 +1m +- +2m"
# By planes time goes with bits and query bits.
write_rates "" '"scan": "planes",'
sees --ranks 1 "${rates[@]}" --batch 1 --bits 6 --query-bits 3 -- "^ +1 +1000000000 .* 250m "
sees --ranks 1 "${rates[@]}" --batch 1 --bits 6 --level reference -- "^ +1 +1000000000 .* 500m "

refused "rates of planes scans" --rows 1G --dims 96 "${rates[@]}"
write_rates "" '"scan": "matrix",'
refused "goes over planes" --rows 1G --dims 96 "${rates[@]}" --batch 1
# Another codec, a progressive scan of another shape, another way because of the code: scaled, and said.
said --rows 1G --dims 96 --codec xfbq --ranks 1 "${rates[@]}" -- "^ +1 +1000000000 .* 250 +500u " \
    "^rates were measured with saq, 96 dims x 3 bits, queries of 6 bits, L 50$" \
    "^and are wanted for xfbq, 96 dims x 3 bits, queries of 6 bits, L 50; scaled by .*: encode x 96$" \
    "^a guess: choosing candidates takes as long a row as with saq$"
write_rates "" '"scan": "progressive-matrix",'
said --rows 1G --dims 192 --bits 4 --ranks 1 "${rates[@]}" -- "^ +1 +1000000000 .* 500 " \
    "^and are wanted for saq, 192 dims x 4 bits, .*: scan x 0\.5, encode x 0\.25, refine x 0\.5$" \
    "^a guess: as many rows go on after the first stage"
sees --ranks 1 "${rates[@]}" -- "^ +1 +1000000000 .* 250 "
equal "rates of the same code are not scaled" "$(grep -c 'scaled\|guess' "$folder/text")" 0
write_rates "" '"scan": "planes",'
sed -i 's/"batch": 1000/"batch": 1/' "$folder/rates.json"
said --rows 1G --dims 96 --codec raw --k 10 --batch 1 --ranks 1 "${rates[@]}" -- "scan x 0\.28.*, finish x 5$" \
    "^a guess: scans go over planes as measured; a batch of such codes takes matrix$"
sees --ranks 1 "${rates[@]}" --batch 1 --bits 6 --scan-rate 1G -- "^ +1 +1000000000 .* 1\.00 "
equal "a rate that is given is not scaled" "$(grep -c 'scan x' "$folder/text")" 0
"$program" plan --rows 1G --dims 192 --batch 1 --ranks 1 "${rates[@]}" --json >"$folder/text"
equal "plan --json says what was scaled" "$(grep -cE '"(scan_factor": 0\.5|encode_factor": 0\.25|is_other_codec": false)' "$folder/text")" 3
# Tables: half the look-ups, twice the rate; of other codes, or of other bits, nothing is known.
write_rates "" '"scan": "tables",'
refused "codec saq, 3 bits, say nothing of codec pq, 8 bits" --rows 1G --dims 96 --codec pq "${rates[@]}"
sed -i 's/"codec": "saq", "dims": 96, "bits": 3, "query_bits": 6/"codec": "pq", "dims": 96, "bits": 8, "subspaces": 24/' \
    "$folder/rates.json"
said --rows 1G --dims 96 --codec pq --ranks 1 "${rates[@]}" -- "^ +1 +1000000000 .* 250 "
said --rows 1G --dims 96 --codec pq --subspaces 12 --ranks 1 "${rates[@]}" -- "^ +1 +1000000000 .* 125 " \
    "^rates were measured with pq, 96 dims, 24 subspaces of 8 bits, L 50$" \
    "^and are wanted for pq, 96 dims, 12 subspaces of 8 bits, L 50; scaled by .*: scan x 2$"
refused "pq, 8 bits, say nothing of codec pq, 4 bits" --rows 1G --dims 96 --codec pq --bits 4 "${rates[@]}"
sed -i 's/"subspaces": 24/"subspaces": 97/' "$folder/rates.json"
damaged_pq=0
"$program" plan --rows 1G --dims 96 --codec pq "${rates[@]}" >"$folder/text" 2>&1 || damaged_pq=$?
equal "more subspaces than dims" "$damaged_pq $(grep -c "subspaces or batch are missing" "$folder/text")" "65 1"
write_rates
for list in 1,,2 '1,' :4 4: 1:2:4 1:2,4 0000000000000000000000000000000002 0000000000000000000000000000000002:4; do
    refused "not a whole number\|1 to 4096" --rows 1G --dims 96 --ranks "$list"
done
refused "1 to 4096" --rows 1G --dims 96 --ranks 0:4
refused "empty range" --rows 1G --dims 96 --ranks 4:2
refused "one number of --ranks" --rows 1G --dims 96 --ranks 1,2 --select queue

# damaged CODE WHAT: a file of rates, written before, that ends with exit code CODE and one line.
damaged() {
    local code=0
    "$program" plan --rows 1G --dims 96 "${rates[@]}" >"$folder/text" 2>&1 || code=$?
    equal "rates: $2" "$code $(grep -c . "$folder/text") $(grep -c "rates.json.*$2" "$folder/text")" "$1 1 1"
}

write_rates '"refine_rows_per_second": 0,'
damaged 65 "refine_rows_per_second is no number"
write_rates '"encode_queries_per_second": "many",'
damaged 65 "encode_queries_per_second is no number"
write_rates '"cores": 1.5,'
sed -i 's/, "cores": 2//' "$folder/rates.json"
damaged 65 "cores is no count"
for number in -1 0 NaN 1e999 1e19 true '[]'; do
    write_rates "\"refine_rows_per_second\": $number,"
    damaged 65 ""
done
write_rates '"busy_core_share": 1.5,'
damaged 65 "busy_core_share is above 1"
write_rates
sed -i 's/"dims": 96, //' "$folder/rates.json"
damaged 65 "dims, bits, query_bits or batch"
write_rates
sed -i 's/"dims": 96,/"dims": 96.5,/' "$folder/rates.json"
damaged 65 "dims is no count"
write_rates
sed -i 's/"query_bits": 6,/"query_bits": 9,/' "$folder/rates.json"
damaged 65 "dims, bits, query_bits or batch"
write_rates "" '"scan": "sideways",'
damaged 65 "scan is none"
write_rates "" '"codec": "none",'
sed -i 's/ "codec": "saq",//' "$folder/rates.json"
damaged 65 "codec is none"
echo '{"rates": {"threads": 2}}' >"$folder/rates.json"
damaged 65 "no rate in it"
echo '[1, 2]' >"$folder/rates.json"
damaged 65 'no JSON object'
echo '{"rate": {}}' >"$folder/rates.json"
damaged 65 'no object "rates"'
echo '{"rates": {' >"$folder/rates.json"
damaged 65 "line 2"
: >"$folder/rates.json"
damaged 65 "line 1"
if ((has_mpi)); then # one rank says it for all
    code=0
    on 2 plan --rows 1G --dims 96 "${rates[@]}" >"$folder/text" 2>&1 || code=$?
    equal "rates: damaged, on 2 ranks" "$code $(grep -c . "$folder/text")" "65 1"
fi
rm "$folder/rates.json"
damaged 74 "No such file"

finish
