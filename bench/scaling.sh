#!/usr/bin/env bash
# Checks the model of a cluster's times (bench/scaling.md) against searches with fixed work a rank,
# and plots what it predicts. See --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export BITSWEEP=${BITSWEEP:-$root/build/release/bitsweep}
run=$root/deploy/run.sh

rows=500000     # a rank
queries=4000    # of a run
ranks=(1 2 4 8)
rounds=7
threads=1       # a rank
limit=20        # percent
network=""      # ALPHA,BETA between these ranks; measured unless given
far=2e-6,8e-11  # the same of the cluster that is plotted
out=""

dims=96
batch=1000
cores=$(nproc)
one_number='[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?'
two_numbers="^$one_number,$one_number\$"

help() {
    cat <<END
usage: bench/scaling.sh [options] OUT_FOLDER

Searches generated vectors on 1, 2, 4 and 8 ranks of this machine, so many rows a rank, in turns.
Rates are measured on one rank, in the same turns, and a message's times between two; the model of
bench/scaling.md says from them how long each search should take. Writes to OUT_FOLDER

  table.md              measured, predicted, ratio; phases; rates; where it stops growing
  rates.json            for plan --rates
  scaling.svg, .png     measured and predicted; the prediction to 1,024 ranks
  predicted.tsv         what is plotted

and ends with 1 if a prediction is off by more than $limit % of what was measured. Takes some
minutes on a quiet machine; on another one nothing of it is worth keeping.

  --rows N              rows a rank ($rows)
  --queries N           queries of a run ($queries), in batches of $batch
  --ranks "N ..."       numbers of ranks (${ranks[*]})
  --threads N           threads a rank ($threads)
  --rounds N            turns; medians count ($rounds)
  --limit PERCENT       largest difference ($limit)
  --network ALPHA,BETA  seconds of a message and of each byte between these ranks; without it
                        \`bench cluster\` measures them
  --far ALPHA,BETA      of the cluster that is plotted ($far: 2 us, 100 Gb/s)
END
}

fail() {
    echo "scaling.sh: $1" >&2
    exit "${2:-2}"
}

parse() {
    while (($#)); do
        case $1 in
        -h | --help) help && exit 0 ;;
        --rows | --queries | --ranks | --threads | --rounds | --limit | --network | --far)
            (($# > 1)) || fail "$1 needs a value; --help tells more"
            case $1 in
            --rows) rows=$2 ;;
            --queries) queries=$2 ;;
            --ranks) read -ra ranks <<<"$2" ;;
            --threads) threads=$2 ;;
            --rounds) rounds=$2 ;;
            --limit) limit=$2 ;;
            --network) network=$2 ;;
            --far) far=$2 ;;
            esac
            shift 2
            ;;
        -*) fail "unknown option $1; --help tells more" ;;
        *)
            [[ -z $out ]] || fail "one folder only; --help tells more"
            out=$1 && shift
            ;;
        esac
    done
    [[ -n $out ]] || fail "a folder is missing; --help tells more"
    local number
    for number in "$rows" "$queries" "$threads" "$rounds" "$limit" "${ranks[@]}"; do
        [[ $number =~ ^[1-9][0-9]*$ ]] || fail "'$number' is no number above 0"
    done
    [[ $far =~ $two_numbers ]] || fail "'$far' is not of the form ALPHA,BETA"
    [[ -z $network || $network =~ $two_numbers ]] || fail "'$network' is not of the form ALPHA,BETA"
    [[ -x $BITSWEEP ]] || fail "$BITSWEEP is missing; deploy/build.sh builds it"
}

# number FILE KEY: the last number of that name.
number() {
    sed -n "s/^ *\"$2\": \([-0-9.e+]*\),\{0,1\}\$/\1/p" "$1" | tail -n 1
}

calculate() { # EXPRESSION
    awk "BEGIN { printf \"%.9g\", $1 }"
}

median() { # of the numbers on stdin
    sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# ---- measuring ----

vectors() { # COUNT SEED
    echo "synth:count=$1,dims=$dims,seed=$2,clusters=2000"
}

make_index() { # NAME ROWS SHARDS
    "$BITSWEEP" encode --base "$(vectors "$2" 1)" --metric l2 --bits 3 --shards "$3" \
        --index "$out/$1" --force --quiet
}

# search RANKS THREADS INDEX OPTIONS...: one pass after one that does not count; search.json.
search() {
    local count=$1 own=$2 index=$3
    shift 3
    "$run" -n "$count" search --index "$out/$index" --queries "$(vectors "$queries" 2)" --scan matrix \
        --threads "$own" --batch "$batch" --warmup 1 --out "$out/result" --force --json --quiet "$@" \
        >"$out/search.json"
}

note() { # NAME VALUE
    echo "$2" >>"$out/measured.$1"
}

phase() {
    number "$out/search.json" "$1"
}

# One rank: what the model takes. Merging on its own is that of many shards on one rank.
calibrate() {
    search 1 "$threads" index.1
    note scan "$(calculate "$rows * $queries / $(phase scan)")"
    note encode "$(calculate "$queries / $(phase encode)")"
    note refine "$(calculate "$(phase survivors) / $(phase refine)")"
    note finish "$(calculate "$queries / ($(phase finish) + $(phase write))")"
    search 1 "$threads" index.merge --merge ladder
    note merge "$(calculate "$queries * 8 * 7 / $(phase merge)")" # places 1, 2, 4, ... 32, 50
    ((threads < cores)) || return 0
    search 1 "$cores" index.1
    note busy "$(calculate "$rows * $queries / $(phase scan)")"
}

measure() { # RANKS
    search "$1" "$threads" "index.$1"
    local batches=$(((queries + batch - 1) / batch)) name
    note "seconds.$1" "$(calculate "$(phase seconds) / $batches")"
    for name in encode broadcast scan merge refine finish; do
        note "$name.$1" "$(calculate "$(phase "$name") / $batches")"
    done
}

measure_network() {
    [[ -z $network ]] || return 0
    "$BITSWEEP" bench cluster --help >/dev/null 2>&1 ||
        fail "this program has no \`bench cluster\`: give --network ALPHA,BETA"
    "$run" -n 2 bench cluster --case network --threads 1 --json --quiet >"$out/network.json"
    network=$(number "$out/network.json" alpha_seconds),$(number "$out/network.json" beta_seconds_per_byte)
    [[ $network =~ $two_numbers ]] || fail "\`bench cluster\` found no network: give --network ALPHA,BETA" 1
}

# ---- predicting ----

rate() {
    median <"$out/measured.$1"
}

# Of a core's speed alone what it has when all work. Rates of several threads are of busy cores already:
# with share(b) of bench/scaling.md, r = share(cores) / share(threads) is solved for share(cores).
busy_core_share() {
    awk -v r="$(calculate "$(rate busy) / $(rate scan) / $cores * $threads")" \
        -v a="$(calculate "($threads - 1) / ($cores - 1)")" \
        'BEGIN { s = r * (1 - a) / (1 - r * a); printf "%.9g", (s > 0 && s < 1 ? s : 1) }'
}

write_rates() {
    local share=""
    [[ ! -s $out/measured.busy ]] || share="\"busy_core_share\": $(busy_core_share),"
    cat >"$out/rates.json" <<END
{"rates": {
  "alpha_seconds": ${network%,*},
  "beta_seconds_per_byte": ${network#*,},
  "scan_pairs_per_second": $(rate scan),
  "encode_queries_per_second": $(rate encode),
  "merge_candidates_per_second": $(rate merge),
  "refine_rows_per_second": $(rate refine),
  "finish_queries_per_second": $(rate finish),
  $share
  "cores": $cores, "threads": $threads, "ranks": 1,
  "code": {"codec": "saq", "dims": $dims, "bits": 3, "query_bits": 6, "rows": $rows, "batch": $batch,
           "k": 10, "oversample": 5, "scan": "matrix"}
}}
END
}

# plan ROWS RANKS OPTIONS...: plan.json
plan() {
    local of=$1 on=$2
    shift 2
    "$BITSWEEP" plan --rows "$of" --dims "$dims" --bits 3 --ranks "$on" --rates "$out/rates.json" \
        --batch "$batch" --json "$@" >"$out/plan.json"
}

predict() { # RANKS
    plan $((rows * $1)) "$1" --rank-threads "$threads" --cores "$cores" --ranks-a-host "$1"
}

# ---- report ----

milliseconds() {
    awk -v s="$1" 'BEGIN { printf "%.1f", 1000 * s }'
}

# both RANKS MEASURED PREDICTED...: "measured / predicted" of a phase of search, which holds several of the model.
both() {
    local count=$1 measured=$2 sum=0 name
    shift 2
    for name; do sum="$sum + $(number "$out/plan.json" "$name")"; done
    echo "$(milliseconds "$(rate "$measured.$count")") / $(milliseconds "$(calculate "$sum")")"
}

write_check() {
    local count measured predicted ratio
    echo "| ranks | rows | threads a core | measured ms (least to most) | predicted ms | predicted / measured |"
    echo "| --- | --- | --- | --- | --- | --- |"
    : >"$out/check.tsv"
    for count in "${ranks[@]}"; do
        predict "$count"
        measured=$(rate "seconds.$count") predicted=$(number "$out/plan.json" seconds)
        ratio=$(calculate "$predicted / $measured")
        local least most
        least=$(sort -g "$out/measured.seconds.$count" | head -n 1)
        most=$(sort -g "$out/measured.seconds.$count" | tail -n 1)
        printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$count" "$measured" "$least" "$most" "$predicted" "$ratio" >>"$out/check.tsv"
        echo "| $count | $((rows * count)) | $(number "$out/plan.json" threads_a_core) |" \
            "$(milliseconds "$measured") ($(milliseconds "$least") to $(milliseconds "$most")) |" \
            "$(milliseconds "$predicted") | $(printf %.3f "$ratio") |"
    done
}

write_phases() {
    local count
    echo "| ranks | encode | broadcast | scan, candidates | merge, cuts | refine, answers | finish |"
    echo "| --- | --- | --- | --- | --- | --- | --- |"
    for count in "${ranks[@]}"; do
        predict "$count"
        echo "| $count | $(both "$count" encode encode) | $(both "$count" broadcast broadcast) |" \
            "$(both "$count" scan scan candidates) | $(both "$count" merge merge cuts) |" \
            "$(both "$count" refine refine answers) | $(both "$count" finish finish) |"
    done
}

# Ranks from which rank 0 merges longer than a rank scans: R^2 = rows merge / (7 scan).
merging_takes_over() { # ROWS SCAN MERGE
    awk -v n="$1" -v s="$2" -v m="$3" 'BEGIN { printf "%.0f", sqrt(n * m / (7 * s)) }'
}

# fastest SERIES: the number of ranks with most queries/s.
fastest() {
    awk -F'\t' -v name="$1" '$1 == name && $3 > most { most = $3; ranks = $2 } END { print ranks }' \
        "$out/predicted.tsv"
}

# Where the prediction stops growing; far ranks of one thread, or H200s with 16 threads beside.
write_limits() {
    local exponent scan merge gpu
    scan=$(rate scan) merge=$(rate merge) gpu=$(calculate "989.5e12 / $dims")
    echo "| rows | CPU: merging takes longer than the scan from | most queries/s at | H200 scan limit: from | most at |"
    echo "| --- | --- | --- | --- | --- |"
    for exponent in 9 10 11; do
        echo "| 10^$exponent | $(merging_takes_over "1e$exponent" "$scan" "$merge") ranks |" \
            "$(fastest "CPU 10^$exponent") |" \
            "$(merging_takes_over "1e$exponent" "$gpu" "$(calculate "$merge * 16 / $threads")") ranks |" \
            "$(fastest "GPU 10^$exponent") |"
    done
}

# spread NAME: "MEDIAN (LEAST to MOST)" of a rate.
spread() {
    echo "$(rate "$1") ($(sort -g "$out/measured.$1" | head -n 1) to $(sort -g "$out/measured.$1" | tail -n 1))"
}

write_table() {
    echo "Batches of $batch queries, $dims dims, saq 3 bits, matrix scan, k 10, L 50; ranks of $threads thread(s) on" \
        "$cores cores of \"$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)\", medians of" \
        "$rounds rounds of $queries queries."
    echo
    write_check
    echo
    echo "Milliseconds of a batch by phase of \`search\`, measured / predicted:"
    echo
    write_phases
    echo
    echo "Rates of one rank, median (least to most): scan $(spread scan) pairs/s, encode $(spread encode) queries/s," \
        "merge $(spread merge) candidates/s, refine $(spread refine) rows/s, finish $(spread finish) queries/s." \
        "Network: alpha ${network%,*} s, beta ${network#*,} s/byte; busy_core_share" \
        "$(sed -n 's/.*"busy_core_share": \(.*\),/\1/p' "$out/rates.json")."
    echo
    echo "By the prediction (alpha ${far%,*} s, beta ${far#*,} s/byte between hosts):"
    echo
    write_limits
}

# lines NAME: "ranks queries/s seconds" of plan.json, where it has times.
lines() {
    awk -v name="$1" -F'[:,]' '
        /^ *"ranks":/ { ranks = $2 }
        /^ *"seconds":/ { seconds = $2 }
        /^ *"queries_per_second":/ { print name "\t" ranks + 0 "\t" $2 + 0 "\t" seconds + 0 }
    ' "$out/plan.json"
}

write_prediction() {
    local rows_of name
    local own=(--alpha "${far%,*}" --beta "${far#*,}") on_host=$((cores > threads ? cores / threads : 1))
    {
        echo -e "# series\tranks\tqueries/s\tseconds of a batch"
        predict_fixed
        for rows_of in 1 10 100; do
            name="CPU 10^$((8 + ${#rows_of}))"
            plan "${rows_of}G" 1:1024 "${own[@]}" --cores "$cores" --ranks-a-host "$on_host" --memory 64G
            lines "$name"
        done
        for rows_of in 1 10 100; do
            name="GPU 10^$((8 + ${#rows_of}))"
            plan "${rows_of}G" 1:1024 "${own[@]}" --device h200 --rank-threads 16 --cores 128 --ranks-a-host 8
            lines "$name"
        done
    } >"$out/predicted.tsv"
}

predict_fixed() {
    local count
    for count in "${ranks[@]}"; do
        predict "$count"
        lines "fixed"
    done
}

draw() {
    gnuplot -e "check='$out/check.tsv'; predicted='$out/predicted.tsv'; out='$out/scaling'; rows='$rows'" \
        -e "threads='$threads'; cores='$cores'; limit=$limit" "$root/bench/scaling.gnuplot"
}

judge() {
    awk -v s="$(number "$out/rates.json" busy_core_share)" 'BEGIN { exit !(s != "" && s < 0.6) }' &&
        echo "scaling.sh: a thread for every core is hardly faster than one: the machine was not quiet" >&2
    awk -v limit="$limit" '
        { off = $6 > 1 ? $6 - 1 : 1 - $6; if (off > limit / 100) bad = bad " " $1 }
        END { if (bad) { print "scaling.sh: off by more than " limit " % on ranks:" bad; exit 1 } }
    ' "$out/check.tsv" >&2
}

parse "$@"
mkdir -p "$out"
rm -f "$out"/measured.*
for count in "${ranks[@]}"; do make_index "index.$count" $((rows * count)) "$count"; done
[[ " ${ranks[*]} " == *" 1 "* ]] || make_index index.1 "$rows" 1
make_index index.merge "$rows" 8
measure_network
for ((round = 1; round <= rounds; round++)); do
    calibrate
    for count in "${ranks[@]}"; do measure "$count"; done
    echo "round $round of $rounds" >&2
done
rm -rf "$out"/index.* "$out"/result*
write_rates
write_prediction
write_table >"$out/table.md"
if command -v gnuplot >/dev/null; then draw; else echo "scaling.sh: gnuplot is missing: no plots" >&2; fi
cat "$out/table.md"
judge
