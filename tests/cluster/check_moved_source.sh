#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The file that an index refers to for exact values has moved: what commands say, a search that is told where it is, an
# index that is told for good; files that are not the one are refused and change nothing.
# usage: check_moved_source.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_python
find_ranks 3
most_ranks=${ranks_axis[-1]}
mkdir "$folder/new"
cd "$folder"

"$python" - "$base" <<'END_OF_ROWS'
import numpy, sys
rows = numpy.fromfile(sys.argv[1], "u1", offset=8).reshape(-1, 128)[:6000]
numpy.save("rows.npy", rows[:4000]); numpy.save("other.npy", rows[4000:]); numpy.save("twin.npy", rows[2000:])
for name, row in ("first", 0), ("late", 3999):  # rows of the first and of the second part
    changed = rows[:4000].copy()
    changed[row, 0] ^= 1
    numpy.save(name + ".npy", changed)
END_OF_ROWS
"$program" encode --base rows.npy --rows :3000 --metric l2 --bits 2 --lists 9 --calibrate off --shards 3 --index idx --quiet
"$program" append --base rows.npy --rows 3000: --index idx --quiet
"$program" append --base other.npy --index idx --quiet
ask=(--queries "$queries" --k 10 --quiet --force)
check "before" "$program" search --index idx "${ask[@]}" --out expected
cp -r idx unmoved
mv rows.npy new/moved.npy

# It says which file, who refers to it, and what helps.
said='idx/../rows.npy: cannot open: No such file or directory; idx refers to it for exact values: .*info idx --set-source'
refused 74 "$said" "$program" search --index idx "${ask[@]}" --out no
refused 74 "$said" "$program" verify idx --quiet
refused 74 "$said" "$program" compact idx --quiet
cp other.npy rows.npy
refused 65 'rows.npy: changed since the index was made: its size; idx refers to it .*--base FILE; with --refine none' \
    "$program" search --index idx "${ask[@]}" --out no
rm rows.npy
check "without exact values" "$program" search --index idx "${ask[@]}" --refine none --out none

# One search.
for ranks in "${ranks_axis[@]}"; do
    check "--base, $ranks ranks" on "$ranks" search --index idx --base new/moved.npy "${ask[@]}" --out found
    same_bytes expected found "--base, $ranks ranks"
done
check "nothing has changed" diff -r unmoved idx

# Files that are not the one.
for file in first late; do
    refused 65 'rows (0 to 31|3992 to 3999) are not those the index was made from' \
        "$program" info idx --set-source $file.npy
done
refused 65 'rows 0 to 31 are not those' "$program" search --index idx --base first.npy "${ask[@]}" --out no
# As many bytes, but those of another part, too.
refused 65 'twin.npy: rows 0 to 31 are not those' "$program" info --index idx --set-source twin.npy
refused 65 'u8bin: 200 rows x 128 dims of uint8 in 25608 bytes; the index was made from 4000 x 128' \
    "$program" info idx --set-source "$queries"
refused 74 'nowhere.npy: cannot open' "$program" info idx --set-source nowhere.npy
refused 2 'is no file that an index could refer to' "$program" info idx --set-source synth:count=9,dims=128
refused 2 'nowhere: is no index' "$program" info nowhere --set-source new/moved.npy
refused 2 'info needs a name' "$program" info --set-source new/moved.npy
"$program" encode --base new/moved.npy --metric l2 --copy-vectors --index copied --quiet
refused 2 'copied: refers to no file: it has its rows in its folder' "$program" info copied --set-source new/moved.npy
check "no file has changed" diff -r --exclude=encode.lock unmoved idx

# For good: both parts of the file, and not the one of another.
check "--set-source" on "$most_ranks" info idx --set-source new/moved.npy --json
cp "$folder/stdout" said
check "it says of what" json_says said '"rows": 4000' '"parts": 2' '"referring_parts": 3' '"generation": 3'
for ranks in "${ranks_axis[@]}"; do
    check "moved, $ranks ranks" on "$ranks" search --index idx "${ask[@]}" --out found
    same_bytes expected found "moved, $ranks ranks"
done
check "verify" "$program" verify idx --quiet
mv other.npy new/other.npy
check "the other one, too" "$program" info idx --set-source new/other.npy --quiet
check "moved, both" "$program" search --index idx "${ask[@]}" --out found
same_bytes expected found "moved, both"
mkdir deeper
mv idx new deeper
check "a folder with both moves as one" "$program" search --index deeper/idx "${ask[@]}" --out found
same_bytes expected found "a folder with both"
check "compact" "$program" compact deeper/idx --quiet
check "a file that is where it was" "$program" info unmoved --set-source deeper/new/moved.npy --quiet --keep 0
check "compare" "$program" search --index unmoved --base deeper/new/other.npy "${ask[@]}" --out found
same_bytes expected found "--set-source and --base"
finish
