#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Searches of an index of which shards are missing or damaged, with --allow-partial: the answers of a search of the rows that
# are there, for any codec, ranks, replicas and batches, with lists, filters and deleted rows, on an emulated device, and
# what a brute force finds; coverage, exit code 76, reasons; resumed runs; what is refused as before.
# usage: check_partial.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
# ctest labels: asan
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_python
find_ranks 2 4
most_ranks=${ranks_axis[-1]}
cd "$folder"

"$python" - "$base" "$queries" <<'END_OF_ROWS'
import numpy, sys
rows = numpy.fromfile(sys.argv[1], "u1", offset=8).reshape(-1, 128)[:2400]
queries = numpy.fromfile(sys.argv[2], "u1", offset=8).reshape(-1, 128)[:60]
numpy.save("rows.npy", rows); numpy.save("q.npy", queries)
shard = numpy.arange(2400) // 600
some = numpy.random.default_rng(3).random(2400) < 0.2
numpy.save("some.npy", some)
for name, gone in ("2", [2]), ("03", [0, 3]), ("012", [0, 1, 2]):
    there = ~numpy.isin(shard, gone)
    numpy.save(f"there_{name}.npy", there)
    numpy.save(f"some_there_{name}.npy", there & some)
    ids = numpy.flatnonzero(there)
    distances = ((rows[ids].astype("i4")[None] - queries.astype("i4")[:, None]) ** 2).sum(2)
    numpy.save(f"exact_{name}.npy", ids[numpy.argsort(distances, 1, kind="stable")[:, :10]])
END_OF_ROWS
ask=(--queries q.npy --k 10 --quiet --force)

# without NAME SHARDS: NAME.SHARDS is NAME, and has none of these.
without() {
    rm -rf "$1.$2"
    cp -r "$1" "$1.$2"
    local i
    for ((i = 0; i < ${#2}; i++)); do rm "$1.$2/shard-0000${2:i:1}-of-00004.codes"; done
}

# partial SHARE INDEX RANKS OUT OPTIONS...: exit code 76, and what OUT.coverage.npy and OUT.json have.
partial() {
    local share=$1 index=$2 ranks=$3 out=$4
    shift 4
    refused 76 "$out is partial: a query has seen $share of the rows: $index/" \
        on "$ranks" search --index "$index" "${ask[@]}" --out "$out" --allow-partial "$@"
    check "$out: coverage $share" "$python" -c 'import json, numpy, sys
shares, facts = numpy.load(sys.argv[1] + ".coverage.npy"), json.load(open(sys.argv[1] + ".json"))
assert shares.dtype == "f8" and shares.shape == (60,) and (shares == float(sys.argv[2])).all(), shares
assert facts["coverage"] == shares.min() and facts["run"]["exit_code"] == 76 and facts["run"]["status"] == "partial"
assert len(facts["missing_shards"]) == round(4 * (1 - shares.min())) and facts["missing_shards"][0]["why"], facts' \
        "$out" "$share"
}

# ---- all codecs ----------------------------------------------------------------------------------

codes=("raw|--codec raw|" "saq|--bits 2|--oversample 3" "pq|--codec pq|--refine none" "sq8|--codec sq8|"
    "lists|--bits 2 --lists 12|--probe all" "ordered|--codec raw --lists 12|--probe all"
    "residual|--bits 2 --lists 12 --residual yes|--probe all --refine none")
for code in "${codes[@]}"; do
    IFS='|' read -r name how search <<<"$code"
    read -ra how <<<"$how"
    read -ra search <<<"$search"
    check "encode $name" "$program" encode --base rows.npy --metric l2 --shards 4 --copy-vectors --calibrate off \
        --index "$name" --quiet "${how[@]}"
    for gone in 2 03 012; do
        [[ $gone == 2 || $name == raw || $name == lists ]] || continue
        share=$("$python" -c "print(f'{1 - ${#gone} / 4:.4f}')")
        without "$name" $gone
        check "$name: a search of rows that are there" "$program" search --index "$name" "${ask[@]}" \
            --allow there_$gone.npy --out expected "${search[@]}"
        partial "$share" "$name.$gone" 1 found "${search[@]}"
        same_bytes expected found "$name without $gone"
        partial "$share" "$name.$gone" "$most_ranks" found --batch 7 "${search[@]}"
        same_bytes expected found "$name without $gone, $most_ranks ranks"
        [[ $name != raw ]] || check "$name without $gone: brute force" "$python" -c "import numpy
ids = numpy.fromfile('found', '<i4', 600, offset=8).reshape(60, 10)
assert (ids == numpy.load('exact_$gone.npy')).all()"
    done
    check "$name: with a filter" "$program" search --index "$name" "${ask[@]}" --allow some_there_2.npy --out expected \
        "${search[@]}"
    partial 0.7500 "$name.2" "$most_ranks" found --allow some.npy "${search[@]}"
    same_bytes expected found "$name without 2, with a filter"
    refused 65 'missing from the index' "$program" search --index "$name.2" "${ask[@]}" --out no "${search[@]}"
    if [[ -x $emulated && $name != ordered && $name != residual ]]; then
        check "$name: there" "$program" search --index "$name" "${ask[@]}" --allow there_2.npy --out expected "${search[@]}"
        refused 76 'is partial' "$emulated" search --index "$name.2" "${ask[@]}" --out found --allow-partial \
            --device emulated "${search[@]}"
        same_bytes expected found "$name without 2, emulated"
    fi
done
for ranks in "${ranks_axis[@]}"; do
    partial 0.2500 raw.012 "$ranks" "few$ranks"
    same_bytes few1 "few$ranks" "three of four shards are missing, $ranks ranks"
    partial 0.7500 lists.2 "$ranks" "look$ranks" --probe 4 --batch $((5 * ranks))
    same_bytes look1 "look$ranks" "some lists, $ranks ranks"
done
check "some lists: rows that are there" "$python" -c "import numpy
ids = numpy.fromfile('look1', '<i4', 600, offset=8)
assert ((ids < 1200) | (ids >= 1800)).all()"

# More ranks than shards: both replicas lack it.
"$program" encode --base rows.npy --metric l2 --codec raw --shards 2 --copy-vectors --index two --quiet
rm two/shard-00001-of-00002.codes
for ranks in "${ranks_axis[@]}"; do
    refused 76 'is partial: a query has seen 0.5000 of the rows: two/shard-00001-of-00002.codes: missing' \
        on "$ranks" search --index two "${ask[@]}" --out "two$ranks" --allow-partial
    same_bytes two1 "two$ranks" "two shards, $ranks ranks"
done

# A rank whose host does not have it: another that answers for the same shard takes its place, if there is one.
if ((most_ranks >= 4)); then
    mkdir good bad
    cp -r raw two good
    cp -r raw two bad
    rm -rf good/two && "$program" encode --base rows.npy --metric l2 --codec raw --shards 2 --index good/two --quiet
    rm -rf bad/two && cp -r good/two bad/two
    rm bad/two/shard-00001-of-00002.codes bad/raw/shard-00003-of-00004.codes
    # shellcheck disable=SC2016 # for the script
    stand_in "$folder/view" 'if [ "$OMPI_COMM_WORLD_RANK" = 3 ]; then cd "$VIEWS/bad"; else cd "$VIEWS/good"; fi
exec "$VIEWED" "$@"'
    view=(env "BITSWEEP=$folder/view" "VIEWED=$program" "VIEWS=$folder" "$run" -n 4 search --queries "$folder/q.npy" --k 10
        --quiet --force --allow-partial)
    check "whole" "$program" search --index raw "${ask[@]}" --out expected
    check "a replica takes over" "${view[@]}" --index two --out "$folder/found"
    same_bytes expected found "a replica takes over"
    refused 76 'a query has seen 0.7500 of the rows: raw/shard-00003-of-00004.codes' "${view[@]}" --index raw \
        --out "$folder/found"
fi

# ---- what may be wrong ---------------------------------------------------------------------------

check "with deleted rows" "$program" delete --index lists --rows 1300:1350 --quiet
check "rows that are there" "$program" search --index lists "${ask[@]}" --probe all --allow there_2.npy --out expected
# damaged WHAT PATTERN: of the index damaged, after a command has harmed it.
damaged() {
    refused 65 "$2" "$program" search --index damaged "${ask[@]}" --probe all --out no
    refused 76 "is partial: a query has seen 0.7660 of the rows: .*$2" \
        "$program" search --index damaged "${ask[@]}" --probe all --out found --allow-partial
    same_bytes expected found "$1"
    rm -rf damaged
    cp -r lists damaged
}
shard=damaged/shard-00002-of-00004
cp -r lists damaged
truncate -s -1 $shard.codes && damaged "shorter" 'bytes, the manifest says'
: >$shard.codes && damaged "empty" 'shard-00002-of-00004.codes'
flip $shard.codes 5000 && damaged "a flipped bit" 'block . of .* is corrupt'
flip $shard.codes 9 && damaged "a header" 'header is corrupt|belongs to'
flip $shard.codes -3 && damaged "a footer" 'footer is corrupt'
rm $shard.lists && damaged "no lists" 'shard-00002-of-00004.lists'
flip $shard.lists 40 && damaged "lists" 'shard-00002-of-00004.lists'
rm $shard.vectors && damaged "no rows" 'shard-00002-of-00004.vectors: missing'
truncate -s -128 $shard.vectors && damaged "fewer rows" 'shard-00002-of-00004.vectors'
rm damaged/deleted-*.bits && damaged "no deleted rows" 'deleted-'
cp lists/shard-00001-of-00004.codes $shard.codes && damaged "another shard" 'shard-00002-of-00004.codes'
# A row, whether or not a query finds it: the first of the first list.
flip $shard.vectors 4101
refused 76 'is partial: .*rows at places .* are not those the index was made from' \
    "$program" search --index damaged "${ask[@]}" --probe all --out found --allow-partial
same_bytes expected found "a row"
rm $shard.codes && mkdir $shard.codes
refused 76 'is partial: .*shard-00002-of-00004.codes' \
    "$program" search --index damaged "${ask[@]}" --probe all --out found --allow-partial
same_bytes expected found "a folder in its place"

# Nothing is left, or what is needed is not a shard.
cp -r raw.012 none && rm none/shard-00003-of-00004.codes
for ranks in "${ranks_axis[@]}"; do
    refused 65 'no shard with rows is left: none/.*: missing from the index' \
        on "$ranks" search --index none "${ask[@]}" --out no --allow-partial
done
cp -r saq headless && flip headless/manifest.pb 50
refused 65 'manifest.pb' "$program" search --index headless "${ask[@]}" --out no --allow-partial
"$program" encode --base rows.npy --metric l2 --shards 2 --index refers --quiet
mv rows.npy moved.npy
refused 74 'no shard with rows is left: .*rows.npy: cannot open.*--set-source' \
    "$program" search --index refers "${ask[@]}" --out no --allow-partial
mv moved.npy rows.npy
check "nothing is missing" on "$most_ranks" search --index saq "${ask[@]}" --out whole --allow-partial --json
cp "$folder/stdout" said
check "nothing is missing: coverage" json_says said '"coverage": 1.0'
check "nothing is missing: no file" test ! -e whole.coverage.npy
check "all of it" "$program" search --index saq "${ask[@]}" --out expected
same_bytes expected whole "nothing is missing"

# ---- what is made of it --------------------------------------------------------------------------

check "truth" "$program" groundtruth --base rows.npy --metric l2 "${ask[@]}" --out truth
refused 76 'is partial' "$program" search --index raw.2 "${ask[@]}" --out part --allow-partial
refused 2 'part is partial: a query has seen 0.7500 of the rows; --partial compares it' \
    "$program" eval --results part --groundtruth truth
refused 2 'is partial' "$program" eval --results part --groundtruth truth --force
check "eval --partial" "$program" eval --results part --groundtruth truth --partial --json
cp "$folder/stdout" said
check "eval says so" json_says said '"coverage": 0.75'
check "a copy" "$program" convert --in part --out copy --quiet
refused 2 'copy is partial' "$program" eval --results copy --groundtruth truth
refused 76 'part.npz is partial' "$program" search --index raw.2 "${ask[@]}" --out part.npz --allow-partial
check "beside .npz" cmp part.coverage.npy part.npz.coverage.npy
check "made whole" "$program" search --index raw "${ask[@]}" --out part
check "made whole: no coverage" test ! -e part.coverage.npy
check "made whole: eval" "$program" eval --results part --groundtruth truth

# ---- stopped and resumed -------------------------------------------------------------------------

# killed OUT: a run of raw.2 that is killed once it has a journal; perhaps it was done before.
export BITSWEEP_JOURNAL_SECONDS=0.001
"$python" -c 'import numpy; numpy.save("many.npy", numpy.random.default_rng(8).integers(0, 200, (3000, 128), "u1"))'
many=(--queries many.npy --k 10 --batch 2 --quiet --threads 1)
killed() {
    "$program" search --index raw.2 "${many[@]}" --allow-partial --out "$1" 2>/dev/null &
    while [[ ! -s $1.journal ]] && kill -0 $! 2>/dev/null; do sleep 0.02; done
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    if [[ -e $1 ]]; then echo "$1: too late"; fi
}
refused 76 'is partial' "$program" search --index raw.2 "${many[@]}" --allow-partial --out many
check "whole" "$program" search --index raw "${many[@]}" --out all
killed again
if [[ ! -e again ]]; then
    refused 76 'again is partial' on "$most_ranks" search --index raw.2 "${many[@]}" --allow-partial --out again --resume
fi
same_bytes many again "partial and resumed"
check "partial and resumed: coverage" cmp many.coverage.npy again.coverage.npy
# The shard is back.
cp raw/shard-00002-of-00004.codes raw.2
mv raw.2 kept
killed_of() {
    without raw 2
    killed "$1"
    rm -rf raw.2
    cp -r kept raw.2
}
killed_of mended
if [[ ! -e mended ]]; then
    check "whole again" "$program" search --index raw.2 "${many[@]}" --out mended --resume
    same_bytes all mended "partial batches are done anew"
    check "no coverage" test ! -e mended.coverage.npy
fi
killed_of mixed
if [[ ! -e mixed ]]; then
    refused 76 'mixed is partial: a query has seen 0.7500 of the rows; --resume without' \
        "$program" search --index raw.2 "${many[@]}" --allow-partial --out mixed --resume
fi
check "each query says what it has seen" "$python" - <<'END_OF_CHECK'
import numpy
def ids(name):
    return numpy.fromfile(name, "<i4", 30000, offset=8).reshape(3000, 10)
shares = numpy.load("mixed.coverage.npy")
whole = shares == 1
assert set(shares) <= {0.75, 1.0} and not whole.all()
assert (ids("mixed")[whole] == ids("all")[whole]).all() and (ids("mixed")[~whole] == ids("many")[~whole]).all()
END_OF_CHECK
finish
