#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How many bits embeddings of text need, and what they cost: the tables of docs/embeddings.md, on stdout.
# usage: bench/embeddings.sh BITSWEEP VECTORS.fbin FOLDER [ROWS]
#
# VECTORS.fbin are embeddings in random order, such as bench/peers/text_vectors.py makes of a text a line; the last 2,000
# are the queries. ROWS (200K) generated vectors of 384, 768 and 1,536 dims with a spectrum like theirs follow. One thread;
# times are CPU time of an average pass, as other programs may run beside. FOLDER keeps sweeps for the next run.
set -euo pipefail

if (($# < 3)); then
    echo "usage: bench/embeddings.sh BITSWEEP VECTORS.fbin FOLDER [ROWS]" >&2
    exit 2
fi
program=$(realpath "$1") vectors=$(realpath "$2") folder=$3 rows=${4:-200K}
num_queries=2000
spectrum=0.25 # standard deviations of components fall as (i + 1)^-0.25
mkdir -p "$folder"
cd "$folder"

# swept FOLDER ARGUMENT...
swept() {
    local name=$1
    shift
    "$program" sweep --metric cosine --k 10 --oversample 1,5 --threads 1 --folder "$name" --resume "$@" >&2
}

# table FOLDER...: bytes a vector, recall by code alone, and with the best 50 refined.
table() {
    local name
    printf '| code | bytes a vector | by code alone | CPU us a query | best 50 refined | CPU us a query |\n'
    printf '| --- | ---: | ---: | ---: | ---: | ---: |\n'
    for name; do
        awk -F, 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i; next}
            {
                code = $at["algorithm"] " " ($at["subspaces"] > 0 ? $at["subspaces"] " x " : "") $at["bits"]
                if (!(code in bytes)) order[++count] = code
                bytes[code] = $at["bytes_per_vector"]
                recall[code, $at["oversample"]] = sprintf("%.4f", $at["recall"])
                cpu[code, $at["oversample"]] = sprintf("%.0f", 1e6 * $at["cpu_seconds_a_query"])
            }
            END {
                for (i = 1; i <= count; i++) {
                    code = order[i]
                    printf "| `%s` | %s | %s | %s | %s | %s |\n", code, bytes[code], recall[code, 1], cpu[code, 1],
                        recall[code, 5], cpu[code, 5]
                }
            }' "$name/sweep.csv"
    done
}

all=$("$program" info "$vectors" --json | sed -nE 's/^ *"rows": ([0-9]+),?$/\1/p')
first=$((all - num_queries))
if [[ ! -e base.fbin ]]; then
    "$program" convert --in "$vectors" --rows "0:$first" --out base.fbin --quiet
    "$program" convert --in "$vectors" --rows "$first:" --out queries.fbin --quiet
fi
swept real --base base.fbin --queries queries.fbin --codec saq:1:8,xfbq:1:8,rbe:1:3,pq:8,sq8 --subspaces 16,32,64,128
printf '%s rows of 256 dims, %s queries, cosine, one thread of %s:\n\n' "$first" "$num_queries" \
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
table real
for dims in 384 768 1536; do
    [[ -e made$dims.fbin ]] || "$program" synth --count "$rows" --dims "$dims" --spectrum "$spectrum" --out "made$dims.fbin" \
        --queries 500 --queries-out "asked$dims.fbin" --quiet
    swept "made$dims" --base "made$dims.fbin" --queries "asked$dims.fbin" --codec saq:1:4,8
    printf '\n%s generated rows of %s dims:\n\n' "$rows" "$dims"
    table "made$dims"
done
