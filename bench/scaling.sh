#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the model of a cluster's times (bench/scaling.md) against searches with fixed work a rank,
# and plots what it predicts. See --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export BITSWEEP=${BITSWEEP:-$root/build/release/bitsweep}
ranks=${RANKS:-8}
limit=20                                                # percent
options=(--rows 500K --dims 96 --threads 1 --repeat 7) # of bench cluster
far=(--alpha 2e-6 --beta 8e-11) # between the hosts of the cluster that is plotted: 2 us, 100 Gb/s

help() {
    cat <<END
usage: bench/scaling.sh OUT_FOLDER [OPTIONS of bench cluster, instead of
       ${options[*]}]

\`bench cluster\` searches generated vectors on 1, 2, 4, ... RANKS (8) ranks of this machine, so many
rows a rank, and measures rates on one rank and a message's times between two; the model of
bench/scaling.md says from them how long each search should take. Writes to OUT_FOLDER

  table.md              milliseconds of a batch by phase of search, measured / predicted
  rates.json            what bench cluster said, for plan --rates
  scaling.svg, .png     measured and predicted; the prediction to 1,024 ranks
  check.tsv, predicted.tsv  what is plotted

and ends with 1 if a prediction is off by more than $limit % of what was measured. Takes some
minutes on a quiet machine; on another one nothing of it is worth keeping.
END
}

# number FILE KEY: the last number of that name.
number() {
    sed -n "s/^ *\"$2\": \([-0-9.e+]*\),\{0,1\}\$/\1/p" "$1" | tail -n 1
}

# plan ROWS RANKS OPTIONS...: plan.json, by the measured rates
plan() {
    "$BITSWEEP" plan --rows "$1" --ranks "$2" --dims "$dims" --bits "$bits" --batch "$batch" \
        --rates "$out/rates.json" --json "${@:3}" >"$out/plan.json"
}

# A line for every search with fixed work: ranks, rows, seconds of a batch, and of its phases.
measured() {
    awk -F: '
        { gsub(/[ ",]/, "") }
        $1 == "table" { is_taken = $2 == "scaling" }
        { value[$1] = $2 }
        $1 == "errors" && is_taken && value["case"] ~ /^(alone|weak)$/ {
            queries = int(value["seconds"] * value["queries_per_second"] + 0.5)
            batches = int((queries + value["batch"] - 1) / value["batch"])
            printf "%d %d %g", value["ranks"], value["rows"], value["seconds"] / batches
            n = split("encode broadcast scan merge refine finish", phases, " ")
            for (i = 1; i <= n; i++) printf " %g", value[phases[i] "_seconds"] / batches
            print ""
        }
    ' "$out/rates.json"
}

# The same seconds by the model, whose messages are in the phases of search that wait for them. Batches
# do not overlap in bench cluster, so that a batch takes the sum.
predicted() {
    local name values=()
    for name in encode broadcast scan candidates merge cuts refine answers finish; do
        values+=("$(number "$out/plan.json" "$name")")
    done
    awk '{ print $1 + $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9, $1, $2, $3 + $4, $5 + $6, $7 + $8, $9 }' <<<"${values[*]}"
}

write_table() {
    local count rows times
    echo "Milliseconds of a batch of $batch queries, measured / predicted; $dims dims, $bits bits, ranks of $threads thread(s)" \
        "on $cores cores of \"$(sed -n 's/^ *"cpu": "\(.*\)",\{0,1\}$/\1/p' "$out/rates.json" | head -n 1)\"."
    echo
    echo "| ranks | rows | batch | encode | broadcast | scan, candidates | merge, cuts | refine, answers | finish | predicted / measured |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    measured | while read -r count rows times; do
        plan "$rows" "$count" --rank-threads "$threads" --cores "$cores" --ranks-a-host "$count"
        awk -v count="$count" -v rows="$rows" -v tsv="$out/check.tsv" '
            NR == 1 { n = split($0, measured) }
            NR == 2 {
                printf "| %d | %d |", count, rows
                for (i = 1; i <= n; i++) printf " %.1f / %.1f |", 1000 * measured[i], 1000 * $i
                printf " %.3f |\n", $1 / measured[1]
                printf "%d\t%g\t%g\n", count, measured[1], $1 >>tsv
            }
        ' <(echo "$times") <(predicted)
    done
}

# series NAME ROWS OPTIONS...: ranks and queries/s of a corpus, where it has times.
series() {
    plan "$2" 1:1024 "${far[@]}" "${@:3}"
    awk -v name="$1" -F'[:,]' '
        /^ *"ranks":/ { ranks = $2 }
        /^ *"queries_per_second":/ { print name "\t" ranks + 0 "\t" $2 + 0 }
    ' "$out/plan.json"
}

write_prediction() {
    local exponent on_host=$((cores > threads ? cores / threads : 1))
    echo -e "# series\tranks\tqueries/s"
    for exponent in 9 10 11; do
        series "CPU 10^$exponent" $((10 ** exponent)) --cores "$cores" --ranks-a-host "$on_host" --memory 64G
        series "GPU 10^$exponent" $((10 ** exponent)) --device h200 --rank-threads 16 --cores 128 --ranks-a-host 8
    done
}

case ${1:-} in
-h | --help) help && exit 0 ;;
"" | -*) echo "scaling.sh: a folder is missing; --help tells more" >&2 && exit 2 ;;
esac
out=$1
shift
(($# == 0)) || options=("$@")
mkdir -p "$out"
rm -f "$out/check.tsv"
"$root/deploy/run.sh" -n "$ranks" bench cluster --case network,weak --json "${options[@]}" >"$out/rates.json"
rates() { number "$out/rates.json" "$1"; } # the last of the file
dims=$(rates dims) bits=$(rates bits) batch=$(rates batch) threads=$(rates threads) cores=$(rates cores)
read -r _ rows _ < <(measured)
write_table >"$out/table.md"
write_prediction >"$out/predicted.tsv"
if command -v gnuplot >/dev/null; then
    gnuplot -e "check='$out/check.tsv'; predicted='$out/predicted.tsv'; out='$out/scaling'; rows='$rows'" \
        -e "threads='$threads'; cores='$cores'; limit=$limit" "$root/bench/scaling.gnuplot"
else
    echo "scaling.sh: gnuplot is missing: no plots" >&2
fi
cat "$out/table.md"
awk -v limit="$limit" '
    { off = $3 / $2 - 1; if (off * off > limit * limit / 1e4) bad = bad " " $1 }
    END { if (bad) { print "scaling.sh: off by more than " limit " % on ranks:" bad; exit 1 } }
' "$out/check.tsv" >&2
