#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Indexes that change: append, delete, compact, ids. Random histories with commands that are killed against a model of a
# few lines (living.py); the same bytes for any ranks and devices; indexes of older programs; what is refused.
# usage: check_living.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# BITSWEEP_HISTORIES: how many histories (20; 10 with QUICK=1). BITSWEEP_HISTORY: the number of the first (1).
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"

find_python
find_ranks 3
faults=$(dirname "$program")/tests/bitsweep_faults
[[ -x $faults ]] || faults=
data=$2/tests/data
number=${QUICK:+10}
number=${BITSWEEP_HISTORIES:-${number:-20}}
first=${BITSWEEP_HISTORY:-1}
mkdir "$folder/histories"
if "$python" "$2/tests/cluster/living.py" "$program" "$faults" "$folder/histories" "$first" "$number"; then
    pass "$number histories from $first on"
else
    complain "histories" /dev/null
fi

cd "$folder"
"$python" - "$base" <<'END'
import numpy, sys
rows = numpy.fromfile(sys.argv[1], "u1", offset=8).reshape(-1, 128)[:3000]
numpy.save("all.npy", rows); numpy.save("first.npy", rows[:2000]); numpy.save("more.npy", rows[1500:])
numpy.save("left.npy", rows[[i for i in range(3000) if not 100 <= i < 700]])
numpy.save("ids.npy", numpy.arange(2000) * 10**9 + 5); numpy.save("more_ids.npy", numpy.arange(1000, dtype="u8") + 7)
open("gone.txt", "w").write(" ".join(map(str, range(100, 700))))
numpy.save("gone_ids.npy", numpy.arange(100, 700) * 10**9 + 5)
END
ask=(--queries "$queries" --k 10 --quiet --force)

# The same bytes for any ranks and devices, and as from an index that is made anew.
make() {
    rm -rf "$1"
    on "$2" encode --base first.npy --metric l2 --bits 2 --lists 20 --calibrate off --index "$1" --shards 2 --quiet
    on "$2" append --index "$1" --base more.npy --rows 500: --shards 2 --quiet "${@:3}"
    on "$2" delete --index "$1" --rows gone.txt --quiet
}
look=(--probe 4 --oversample 3)
for ranks in "${ranks_axis[@]}"; do
    check "made by $ranks" make "made$ranks" "$ranks"
    check "search by $ranks" on "$ranks" search --index "made$ranks" "${ask[@]}" "${look[@]}" --out "r$ranks"
    same_bytes r1 "r$ranks"
    [[ -d kept ]] || cp -r "made$ranks" kept
    check "the same files" diff -r kept "made$ranks"
    check "verify by $ranks" on "$ranks" verify "made$ranks" --quiet
    check "compact by $ranks" on "$ranks" compact "made$ranks" --quiet
    check "search by $ranks, compact" on "$ranks" search --index "made$ranks" "${ask[@]}" "${look[@]}" --out "c$ranks"
    same_bytes c1 "c$ranks"
done
check "anew" "$program" encode --base left.npy --metric l2 --model made1 --lists 20 --calibrate off --index anew --quiet
check "search anew" "$program" search --index anew "${ask[@]}" "${look[@]}" --out a1
same_bytes c1 a1 "compact and anew"
if [[ -x $emulated ]]; then
    "$program" encode --base left.npy --metric l2 --bits 2 --index dev --quiet
    cp -r dev host
    check "append on a device" "$emulated" append --index dev --base more.npy --device emulated --quiet
    check "append on the host" "$program" append --index host --base more.npy --quiet
    check "search on a device" "$emulated" search --index dev "${ask[@]}" --device emulated --out d1
    check "search on the host" "$program" search --index host "${ask[@]}" --out h1
    same_bytes d1 h1
    check "delete" "$program" delete --index dev --rows 5:900 --quiet
    for how in "--device emulated" "--device cpu"; do
        # shellcheck disable=SC2086
        check "deleted, $how" "$emulated" search --index dev "${ask[@]}" $how --out "${how##* }"
    done
    same_bytes emulated cpu
    check "deleted, lists" "$program" delete --index made1 --rows 7:1900 --quiet
    for how in "--device emulated" "--device cpu"; do
        # shellcheck disable=SC2086
        check "deleted, lists, $how" "$emulated" search --index made1 "${ask[@]}" --probe 4 $how --out "${how##* }"
    done
    same_bytes emulated cpu "deleted, lists"
fi

# Searches while rows are deleted, one a generation, and compacted in between: each answers as one generation does, in
# which rows up to some number are gone; or it says that its files are.
"$python" -c 'import numpy; numpy.save("own.npy", numpy.load("first.npy")[:25]);
numpy.save("own_ids.npy", numpy.arange(2000))'
"$program" encode --base first.npy --ids own_ids.npy --metric l2 --bits 2 --index busy --shards 2 --quiet
(
    for row in {0..24}; do
        echo "$row" >row.txt
        "$program" delete --index busy --ids row.txt --quiet
        if ((row % 8 == 7)); then "$program" compact busy --quiet; fi
    done
    touch changed
) 2>changes &
num_busy=0
while [[ ! -e changed ]]; do
    num_busy=$((num_busy + 1))
    "$program" search --index busy --queries own.npy --k 1 --oversample 50 --out "busy.$num_busy" --quiet 2>said ||
        grep -q 'begin again' said || cat said >>wrong
done
wait
check "changes while searches run" test ! -s changes
check "$num_busy searches meanwhile" test ! -s wrong
check "each of one generation" "$python" - <<'END'
import glob, numpy
files = glob.glob("busy.*[0-9]")
assert files
for file in files:
    ids = numpy.frombuffer(open(file, "rb").read()[16:16 + 25 * 8], "<i8")
    is_gone = ids != numpy.arange(25)
    assert not (numpy.diff(is_gone.astype(int)) > 0).any(), (file, ids)
END

# Indexes of older programs.
cp -r "$data/format-2" "$data/lists-1" .
check "format-2: append" "$program" append --index format-2/index --base format-2/base.u8bin --quiet
check "format-2: delete" "$program" delete --index format-2/index --rows 3:9 --quiet
check "format-2: verify" "$program" verify format-2/index --quiet
check "format-2: compact" "$program" compact format-2/index --quiet
check "lists-1: append" "$program" append --index lists-1/index --base synth:count=300,dims=16,clusters=9,seed=9 --quiet
check "lists-1: verify" "$program" verify lists-1/index --quiet
check "lists-1: compact" "$program" compact lists-1/index --quiet
check "lists-1: calibrate" "$program" calibrate lists-1/index --quiet

# A model that the index has a copy of; and rows that have faults.
check "train" "$program" train --base first.npy --metric cosine --model m.rbe --epochs 1 --quiet
check "rbe" "$program" encode --base first.npy --codec rbe --model m.rbe --index rbe --quiet
rm m.rbe
check "rbe: append" "$program" append --index rbe --base more.npy --quiet
check "rbe: delete" "$program" delete --index rbe --rows 9:99 --quiet
check "rbe: compact" "$program" compact rbe --quiet
check "rbe: verify" "$program" verify rbe --quiet
"$python" - <<'END'
import numpy
rows = numpy.random.default_rng(1).normal(size=(400, 24)).astype("f4")
rows[[5, 250]] = numpy.nan
numpy.save("faults.npy", rows)
END
for lists in 0 8; do
    bad=(--base faults.npy --drop-bad-rows --quiet)
    check "faults" "$program" encode "${bad[@]}" --rows :200 --metric l2 --lists $lists --index "bad$lists" --check off
    check "faults: append" "$program" append "${bad[@]}" --index "bad$lists" --rows 200:
    refused 65 "faults.npy: row 250 has a NaN or Inf" \
        "$program" append --base faults.npy --index "bad$lists" --rows 200:
    "$program" delete --index "bad$lists" --rows 0:10 >"$folder/deleted"
    check "a dropped row is gone before" grep -q '^9 rows deleted, 1 were gone before; 389 rows left of 400' "$folder/deleted"
    check "faults: verify" "$program" verify "bad$lists" --quiet
    check "faults: compact" "$program" compact "bad$lists" --quiet
    check "faults: verify again" "$program" verify "bad$lists" --quiet
done

# An output is no file of a part, and no source of one.
"$program" encode --base first.npy --metric l2 --index outs --quiet
"$program" append --index outs --base more.npy --quiet
for file in outs/part-00001/shard-00000-of-00001.codes outs/part-00001/manifest.pb outs/manifest-00000.pb more.npy; do
    refused 2 "${file##*/}" "$program" search --index outs "${ask[@]}" --out "$file"
done
check "verify what was no output" "$program" verify outs --quiet

# Ids: answers, eval.
check "ids" "$program" encode --base first.npy --metric l2 --bits 3 --index ids --ids ids.npy --quiet
check "more ids" "$program" append --index ids --base more.npy --rows 500: --ids more_ids.npy --quiet
check "delete by ids" "$program" delete --index ids --ids gone_ids.npy --quiet
check "search of ids" "$program" search --index ids "${ask[@]}" --oversample 300 --out ids1
check "compact ids" "$program" compact ids --quiet
check "search of compact ids" "$program" search --index ids "${ask[@]}" --oversample 300 --out ids2
same_bytes ids1 ids2
check "truth" "$program" groundtruth --base left.npy --metric l2 "${ask[@]}" --out truth
refused 2 "ids1 has ids, truth numbers of rows: " "$program" eval --results ids1 --groundtruth truth
"$python" - <<'END'
import numpy
rows = numpy.frombuffer(open("truth", "rb").read()[8:8 + 200 * 40], "<i4")
all_ids = numpy.concatenate([numpy.load("ids.npy"), numpy.load("more_ids.npy").astype("i8")])
ids = numpy.delete(all_ids, range(100, 700))[rows]
with open("truth_ids", "wb") as out:
    out.write(numpy.array([200, 10], "<u8").tobytes() + ids.tobytes() + open("truth", "rb").read()[8 + 200 * 40:])
END
"$program" eval --results ids1 --groundtruth truth_ids --json >"$folder/eval"
check "recall of ids" grep -q '"10-recall@10": 1.0' "$folder/eval"
deleted=(--index ids --ids gone_ids.npy)
refused 2 "id 100000000005: ids has no row of this id, or it was deleted before" "$program" delete "${deleted[@]}"
refused 2 "row 2000 of ids has id 7 already|row [0-9]+ of ids has id 7 already: delete it first" \
    "$program" append --index ids --base more.npy --rows 500: --ids more_ids.npy
refused 2 "ids: its rows have ids: give --ids for new ones" "$program" append --index ids --base more.npy
refused 2 "rows of anew have none: make it with encode --ids" \
    "$program" append --index anew --base more.npy --rows :1000 --ids more_ids.npy
refused 2 "rows of anew have no ids, only numbers: use --rows" "$program" delete --index anew --ids gone_ids.npy
refused 2 "1000 ids for 3000 rows" "$program" encode --base all.npy --metric l2 --index no --ids more_ids.npy
printf '4\n5\n4\n' >twice.txt
refused 65 "id 4 is given twice, as number 1 and number 3" \
    "$program" encode --base all.npy --rows :3 --metric l2 --index no --ids twice.txt
printf '1 -2' >minus.txt
refused 65 "minus.txt: number 2 is no whole number" "$program" delete --index anew --rows minus.txt
check "nothing is left" test ! -e no

# What is refused, and what is said.
check "floats" "$program" encode --quiet --index floats --metric l2 --base synth:count=500,dims=128,seed=1
refused 2 "more.npy: has uint8 rows, the index float32: convert them first" \
    "$program" append --index floats --base more.npy
refused 2 "has 16 dims, the index 128" "$program" append --index floats --base synth:count=500,dims=16,seed=1
refused 2 "row 5000: floats has rows 0 to 499" "$program" delete --index floats --rows 499:5001
refused 2 "no row would be left" "$program" delete --index floats --rows 0:500
refused 2 "say which rows: either --rows or --ids" "$program" delete --index floats
refused 2 "no index: no manifest.pb in it" "$program" delete --index histories --rows 0:1
check "nothing has changed" json_says <("$program" info floats --json) '"rows": 500'
"$python" - floats/encode.lock <<'END' &
import fcntl, sys, time
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX), open("locked", "w").close(), time.sleep(600)
END
while [[ ! -e locked ]]; do sleep 0.05; done
refused 2 "floats: another run is writing it: wait until it ends" "$program" delete --index floats --rows 0:1
kill $!
wait $! || true
check "a search needs no lock" "$program" search --index floats --queries synth:count=9,dims=128 --k 3 --out f --quiet
"$program" delete --index floats --rows 0:60 --quiet
check "info" grep -q 'generation 1, 1 part, 60 rows deleted, 12 %; bitsweep compact pays' <("$program" info floats)
"$program" append --index floats --base synth:count=2000,dims=128,seed=2,clusters=1000,spectrum=1 --json >"$folder/drift"
check "drift is measured" grep -q "check_recall" "$folder/drift"
check "replaced" "$program" encode --base first.npy --metric l2 --index floats --force --quiet
check "nothing of it is left" test "$(find floats -type f | wc -l)" = 2

finish
