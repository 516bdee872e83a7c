#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Text in, text out: train --text, rows of text wherever vectors are read, the same bytes on every level and for any
# ranks and threads, answers as lines, hostile text, and every error as one line.
# usage: check_text.sh BITSWEEP_BINARY SOURCE_FOLDER
# ctest labels: asan
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_ranks 2
find_levels
pairs=$2/tests/data/oewn_pairs.tsv
cd "$folder"
head -n 400 "$pairs" >some.tsv

# train RANKS MODEL ARGUMENTS: small.
train() {
    local ranks=$1 model=$2
    shift 2
    check "train $model" "$run" -n "$ranks" -- train --text some.tsv --text-dims 32 --code-dims 32 --batch 64 --epochs 2 \
        --validation 0.1 --quiet --model "$model" "$@"
}

# ---- training ----

train 1 codes.rbe --threads 1
train 1 threads.rbe --threads 3
same_bytes codes.rbe threads.rbe "the same bytes for 1 and 3 threads"
train 1 float.rbe --precision float
train 1 hashed.rbe --hashed --trigrams 500
train 1 mixed.rbe --precision query-float
train 1 part.rbe --checkpoint part --max-batches 7
train 1 part.rbe --checkpoint part --resume
same_bytes codes.rbe part.rbe "a resumed training has the same bytes"
if ((${ranks_axis[-1]} == 2)); then
    train 2 two.rbe --threads 1
    train 2 two_again.rbe --threads 2 --checkpoint two --max-batches 5
    train 2 two_again.rbe --threads 2 --checkpoint two --resume
    same_bytes two.rbe two_again.rbe "2 ranks: the same bytes, resumed"
fi
check "info" "$program" info hashed.rbe
cp stdout said
check "which tells of the text network" grep -qE '^  text +500 letter trigrams, hashed, groups of 3 words$' said
train 1 plotted.rbe --plot loss.svg
check "a table of the losses" test "$(wc -l <loss.tsv)" = 3

# ---- rows ----

for level in "${levels[@]}"; do
    for model in float hashed; do
        check "$model, level $level" "$program" convert --in some.tsv:2 --model $model.rbe --level "$level" --threads 2 \
            --out "$model-$level.fbin" --quiet
        same_bytes "$model-reference.fbin" "$model-$level.fbin" "$model, level $level: the same rows"
    done
done
check "queries" "$program" convert --in some.tsv:1 --as-queries --model float.rbe --out queries.fbin --quiet
# A source of text is one of vectors.
text=(--base some.tsv:2 --queries some.tsv:1 --model float.rbe)
check "ground truth of text" "$program" groundtruth "${text[@]}" --metric cosine --out truth --quiet
cut -f 2 some.tsv >documents.txt
cut -f 1 some.tsv >queries.txt
check "ground truth of lines" "$program" groundtruth --base documents.txt --queries queries.txt --model float.rbe \
    --metric cosine --out lines --quiet
same_bytes truth lines "columns are as lines"
for ranks in "${ranks_axis[@]}"; do
    check "encode, $ranks ranks" "$run" -n "$ranks" -- encode --base some.tsv:2 --model float.rbe --metric cosine --bits 4 \
        --shards 2 --index "float$ranks" --quiet
    check "search, $ranks ranks" "$run" -n "$ranks" -- search --index "float$ranks" --queries some.tsv:1 --oversample 20 \
        --out "found$ranks" --quiet
    same_bytes truth "found$ranks" "$ranks ranks: codes of text, refined, find what is nearest"
    check "encode rbe, $ranks ranks" "$run" -n "$ranks" -- encode --base some.tsv:2 --codec rbe --model codes.rbe --shards 2 \
        --index "codes$ranks" --quiet
    check "search rbe, $ranks ranks" "$run" -n "$ranks" -- search --index "codes$ranks" --queries some.tsv:1 \
        --out "rbe$ranks" --quiet
    same_bytes rbe1 "rbe$ranks" "$ranks ranks: learned codes, the same bytes"
done
check "by vectors" "$program" search --index float1 --queries queries.fbin --oversample 20 --out by_vectors --quiet
same_bytes truth by_vectors "converted queries find the same"
check "eval with ties" "$program" eval --results found1 --groundtruth truth "${text[@]}"
check "lists" "$program" encode --base documents.txt --model float.rbe --metric cosine --lists 8 --index lists --quiet
check "a search of all lists" "$program" search --index lists --queries queries.txt --probe 8 --oversample 20 --out in_lists --quiet
same_bytes truth in_lists "all lists find the same"
for ranks in "${ranks_axis[@]}"; do
    check "calibrate by questions, $ranks ranks" "$run" -n "$ranks" -- calibrate lists --queries queries.txt --force --quiet
    cp lists/manifest.pb "table$ranks"
    same_bytes table1 "table$ranks" "$ranks ranks: the same table"
done
check "calibrate by their rows" "$program" calibrate lists --queries queries.fbin --force --quiet
same_bytes table1 lists/manifest.pb "the same table by rows of the questions"
check "a search by it" "$program" search --index lists --queries queries.txt --recall 0.9 --out by_table --quiet
for index in float1 codes1 lists; do check "verify $index" "$program" verify $index; done
check "no copy of rows of learned codes" test ! -e codes1/shard-00000-of-00002.vectors
# Whoever knows the text moves it: learned codes need it no more.
mv some.tsv moved.tsv
check "without the text" "$program" search --index codes1 --queries queries.txt --out moved --quiet
same_bytes rbe1 moved "the same"
mv moved.tsv some.tsv

# Queries in floats, documents in bits: what its queries find is what vectors of both sides would, nearly.
check "encode, queries in floats" "$program" encode --base some.tsv:2 --codec rbe --model mixed.rbe --index mixed --quiet
for level in "${levels[@]}"; do
    check "search, level $level" "$program" search --index mixed --queries some.tsv:1 --level "$level" --out "mixed-$level" --quiet
    same_bytes mixed-reference "mixed-$level" "level $level: the same answer of queries in floats"
done
check "info" "$program" info mixed.rbe
cp stdout said
check "it says so" grep -qE '^  query +floats, searched as 7 planes$' said
check "verify" "$program" verify mixed

# ---- answers as text ----

check "one question" "$program" search --index codes1 --text "$(sed -n 7p queries.txt)" --k 3 --show documents.txt
cp stdout said
check "has a title and three lines" test "$(wc -l <said)" = 4
"$program" search --index codes1 --queries queries.txt --query-rows 6:7 --k 3 --out one --show some.tsv:2 |
    tail -n 4 >with_queries
same_bytes said with_queries "the answer of the same query in a file"
check "as JSON" "$program" search --index codes1 --text "dogs" --k 2 --show documents.txt --json
check "with rows and texts" test "$(grep -cE '"(value|row|text)": ' stdout)" = 6
for ranks in "${ranks_axis[@]}"; do
    "$run" -n "$ranks" -- search --index codes1 --text "a dog" --k 3 >"asked$ranks"
    same_bytes asked1 "asked$ranks" "$ranks ranks: the same answer"
done

# ---- hostile text ----

{
    printf 'plain text\n\n   \r\n.,;!\n\xff\xfe\xc0\xaf\xed\xa0\x80\n'
    printf 'nul \0 byte\n\xe2\x80\xae\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d\n\xf0\x9f\x98\x80\xf0\x9f\x91\x8d\n\x1b[31mred\n'
    head -c 1000000 /dev/zero | tr '\0' 'x'
    printf '\n'
    for ((i = 0; i < 3000; i++)); do printf 'word%d ' "$i"; done
    printf '\nlast without an end'
} >hostile.txt
check "hostile text" "$program" encode --base hostile.txt --model float.rbe --metric cosine --index hostile --quiet
check "learned codes of it" "$program" encode --base hostile.txt --codec rbe --model codes.rbe --index hostile_codes --quiet
check "hostile queries" "$program" search --index hostile --queries hostile.txt --k 3 --out hostile_found --quiet
for question in " " $'\xff' $'\e]0;x\a' "$(head -c 100000 /dev/zero | tr '\0' 'y')"; do
    check "a hostile question" "$program" search --index hostile_codes --text "$question" --k 12 --show hostile.txt
    check "prints no control characters" test "$(LC_ALL=C tr -d '\n' <stdout | LC_ALL=C grep -cP '[\x00-\x1f]' || true)" = 0
done

# ---- errors ----

refuse() {
    refused "$1" "^bitsweep: .*($2)" "$program" "${@:3}"
}
refuse 2 "some.tsv:2: text becomes vectors by a model" groundtruth --base some.tsv:2 --queries some.tsv:1 --metric cosine --out x
refuse 2 "some.tsv:2: text needs --model" encode --base some.tsv:2 --metric cosine --index x
refuse 65 "line 1 has no column 9" encode --base some.tsv:9 --metric cosine --model float.rbe --index x --quiet
refuse 2 "the model of mixed has 7" search --index mixed --queries some.tsv:1 --query-bits 3 --out x
refuse 2 "a model of full precision" encode --base some.tsv:2 --codec rbe --model float.rbe --index x
refuse 2 "have no lists" encode --base some.tsv:2 --codec rbe --model codes.rbe --lists 4 --index x
refuse 74 "missing.txt: cannot open" encode --base missing.txt --model float.rbe --metric cosine --index x
refuse 65 "" encode --base some.tsv:2 --model some.tsv --metric cosine --index x
: >empty.txt
refuse 65 "empty.txt: is empty" encode --base empty.txt --model float.rbe --metric cosine --index x
"$program" train --base "$base" --metric cosine --sample 600 --code-dims 8 --model vectors.rbe --quiet
refuse 2 "a model of vectors" convert --in some.tsv --model vectors.rbe --out x.fbin
"$program" encode --base "$base" --rows 0:100 --metric l2 --index vectors --quiet
refuse 2 "no index of texts" search --index vectors --text "a dog"
refuse 2 "text becomes vectors" search --index vectors --queries some.tsv --out x
refuse 2 "prints its answers" search --index codes1 --text "a dog" --out x
refuse 2 "search needs --queries" search --index codes1 --out x
refuse 2 "search needs --out" search --index codes1 --queries some.tsv
refuse 2 "must be FILE.txt" search --index codes1 --text "a dog" --show some.csv
refuse 2 "no --queries" train --text some.tsv --queries some.tsv --documents some.tsv --model x
refuse 2 "is an input" train --text some.tsv --model some.tsv --force
printf 'a\tb\nno tab here\n' >bad.tsv
refuse 65 "line 2 has no column 2" train --text bad.tsv --model x
check "nothing is left behind" test ! -e x -a ! -e x.fbin
finish
