#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# convert there and back gives the same bytes, what does not fit is refused; HDF5 files give what the
# plain ones give, through every command; --exclude-self is the answer of a search with one more
# neighbour without the query's own row, on any number of ranks.
# usage: check_convert.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
run=$(realpath "$run")
tools=$(dirname "$program")/tests
export OMP_NUM_THREADS=1
cd "$folder"
find_ranks 3
num_ranks=${ranks_axis[-1]}

refuse() { # CODE TEXT ARGUMENTS
    refused "$1" "$2" "$program" "${@:3}"
}

convert() { # IN OUT OPTIONS...
    check "convert $*" "$program" convert --in "$1" --out "$2" --quiet "${@:3}"
}

facts() { # of FILE.json, without how the run ended that made it
    sed '/^  "run": {$/,/^  }$/d; s/,$//' "$1.json"
}

# ---- vectors ----

check "base" "$program" synth --count 700 --dims 24 --type uint8 --seed 5 --clusters 9 --out base.u8bin \
    --queries 40 --queries-out query.u8bin --quiet

check_vectors() {
    local from=base.u8bin to
    for to in a.bvecs a.fvecs a.npy a.fbin back.u8bin; do
        convert $from $to
        from=$to
    done
    same_bytes base.u8bin back.u8bin
    convert base.u8bin half.npy --type float16
    convert half.npy half.u8bin
    same_bytes base.u8bin half.u8bin
    convert base.u8bin part.fvecs --rows 100:107
    convert part.fvecs part.u8bin
    check "rows 100 to 106" cmp <(tail -c +9 part.u8bin) <(tail -c +$((9 + 2400)) base.u8bin | head -c 168)
    # float16 has infinities and NaN, too: one row of inf, -inf, NaN and 1.
    printf '\1\0\0\0\4\0\0\0\0\0\200\177\0\0\200\377\0\0\300\177\0\0\200\77' >odd.fbin
    convert odd.fbin odd.npy --type float16
    convert odd.npy odd_back.fbin
    same_bytes odd.fbin odd_back.fbin
    local files
    files=$(ls)
    refuse 65 'odd.fbin: row 0: number 0 is inf, which uint8 has not' convert --in odd.fbin --out no.u8bin
    refuse 65 'base.u8bin: row [0-9]*: number [0-9]* is [0-9]*, which int8 has not' \
        convert --in base.u8bin --out no.i8bin
    refuse 65 'row 0: number 0 is .*, which uint8 has not' \
        convert --in synth:count=9,dims=3 --out no.u8bin
    refuse 65 'which float16 has not' convert --in synth:count=9,dims=3 --out no.npy --type float16
    refuse 2 'exists; --force' convert --in base.u8bin --out a.fbin
    refuse 2 'holds float32' convert --in base.u8bin --out no.fbin --type uint8
    refuse 2 'must end in' convert --in base.u8bin --out no.hdf5
    refuse 2 'holds ids' convert --in base.u8bin --out no.ibin
    refuse 2 '--rows 699:701' convert --in base.u8bin --out no.fbin --rows 699:701
    check "nothing is left of what was refused" diff <(echo "$files") <(ls)
}

# ---- neighbours ----

check_neighbours() {
    check "truth" "$program" groundtruth --base base.u8bin --queries query.u8bin --metric l2 --k 12 \
        --out truth --quiet
    convert truth split.neighbors.ibin
    check "values beside" test -s split.distances.fbin
    convert split.neighbors.ibin joined
    same_bytes truth joined
    facts truth >truth.facts && facts joined >joined.facts
    same_bytes truth.facts joined.facts
    check "no run of its own" test "$(grep -c '"run"' truth.json joined.json | tr '\n' ' ')" = "truth.json:1 joined.json:0 "
    convert truth truth.npz
    convert truth.npz joined --force
    same_bytes truth joined
    check "a ground truth for NumPy" "$program" groundtruth --base base.u8bin --queries query.u8bin --metric l2 --k 12 \
        --out direct.npz --quiet
    same_bytes truth.npz direct.npz
    check "is read" "$program" eval --results direct.npz --groundtruth truth
    refuse 2 'no.npy: a result is two arrays, which .npz holds' groundtruth --base base.u8bin --queries query.u8bin \
        --metric l2 --k 12 --out no.npy
    convert truth ids.ivecs
    convert ids.ivecs ids.ibin
    same_bytes ids.ibin split.neighbors.ibin
    check "eval" "$program" eval --results truth --groundtruth ids.ibin --json
    mv stdout facts
    check "all found" grep -q '"12-recall@12": 1.0' facts
    refuse 2 'ids without values' convert --in ids.ivecs --out no
    refuse 2 'has neighbours' convert --in truth --out no.fbin
    head -c -4 split.distances.fbin >short
    mv short split.distances.fbin
    refuse 65 'split.distances.fbin: the header says' eval --results truth \
        --groundtruth split.neighbors.ibin
}

# What docs/formats.md says of reading a result.
check_python() {
    if ! python3 -c 'import numpy' 2>/dev/null; then
        echo "python3 with numpy is missing: reading a result with it is skipped"
        return
    fi
    cat >read.py <<'PYTHON'
import numpy as np
n, k = (int(x) for x in np.fromfile("truth", np.uint32, 2))
ids = np.fromfile("truth", np.int32, n * k, offset=8).reshape(n, k)
values = np.fromfile("truth", np.float32, n * k, offset=8 + 4 * n * k).reshape(n, k)
base = np.load("a.npy").astype(np.int64)
np.save("wide.npy", np.asfortranarray(base.astype(float)))
np.save("columns.npy", np.asfortranarray(base.astype(np.uint8)))
query = np.fromfile("query.u8bin", np.uint8, offset=8).reshape(n, 24).astype(np.int64)
with np.load("truth.npz") as arrays:
    assert (arrays["ids"] == ids).all() and (arrays["values"] == values).all()
assert (((base[ids] - query[:, None]) ** 2).sum(2) == values).all()
PYTHON
    check "numpy reads a result" python3 read.py
    refuse 2 'wide.npy: has float64: --type float32' convert --in wide.npy --out no.npy
    refuse 65 'wide.npy: numbers are of type float64; `bitsweep convert' info wide.npy
    convert wide.npy narrow.npy --type float32
    convert narrow.npy narrow.u8bin
    same_bytes base.u8bin narrow.u8bin
    convert columns.npy rows.u8bin
    same_bytes base.u8bin rows.u8bin
}

# ---- HDF5 ----

find_all() { # NAME BASE QUERIES TRUTH OPTIONS OF encode...: an index, a search, its recall
    local name=$1 base=$2 queries=$3 truth=$4
    shift 4
    check "encode $name" "$program" encode --base "$base" --index "index-$name" --metric l2 --shards 2 \
        --quiet "$@"
    check "search $name" on "$num_ranks" search --index "index-$name" --queries "$queries" --k 12 \
        --out "result-$name" --quiet
    check "eval $name" "$program" eval --results "result-$name" --groundtruth "$truth"
    check "verify $name" "$program" verify "index-$name" --quiet
}

# The attribute `distance` is the metric where none is given, and no other is taken.
check_distance() {
    local pair word metric codec
    for pair in "angular cosine" "euclidean l2" "dot ip" "ip ip"; do
        read -r word metric <<<"$pair"
        "$tools/hdf5_sample" base.u8bin query.u8bin truth said.h5 plain "$word"
        check "truth, $word" on "$num_ranks" groundtruth --base said.h5 --queries said.h5 --out said --force --quiet
        check "$word is $metric" grep -q "\"metric\": \"$metric\"" said.json
        check "encode, $word" on "$num_ranks" encode --base said.h5 --index said.index --force --json
        cp stdout said.encode
        check "$word is $metric in an index" grep -q "\"metric\": \"$metric\"" said.encode
        check "the same metric may be given" "$program" encode --base said.h5 --index said.index --metric "$metric" \
            --force --quiet
    done
    # The last has ip.
    local other='metric l2: said.h5 says its distance is ip \(ip\);'
    refuse 2 "$other" encode --base said.h5 --index no --metric l2
    refuse 2 "$other" groundtruth --base said.h5 --queries said.h5 --out no --metric l2
    refuse 2 "$other" groundtruth --base base.u8bin --queries said.h5 --out no --metric l2
    refuse 2 "$other" sweep --base said.h5 --queries said.h5 --folder no --metric l2
    refuse 2 "$other" train --base said.h5 --model no --metric l2
    refuse 2 "$other" search --index index-u8bin --queries said.h5 --out no
    for codec in xfbq "rbe --model no"; do
        # shellcheck disable=SC2086
        refuse 2 'metric cosine: said.h5 says its distance is ip' encode --base said.h5 --index no --codec $codec
    done
    # The words are in a file that a convert makes no more.
    convert said.h5 said.u8bin
    check "after a conversion" "$program" encode --base said.u8bin --index said.index --metric l2 --force --quiet
    "$tools/hdf5_sample" base.u8bin query.u8bin truth said.h5 plain hamming
    refuse 2 "said.h5 says its distance is 'hamming', none of angular, euclidean, dot: --metric" \
        groundtruth --base said.h5 --queries said.h5 --out no
    check "what nobody knows says nothing" "$program" groundtruth --base said.h5 --queries said.h5 --metric l2 \
        --k 12 --out said --force --quiet
    same_bytes truth said
    for codec in saq raw; do
        refuse 2 'metric cosine, ip or l2 is needed: plain.hdf5' encode --base plain.hdf5 --index no --codec $codec
    done
    refuse 2 'metric cosine, ip or l2 is needed: plain.hdf5' sweep --base plain.hdf5 --queries plain.hdf5 --folder no
    refuse 2 'metric cosine, ip or l2 is needed: plain.hdf5' train --base plain.hdf5 --model no
    check "xfbq knows one metric" "$program" encode --base plain.hdf5 --index said.index --codec xfbq --force --quiet
    if [[ -e no ]]; then complain "a refused command left its output"; else pass; fi
}

check_hdf5() {
    if [[ ! -x $tools/hdf5_sample ]]; then
        refuse 2 'built without libhdf5' info a.hdf5
        echo "this build has no libhdf5: HDF5 is skipped"
        return
    fi
    "$tools/hdf5_sample" base.u8bin query.u8bin truth plain.hdf5
    "$tools/hdf5_sample" base.u8bin query.u8bin truth packed.h5 packed
    find_all u8bin base.u8bin query.u8bin truth
    find_all plain plain.hdf5 plain.hdf5 plain.hdf5
    find_all named plain.hdf5:train plain.hdf5:test plain.hdf5:neighbors --copy-vectors
    same_bytes result-u8bin result-plain
    same_bytes result-u8bin result-named
    refuse 65 'packed.h5: its numbers are in chunks.*h5repack' encode --base packed.h5 --metric l2 --index no
    refuse 65 'packed.h5:neighbors: its numbers are in chunks.*h5repack' eval --results result-plain \
        --groundtruth packed.h5:neighbors
    check "truth of HDF5" on "$num_ranks" groundtruth --base plain.hdf5 --queries plain.hdf5 --metric l2 \
        --k 12 --out truth-hdf5 --quiet
    same_bytes truth truth-hdf5
    convert plain.hdf5:test query-back.u8bin
    same_bytes query.u8bin query-back.u8bin
    convert plain.hdf5:neighbors ids-back.ivecs
    same_bytes ids.ivecs ids-back.ivecs
    refuse 2 "no dataset 'tset'; the file has: neighbors, test, train" info plain.hdf5:tset
    check "all datasets" "$program" info plain.hdf5
    mv stdout datasets
    check "each has a line" diff datasets - <<'LINES'
plain.hdf5:neighbors: 40 queries x 12 neighbours, ids only
plain.hdf5:test: 40 rows x 24 dims, uint8
plain.hdf5:train: 700 rows x 24 dims, uint8
LINES
    check "packed ones, too" "$program" info packed.h5 --json
    mv stdout datasets
    check "they say why not" test "$(grep -c '"refused": "packed.h5:.*h5repack' datasets)" = 3
    check_distance
    # The file changes under its index.
    "$tools/hdf5_sample" base.u8bin query.u8bin truth plain.hdf5 packed
    refuse 65 'plain.hdf5:train: its numbers are in chunks' search --index index-plain --queries query.u8bin --out no
}

# ---- --exclude-self ----

# dump RESULT K: a line for each query with its id, then id and the value's bits of each place.
dump() {
    local places=$((700 * $2))
    paste <(tail -c +9 "$1" | head -c $((4 * places)) | od -An -v -w$((4 * $2)) -t d4) \
        <(tail -c $((4 * places)) "$1" | od -An -v -w$((4 * $2)) -t x4) |
        awk -v k="$2" '{printf "%d", NR - 1; for (i = 1; i <= k; i++) printf " %s:%s", $i, $(i + k); print ""}'
}

# without_self K: lines of K + 1 places to the first K that are not the query's own.
without_self() {
    awk -v k="$1" '{n = 0; printf "%s", $1
        for (i = 2; n < k; i++) if (index($i, $1 ":") != 1) {printf " %s", $i; n++}
        print ""}'
}

self_search() { # NAME RANKS OUT OPTIONS...
    check "search ${*:1:3}" on "$2" search --index "self-$1" --queries base.u8bin --out "$3" --force \
        --quiet "${@:4}"
}

# exclude_self NAME K+1 OPTIONS...: of all rows by exact values, or by keys alone.
exclude_self() {
    local name=$1 more=$2 ranks
    shift 2
    self_search "$name" 1 with --k $((more)) "$@"
    dump with "$more" | without_self $((more - 1)) >expected
    for ranks in 1 $num_ranks; do
        self_search "$name" "$ranks" without --k $((more - 1)) --exclude-self --batch 173 "$@"
        check "$name, $ranks ranks, $*: the others in their order" \
            diff expected <(dump without $((more - 1)))
    done
    check "$name: the facts say so" grep -q '"exclude_self": true' without.json
}

check_exclude_self() {
    local part
    check "saq" "$program" encode --base base.u8bin --index self-saq --metric l2 --shards 5 --quiet
    check "xfbq" "$program" encode --base base.u8bin --codec xfbq --bits 1 --index self-xfbq --shards 5 \
        --metric cosine --quiet
    check "raw" "$program" encode --base base.u8bin --codec raw --metric ip --index self-raw --shards 5 \
        --quiet
    exclude_self saq 8 --oversample 1000
    exclude_self saq 8 --refine none
    exclude_self xfbq 8 --refine none
    exclude_self raw 8
    # Not all own rows are among their nearest: else nothing shows what then is left out.
    # shellcheck disable=SC2016
    check "ip leaves out some that are not there" \
        awk 'index($0, " " $1 ":") == 0 {n++} END {exit n < 100}' <(dump with 8)
    self_search xfbq 1 one --k 7 --exclude-self --select histogram --merge gather
    self_search xfbq "$num_ranks" many --k 7 --exclude-self --select histogram --batch 50
    same_bytes one many
    check "a part of the queries" "$program" search --index self-saq --queries base.u8bin \
        --query-rows 300:700 --k 7 --oversample 1000 --exclude-self --out part --quiet
    self_search saq 1 without --k 7 --oversample 1000 --exclude-self
    convert without rest --rows 300:700
    same_bytes part rest
    check "eval takes it" "$program" eval --results part --groundtruth rest
    refuse 2 'the index has 700 rows only, one of them the query' search --index self-saq \
        --queries base.u8bin --k 700 --exclude-self --out no
    check "all others" "$program" search --index self-saq --queries base.u8bin --query-rows 0:3 --k 699 \
        --exclude-self --out all --quiet
    part=$(od -An -v -w4 -t d4 -j 8 -N 8388 all | awk '$1 < 0' | wc -l)
    check "no place is empty" test "$part" = 0
}

check_vectors
check_neighbours
check_python
check_hdf5
check_exclude_self

finish
