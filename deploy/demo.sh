#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on real data: a sweep over codes of several sizes in 4 shards, on 4 ranks. Or text in, text out. See --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$root/build/demo
sample_base=$root/tests/data/sift20k_base.u8bin
sample_queries=$root/tests/data/sift20k_query.u8bin
base=$sample_base
queries=$sample_queries
sample_text=$root/tests/data/oewn_pairs.tsv
metric=
ranks=4
gpu=
text=

help() {
    cat <<'END'
usage: deploy/demo.sh [--out FOLDER] [--base FILE --queries FILE --metric cosine|ip|l2]
       [--ranks N] [--gpu WHICH]
       deploy/demo.sh --text [FILE] [--out FOLDER]

Installs what is missing, builds, and runs the main job as a sweep: computes the exact ground truth,
encodes the vectors with several codes into 4 shards, searches each index with N ranks for 10
neighbours, by code alone (x1) and with the best 50 refined (x5), and writes a table and plots of
recall against bytes a vector and queries a second. Ends with three lines of Python that search an
index, and runs them where NumPy is.

With --text it trains a text network on pairs of texts, codes their documents, asks three questions
and prints what it finds.

  --text [FILE]    lines of a query, a tab and its document [tests/data/oewn_pairs.tsv: 1,781 senses
                   of Open English WordNet; with so few, questions must be like theirs]
  --out FOLDER     where everything goes; a folder of an earlier demo is replaced [build/demo]
  --base FILE      vectors [tests/data/sift20k_base.u8bin: 20,000 real SIFT descriptors]
  --queries FILE   queries [tests/data/sift20k_query.u8bin]
  --metric M       what is nearest; needed with --base [cosine]; xfbq takes part under cosine only
  --ranks N        ranks [4]
  --gpu WHICH      what GPU kernels are compiled for: 80,90,90a, all, none or auto (deploy/build.sh)
END
}

fail() {
    echo "demo.sh: $1" >&2
    exit 2
}

while (($#)); do
    case $1 in
    -h | --help) help && exit 0 ;;
    --text)
        text=$sample_text
        if (($# > 1)) && [[ $2 != -* ]]; then text=$2 && shift; fi
        shift
        ;;
    --out | --base | --queries | --metric | --ranks | --gpu)
        (($# > 1)) || fail "$1 needs a value; --help tells more"
        declare "${1#--}=$2"
        shift 2
        ;;
    *) fail "unknown option $1; --help tells more" ;;
    esac
done

# What can be told without the program.
check_options() {
    [[ ! $text || -f $text ]] || fail "--text $text: no such file"
    [[ ! $text || ($base == "$sample_base" && $queries == "$sample_queries" && ! $metric) ]] ||
        fail "--text has a demo of its own: no --base, --queries, --metric beside it"
    if [[ $base != "$sample_base" || $queries != "$sample_queries" ]]; then
        [[ $base != "$sample_base" && $queries != "$sample_queries" ]] || fail "--base and --queries go together"
        [[ $metric ]] || fail "--base needs --metric cosine, ip or l2"
    fi
    metric=${metric:-cosine}
    [[ $metric =~ ^(cosine|ip|l2)$ ]] || fail "--metric $metric: cosine, ip or l2"
    [[ $ranks =~ ^[1-9][0-9]{0,3}$ ]] || fail "--ranks $ranks: 1 or more"
    local what
    for what in base queries; do # FILE.hdf5:NAME is a part of a file
        [[ ${!what} == synth:* || -f ${!what} || -f ${!what%:*} ]] || fail "--$what ${!what}: no such file"
    done
    [[ $out ]] || fail "--out: the name is empty"
    [[ ! -e $out || -e $out/demo.plan ]] || fail "--out $out is there and was not made by this script; name another folder"
}
check_options

"$root/deploy/install.sh"
echo "demo.sh: building; the first time this takes some minutes"
"$root/deploy/build.sh" release --program ${gpu:+--gpu "$gpu"}

# Pairs to a model, documents to codes, questions to answers.
ask_questions() {
    local bitsweep=$root/build/release/bitsweep question
    ln -sf "$(realpath "$text")" "$out/pairs.tsv" # a name that says what it is
    "$bitsweep" train --text "$out/pairs.tsv" --precision float --batch 128 --rate 0.0005 --epochs 12 \
        --model "$out/text.rbe"
    "$bitsweep" encode --base "$out/pairs.tsv:2" --model "$out/text.rbe" --metric cosine --bits 4 --index "$out/index-text"
    for question in "the battery is dead" "this makes me sad" "cover the metal with zinc"; do
        echo "question: $question"
        "$bitsweep" search --index "$out/index-text" --text "$question" --k 3 --show "$out/pairs.tsv:2"
    done
    echo "ask more: $bitsweep search --index $out/index-text --show $out/pairs.tsv:2 --k 3 --text \"...\""
}
if [[ $text ]]; then
    rm -rf "$out"
    mkdir -p "$out"
    touch "$out/demo.plan" # a folder of this script
    ask_questions
    exit
fi

for vectors in "$base" "$queries"; do
    [[ ! $vectors =~ \.(hdf5|h5)(:|$) ]] || continue # which part is read the command knows alone
    "$root/build/release/bitsweep" info "$vectors" --quiet >/dev/null
done

rm -rf "$out"
mkdir -p "$out"
printf '%s\n' "codec=xfbq bits=2,3,4,6" "codec=saq bits=1,1.5,2,2.5,3,4,6" >"$out/demo.plan"
"$root/deploy/run.sh" -n "$ranks" sweep --base "$base" --queries "$queries" --metric "$metric" --k 10 \
    --oversample 1,5 --plan "$out/demo.plan" --shards 4 --folder "$out" --force
echo "plots     $out/sweep-bytes.svg, sweep-pareto.svg; all in $out/report.html"
echo "indexes   $out/index-saq-3 and so on: $root/build/release/bitsweep info $out/index-saq-3"

lines="import bitsweep
queries = bitsweep.read(\"$queries\")
values, ids = bitsweep.Index(\"$out/index-saq-3\").search(queries, k=10)"
echo "in Python, after pip install ./python (docs/python.md):"
printf '%s\n' "$lines" | sed 's/^/    /'
for python in python3 /usr/bin/python3; do
    "$python" -c 'import numpy' 2>/dev/null || continue
    echo "which finds for the first query"
    PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1 BITSWEEP_LIBRARY=$root/build/release/libbitsweep.so \
        "$python" -c "$lines"$'\nprint("   ", *ids[0])'
    break
done
