#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lists: the same index for any number of ranks, threads and levels; a search that looks at some of
# them gives the same bytes for any ranks, shards, threads, batches, levels and ways of merging, one
# that looks at all of them those of an index without lists; more lists find more; one that is asked
# for a recall finds about as much; what is wrong is refused.
# usage: check_lists.sh BITSWEEP_BINARY SOURCE_FOLDER
#
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_levels
find_ranks 3
most_ranks=${ranks_axis[-1]}

check "rows" "$program" synth --count 6000 --dims 45 --clusters 40 --seed 4 --out "$folder/rows.fbin" \
    --queries 60 --queries-out "$folder/vectors.fbin"
{ printf '\x70\x17\0\0' && head -c $((8 + 6000 * 128)) "$base" | tail -c +5; } >"$folder/rows.u8bin" # the first 6000

# next_level: by turns.
turn=0
next_level() {
    level=${levels[turn % ${#levels[@]}]}
    turn=$((turn + 1))
}

# ranks_by_turns: one or most of them, for every fourth code the other.
ranks_by_turns() {
    if ((number / 2 % 2)); then echo "$most_ranks"; else echo 1; fi
}

# search INDEX RESULT OPTIONS...
search() {
    local index=$1 result=$2
    shift 2
    "$program" search --index "$index" --queries "$vectors" --k 10 --out "$result" --force --quiet "$@"
}

# search_other WHAT INDEX RANKS OPTIONS...: the bytes of $folder/first.
search_other() {
    local what="$1, $3 ranks" index=$2 ranks=$3
    shift 3
    next_level
    check "$what, $level" on "$ranks" search --index "$index" --queries "$vectors" --k 10 --level "$level" \
        --out "$folder/again" --force --quiet "$@"
    check "$what, $level: the same bytes" cmp "$folder/first" "$folder/again"
}

# recall_of RESULT
recall_of() {
    "$program" eval --results "$1" --groundtruth "$folder/truth" --k 10 --json |
        sed -nE 's/.*"10-recall@10": ([0-9.]+).*/\1/p'
}

# at_least WHAT A B
at_least() {
    check "$1: $2, at least $3" awk -v a="$2" -v b="$3" 'BEGIN {exit !(a >= b)}'
}

# codes: "metric|rows|options of encode|options of search"
codes=("l2|u8bin|--segments 64x4,64x2|" "cosine|fbin|--bits 2.5|" "ip|fbin|--codec sq8|--refine none" "l2|u8bin|--codec raw|"
    "cosine|fbin|--codec xfbq --bits 3 --rotation random|" "l2|fbin|--bits 1.5 --residual yes|" "cosine|fbin|--bits 2 --residual yes|--refine none"
    "ip|fbin|--bits 2 --residual yes|")
number=0
for code in "${codes[@]}"; do
    IFS='|' read -r metric kind encoding searching <<<"$code"
    read -ra encoding <<<"$encoding"
    read -ra searching <<<"$searching"
    rows=$folder/rows.fbin vectors=$folder/vectors.fbin
    if [[ $kind == u8bin ]]; then rows=$folder/rows.u8bin vectors=$queries; fi
    what="$metric ${encoding[*]}"
    encode=(encode --base "$rows" --metric "$metric" "${encoding[@]}" --calibrate off --force --quiet)
    if [[ $what != *residual* ]]; then check "flat, $what" "$program" "${encode[@]}" --index "$folder/flat"; fi
    check "one shard, $what" "$program" "${encode[@]}" --lists 50 --index "$folder/one"
    check "four shards, $what" "$program" "${encode[@]}" --lists 50 --shards 4 --copy-vectors --index "$folder/four"
    check "verify, $what" "$program" verify --index "$folder/four" --quiet
    next_level
    check "four shards, $what, $most_ranks ranks, $level" on "$most_ranks" "${encode[@]}" --lists 50 --shards 4 \
        --copy-vectors --level "$level" --threads 2 --index "$folder/other"
    check "the same index" diff -r "$folder/four" "$folder/other"

    # What does not depend on the code: by turns, all of it for the first.
    number=$((number + 1))
    all=flat # whose bytes a search of all lists has, but for residuals, which are other codes
    if [[ $what == *residual* ]]; then all=one; fi
    check "search of all, $what" search "$folder/$all" "$folder/first" "${searching[@]}"
    search_other "all lists, $what" "$folder/one" 1 "${searching[@]}" --threads 2
    search_other "all lists, $what" "$folder/four" "$(ranks_by_turns)" "${searching[@]}" --probe 50 --batch 7
    options=(--probe 9)
    if [[ $metric != ip ]]; then options+=(--probe-ratio 1.1); fi
    if [[ $what == *64x4* ]]; then options+=(--scan-dims 64); fi
    check "some lists, $what" search "$folder/one" "$folder/first" "${searching[@]}" "${options[@]}"
    if ((number % 2)); then
        search_other "some lists, $what" "$folder/one" 1 "${searching[@]}" "${options[@]}" --batch 1
        search_other "some lists, $what" "$folder/four" "$most_ranks" "${searching[@]}" "${options[@]}" --threads 3 \
            --merge gather
    fi
    if ((number % 2 == 0 || number == 1)); then
        search_other "some lists, $what" "$folder/one" "$most_ranks" "${searching[@]}" "${options[@]}" --batch 1
        search_other "some lists, $what" "$folder/four" "$(ranks_by_turns)" "${searching[@]}" "${options[@]}" --threads 2 \
            --batch 17 --overlap on
    fi

    check "ground truth, $what" "$program" groundtruth --base "$rows" --queries "$vectors" --metric "$metric" \
        --k 10 --out "$folder/truth" --force --quiet
    last=0
    for probe in 1 5 50; do
        ((probe == 5 || number % 3 == 1)) || continue
        check "probe $probe, $what" search "$folder/one" "$folder/again" "${searching[@]}" --probe $probe
        found=$(recall_of "$folder/again")
        at_least "recall of probe $probe, $what" "$found" "$last"
        last=$found
        if ((probe == 5)); then at_least "recall of probe 5, $what" "$found" 0.5; fi
    done
done

# ---- what is said of them ----

# facts FILE: rows of the smallest, largest and median list, bytes of centroids and .lists files.
facts() {
    sed -nE 's/^ *"(smallest_list_rows|largest_list_rows|median_list_rows|centroids_bytes|lists_files_bytes)": ([0-9]+),?$/\2/p' "$1" |
        tr '\n' ' '
}
# The file itself: 50 lists and their end, in bundles, then rows.
od -An -v -tu4 -w4 -j 40 "$folder/one/shard-00000-of-00001.lists" | awk '
    NR <= 51 {first[NR] = $1; next}
    $1 != 4294967295 {while (NR - 52 >= 32 * first[list + 1]) list++; rows[list]++}
    END {for (l = 1; l <= 50; l++) print rows[l] + 0}' | sort -n >"$folder/sizes"
check "rows in lists" test "$(awk '{sum += $1} END {print sum}' "$folder/sizes")" = 6000
"$program" info "$folder/one" --json >"$folder/info"
check "info counts lists" test "$(facts "$folder/info")" = "$(head -n 1 "$folder/sizes") $(tail -n 1 "$folder/sizes") \
$(sed -n 26p "$folder/sizes") $((50 * 45 * 4)) $(stat -c %s "$folder/one/shard-00000-of-00001.lists") "
check "info has the version of indexes with lists" grep -q '"format_version": 2' "$folder/info"
"$program" info "$folder/one" >"$folder/info"
check "info says it" grep -qE '^  lists     50 lists of [0-9]+ to [0-9]+ rows, median [0-9]+; centroids 9 kB' "$folder/info"
"$program" encode --base "$folder/rows.fbin" --metric l2 --lists 50 --shards 4 --index "$folder/four" --force --json \
    --quiet >"$folder/made"
"$program" info "$folder/four" --json >"$folder/info"
check "encode says the same" test "$(facts "$folder/made")" = "$(facts "$folder/info")"
check "and has their bytes in the index" test "$(sed -nE 's/^ *"index_bytes": ([0-9]+),$/\1/p' "$folder/made")" = \
    $((50 * 45 * 4 + $(cat "$folder/four"/*.codes "$folder/four"/*.lists | wc -c)))
rm "$folder/four/shard-00002-of-00004.lists"
check "info of a part of an index" "$program" info "$folder/four"
cp "$folder/stdout" "$folder/info"
check "says what is missing" grep -qE '^  lists     50 lists; rows unknown: .*00002-of-00004.lists: missing' "$folder/info"
check "info of a GPU" "$program" info "$folder/one" --gpu-memory 80G --probe 5
cp "$folder/stdout" "$folder/info"
check "counts what lists take there" grep -qE 'of 80 GB|of 7[0-9.]+ GB: codes .*, items of lists [0-9].*, centroids [0-9]' "$folder/info"

# ---- residuals, where nobody has asked for them ----

check "one cloud" "$program" synth --count 4000 --dims 64 --seed 6 --out "$folder/cloud.fbin"
encode=(encode --metric cosine --bits 2 --lists 50 --calibrate off --force)
check "residuals of a cloud" "$program" "${encode[@]}" --base "$folder/cloud.fbin" --index "$folder/one"
cp "$folder/stdout" "$folder/told"
check "there are none" grep -qE '^residuals: no, recall of the sample 0\.[0-9]+ with, 0\.[0-9]+ without$' "$folder/told"
check "info of it" "$program" info "$folder/one"
cp "$folder/stdout" "$folder/info"
check "says so, too" grep -qxF "$(sed -n 's/^residuals:/  residuals/p' "$folder/told")" "$folder/info"
next_level
check "the same on $most_ranks ranks, $level" on "$most_ranks" "${encode[@]}" --base "$folder/cloud.fbin" --threads 3 \
    --level "$level" --index "$folder/other" --quiet
check "the same index" diff -r "$folder/one" "$folder/other"
check "residuals of clusters" "$program" "${encode[@]}" --base "$folder/rows.fbin" --index "$folder/one"
cp "$folder/stdout" "$folder/told"
check "there are some" grep -qE '^residuals: yes, recall of the sample 0\.[0-9]+ with, 0\.[0-9]+ without$' "$folder/told"

# ---- rows that are left out ----

rows=$folder/rows.fbin vectors=$folder/vectors.fbin
encode=(encode --base "$rows" --metric l2 --calibrate off --force --quiet --index "$folder/one")
check "a part of the rows" "$program" "${encode[@]}" --lists 30 --rows 1000:4000 --shards 3
check "its search" search "$folder/one" "$folder/first" --probe 30
check "a part without lists" "$program" "${encode[@]}" --rows 1000:4000
check "its search" search "$folder/one" "$folder/again"
check "the same bytes" cmp "$folder/first" "$folder/again"
cp "$rows" "$folder/holes.fbin"
for row in 3 700 5999; do put "$folder/holes.fbin" $((8 + row * 45 * 4)) '\x00\x00\xc0\x7f'; done
refused 65 "holes.fbin: row 3 " "$program" encode --base "$folder/holes.fbin" --metric l2 --lists 30 \
    --index "$folder/holes" --quiet
check "nothing is left" test ! -e "$folder/holes"
for lists in 0 30; do
    some=off
    if ((lists > 0)); then some=50; fi
    check "rows are dropped, $lists lists" "$program" encode --base "$folder/holes.fbin" --metric l2 --copy-vectors \
        --lists $lists --drop-bad-rows --calibrate $some --index "$folder/holes$lists" --quiet --shards 2
    check "verify" "$program" verify --index "$folder/holes$lists" --quiet
    check "search" search "$folder/holes$lists" "$folder/result$lists" --probe all
done
check "the same bytes" cmp "$folder/result0" "$folder/result30"

# ---- a recall that is asked for ----

# fact NAME: of the JSON that search_facts has left
fact() {
    sed -nE "s/^ *\"$1\": ([0-9.e+-]+),?\$/\1/p" "$folder/facts" | head -n 1
}

# search_facts INDEX OPTIONS...
search_facts() {
    local index=$1
    shift
    "$program" search --index "$index" --queries "$vectors" --out "$folder/first" --force --quiet --json "$@" \
        >"$folder/facts"
}

# What a scan reads, in the listing too: all codes once, or those of the lists that are looked at.
encode=(encode --base "$base" --metric l2 --segments "64x4,64x2" --calibrate off --index "$folder/read" --force --quiet)
kept=$vectors vectors=$queries
check "codes to read" "$program" "${encode[@]}"
check "a scan of all" search_facts "$folder/read" --query-rows 0:1
whole=$(fact scanned_bytes)
check "the same codes in lists" "$program" "${encode[@]}" --lists 64
last=0
for options in "--probe 1" "--probe 4" "--probe all --scan-dims 64" "--probe all"; do
    read -ra options <<<"$options"
    check "bytes, ${options[*]}" search_facts "$folder/read" --query-rows 0:1 "${options[@]}"
    read=$(fact scanned_bytes)
    check "bytes, ${options[*]}: $read of $whole, $last before" test "$read" -gt "$last"
    last=$read
done
at_least "all lists have about as many bytes" "$last" $((whole * 9 / 10))
at_least "in spite of padding" $((whole * 11 / 10)) "$last"
vectors=$kept

# "metric|rows|queries|options of encode"
tables=("l2|$base|$queries|--calibrate 200" "ip|$rows|$vectors|--codec sq8"
    "cosine|$rows|$vectors|--codec xfbq --calibrate-queries $vectors")
for table in "${tables[@]}"; do
    IFS='|' read -r metric from vectors encoding <<<"$table"
    read -ra encoding <<<"$encoding"
    what="$metric ${encoding[*]}"
    encode=(encode --base "$from" --metric "$metric" "${encoding[@]}" --lists 64 --shards 3 --force --quiet)
    check "a table, $what" "$program" "${encode[@]}" --index "$folder/three"
    next_level
    if [[ $level == reference && $from == "$base" ]]; then next_level; fi # which would take long
    check "a table, $what, $most_ranks ranks, $level" on "$most_ranks" "${encode[@]}" --level "$level" \
        --threads 3 --index "$folder/other"
    check "the same table" diff -r "$folder/three" "$folder/other"
    check "ground truth, $what" "$program" groundtruth --base "$from" --queries "$vectors" --metric "$metric" \
        --k 10 --out "$folder/truth" --force --quiet
    last=0
    for recall in 0.7 0.9; do
        check "recall $recall, $what" search_facts "$folder/three" --recall $recall
        least=$(awk -v r=$recall 'BEGIN {print r - 0.03}')
        looked=$(fact rows_a_query)
        at_least "recall that was measured for $recall, $what" "$(fact recall_calibrated)" $recall
        at_least "recall of $recall, $what" "$(recall_of "$folder/first")" "$least"
        at_least "rows looked at for $recall, $what" "$looked" "$last"
        last=$looked
    done
    search_other "recall 0.9, $what" "$folder/three" "$most_ranks" --recall 0.9 --threads 2
    check "nothing is asked for, $what" search_facts "$folder/three"
    at_least "recall that was measured, $what" "$(fact recall_calibrated)" 0.97
    at_least "k that it was measured with, $what" "$(fact calibrated_k)" 10
done

rows=$folder/rows.fbin vectors=$folder/vectors.fbin
encode=(encode --base "$rows" --metric l2 --force --quiet --index "$folder/one")
check "a table of few bits" "$program" "${encode[@]}" --lists 30 --bits 1 --calibrate 100
check "it is told" "$program" info "$folder/one"
cp "$folder/stdout" "$folder/told"
check "its queries" grep -q "  recalls   at k 10 of 100 rows" "$folder/told"
check "one line is of lists" test "$(grep -c '^  lists ' "$folder/told")" = 1
check "a ratio limits all lists" grep -qE '^ +[0-9.]+ +all +[0-9.]+ +all ' "$folder/told"
check "in JSON once" test "$("$program" info "$folder/one" --json | grep -c '^  "lists":')" = 1
check "fewer neighbours" search_facts "$folder/one" --recall 0.9 --k 2
at_least "as many candidates as were measured with" "$(fact L)" 10
check "an oversample of its own" search_facts "$folder/one" --recall 0.9 --oversample 12
at_least "it is taken" "$(fact L)" 120
check "another recall" search "$folder/one" "$folder/first" --recall 0.5
check "probe all" search "$folder/one" "$folder/again" --probe all --oversample 100
check "it looks at all" search "$folder/one" "$folder/first" --probe 30 --oversample 100
check "the same bytes" cmp "$folder/first" "$folder/again"
some=(search --index "$folder/one" --queries "$vectors" --out "$folder/again" --force --quiet)
refused 2 "--recall chooses .*, and so does --probe: give" "$program" "${some[@]}" --recall 0.9 --probe 3
refused 2 "so does --probe-ratio: give" "$program" "${some[@]}" --recall 0.9 --probe-ratio 1
refused 2 "--recall .*0.5 to 1" "$program" "${some[@]}" --recall 0.4
refused 2 "--recall: .* holds for --refine exact and at least the default --query-bits" "$program" "${some[@]}" --recall 0.9 --refine none
refused 2 "--recall 0.99: .*--oversample" "$program" "${some[@]}" --recall 0.99 --oversample 1
refused 2 "--recall 1: the most that .* has measured is 0.*--probe all" "$program" "${some[@]}" --recall 1
refused 2 "--probe 0: must be 1 to .*, or all" "$program" "${some[@]}" --probe 0
check "few rows" "$program" "${encode[@]}" --lists 2 --rows 0:3
check "a table of few rows" "$program" "${encode[@]}" --lists 2 --rows 0:3 --calibrate 2
check "without a table" "$program" "${encode[@]}" --lists 30 --calibrate off
refused 2 "--recall: .* no table of recalls; bitsweep calibrate" "$program" "${some[@]}" --recall 0.9
check "another index without" cp -r "$folder/one" "$folder/late"
check "its table later" on "$most_ranks" calibrate "$folder/late" --sample 50 --quiet
check "with a table" "$program" "${encode[@]}" --lists 30 --calibrate 50
check "the same table" diff -r "$folder/one" "$folder/late"
check "a search by the table" search "$folder/one" "$folder/first"
check "its facts have what was looked at" json_says "$folder/first.json" '"lists": 30' '"scan_dims": 0'
check "its facts have how many lists" grep -qE '^  "probe(_ratio)?": [1-9]' "$folder/first.json"
check "its facts have the recall that was measured" grep -qE '^  "recall_calibrated": (0\.9|1\.0)' "$folder/first.json"
refused 2 "--scan-dims: the table of recalls of .*one chooses it, .* --probe or --probe-ratio" "$program" "${some[@]}" \
    --scan-dims 32
check "as many lists as are said" search "$folder/one" "$folder/first" --probe 7
check "its facts have them" json_says "$folder/first.json" '"probe": 7' '"probe_ratio": 0.0'
check "which were not measured" test "$(grep -c recall_calibrated "$folder/first.json" || true)" = 0
check "of the user's queries" "$program" calibrate "$folder/late" --queries "$vectors" --quiet
check "one at once" "$program" "${encode[@]}" --lists 30 --calibrate-queries "$vectors"
check "the same table of queries" diff -r "$folder/one" "$folder/late"
# 600 rows, and 5400 copies of the last.
copies=$folder/copies.fbin
head -c $((8 + 600 * 180)) "$rows" >"$copies"
tail -c 180 "$copies" >"$folder/copy"
(cd "$folder" && printf 'copy%.0s ' {1..5400} | xargs cat) >>"$copies"
put "$copies" 0 '\x70\x17\0\0'
encode=(encode --base "$copies" --metric l2 --lists auto --force)
check "a table of copies" "$program" "${encode[@]}" --calibrate 200 --index "$folder/alike"
cp "$folder/stdout" "$folder/told"
check "says how many there are" grep -qE '^calibrated with 199 queries, ' "$folder/told"
check "on $most_ranks ranks" on "$most_ranks" "${encode[@]}" --calibrate 200 --threads 3 --index "$folder/other" --quiet
check "the same table" diff -r "$folder/alike" "$folder/other"
check "ground truth of copies" "$program" groundtruth --base "$copies" --queries "$vectors" --metric l2 --k 10 \
    --out "$folder/truth" --force --quiet
check "a recall where most rows are copies" search_facts "$folder/alike" --recall 0.9
at_least "recall of 0.9 where most rows are copies" "$(recall_of "$folder/first")" 0.87
check "a table of all that differ" "$program" "${encode[@]}" --calibrate 700 --index "$folder/alike"
cp "$folder/stdout" "$folder/told"
check "says that there are no more" grep -qE '^calibrated with 599 queries \(no more rows differ\), ' "$folder/told"
head -c $((8 + 3 * 180)) "$vectors" >"$folder/copied.fbin"
tail -c 180 "$folder/copied.fbin" >"$folder/copy"
(cd "$folder" && printf 'copy%.0s ' {1..57} | xargs cat) >>"$folder/copied.fbin"
put "$folder/copied.fbin" 0 '\x3c\0\0\0'
check "a table of copied queries" "$program" calibrate "$folder/alike" --queries "$folder/copied.fbin"
cp "$folder/stdout" "$folder/told"
check "says how many differ" grep -qE '^calibrated with 60 queries \(3 of them different\), ' "$folder/told"
{ head -c 8 "$copies" && tail -c $((5400 * 180)) "$copies"; } >"$folder/equal.fbin"
put "$folder/equal.fbin" 0 '\x18\x15\0\0'
check "a table of equal rows" "$program" encode --base "$folder/equal.fbin" --metric l2 --lists 30 --index "$folder/alike" \
    --force
cp "$folder/stdout" "$folder/told"
check "is of one row" grep -qE '^calibrated with 1 query \(no more rows differ\), .*: recall 1' "$folder/told"

encode=(encode --base "$rows" --metric l2 --force --quiet --index "$folder/one")
cp "$rows" "$folder/away.fbin"
for calibrate in 50 off; do
    check "copied rows, calibrate $calibrate" "$program" encode --base "$folder/away.fbin" --metric l2 --lists 30 \
        --shards 2 --copy-vectors --calibrate $calibrate --index "$folder/kept-$calibrate" --quiet
done
cp -r "$folder/kept-off" "$folder/other-rows"
rm "$folder/away.fbin"
check "a table though the rows are gone" on "$most_ranks" calibrate "$folder/kept-off" --sample 50 --quiet
check "the table that the rows give" diff -r "$folder/kept-50" "$folder/kept-off"
head -c $((8 + 45 * 4 * 10)) "$rows" >"$folder/away.fbin"
put "$folder/away.fbin" 0 '\x0a\0\0\0'
check "a table where their file is another" "$program" calibrate "$folder/other-rows" --sample 50 --quiet
check "the same table" diff -r "$folder/kept-50" "$folder/other-rows"
refused 2 "--sample: --queries says" "$program" calibrate "$folder/late" --queries "$vectors" --sample 5
refused 65 "queries.*128|128.*45" "$program" calibrate "$folder/late" --queries "$queries" --force
for again in "" "--queries=$vectors"; do
    refused 2 "late: has a table of recalls already, made from a file of [0-9]* queries; --force" "$program" \
        calibrate "$folder/late" ${again:+"$again"}
done
check "nothing has changed" diff -r "$folder/one" "$folder/late"
refused 74 "nowhere" "$program" calibrate "$folder/nowhere"
check "a table of rows again" "$program" calibrate "$folder/late" --sample 50 --force --quiet
check "that other rows replace" "$program" calibrate "$folder/late" --sample 40 --quiet
check "few rows again" "$program" "${encode[@]}" --lists 2 --rows 0:3
refused 2 "one: 3 rows are too few for a table of recalls" "$program" calibrate "$folder/one"
refused 2 "--sample 4: .*one has 3 rows only" "$program" calibrate "$folder/one" --sample 4
check "nothing is made" test ! -e "$folder/nowhere"
refused 2 "no lists.*encode --lists" "$program" calibrate "$folder/flat"
refused 2 "--calibrate: there are no lists" "$program" "${encode[@]}" --calibrate 10
refused 2 "--calibrate-queries: there are no lists" "$program" "${encode[@]}" --calibrate-queries "$vectors"
refused 2 "--calibrate 0: must be 1 to .*, or off" "$program" "${encode[@]}" --lists 30 --calibrate 0
refused 2 "--calibrate 31: .* has 30 rows only" "$program" "${encode[@]}" --lists 3 --rows 5:35 --calibrate 31
refused 74 "no.fbin" "$program" "${encode[@]}" --lists 30 --calibrate-queries "$folder/no.fbin"
refused 65 "queries of 128 dims, but .* has 45" "$program" "${encode[@]}" --lists 30 \
    --calibrate-queries "$queries"
# A query that is no good is found before an index is made.
for fault in nan zero; do
    cp "$vectors" "$folder/$fault.fbin"
done
put "$folder/nan.fbin" $((8 + 2 * 45 * 4)) '\0\0\300\177'
head -c 180 /dev/zero | dd of="$folder/zero.fbin" bs=1 seek=8 conv=notrunc status=none
for what in "nan l2 2 has a NaN" "zero cosine 0 .*zero"; do
    read -r fault metric row text <<<"$what"
    refused 65 "$fault.fbin: row $row $text" "$program" encode --base "$rows" --metric "$metric" --lists 30 \
        --calibrate-queries "$folder/$fault.fbin" --index "$folder/fault" --quiet
    check "nothing is made of $fault" test ! -e "$folder/fault"
done

# ---- a model ----

# With itself as the model, the rows of an index come out as they were, codes of residuals too.
late=(encode --base "$rows" --metric l2 --force --quiet --calibrate off)
check "a model" "$program" "${late[@]}" --bits 2 --lists 30 --seed 7 --index "$folder/model"
for lists in 30 auto; do
    check "after a model, $lists lists" on "$most_ranks" "${late[@]}" --lists $lists --model "$folder/model" \
        --index "$folder/after" --json
    cp "$folder/stdout" "$folder/said"
    check "after a model, $lists lists: it says so" json_says "$folder/said" '"lists_of_model": true'
    check "after a model, $lists lists: the same index" diff -r "$folder/model" "$folder/after"
done
check "other lists than the model's" "$program" "${late[@]}" --lists 7 --model "$folder/model" --index "$folder/after" \
    --json
cp "$folder/stdout" "$folder/said"
check "it says that they are others" json_says "$folder/said" '"lists_of_model": false'
refused 2 "--lists 30: .* has 20 rows only" "$program" "${late[@]}" --lists auto --rows 0:20 \
    --model "$folder/model" --index "$folder/after"

# ---- what is wrong ----

encode+=(--calibrate off)
check "an index" "$program" "${encode[@]}" --lists 30 --seed 2
check "a flat index" "$program" encode --base "$rows" --metric ip --index "$folder/flat" --force --quiet
check "lists for products" "$program" encode --base "$rows" --metric ip --lists 5 --calibrate off \
    --index "$folder/four" --force --quiet
flat=(search --index "$folder/flat" --queries "$vectors" --out "$folder/again" --force --quiet)
some=(search --index "$folder/one" --queries "$vectors" --out "$folder/again" --force --quiet)
refused 2 "--lists 6001: .*6000 rows only" "$program" "${encode[@]}" --lists 6001
refused 2 "--lists 'x' is not" "$program" "${encode[@]}" --lists x
refused 2 "--probe: .*no lists; encode --lists" "$program" "${flat[@]}" --probe 3
refused 2 "--recall: .*no lists; encode --lists" "$program" "${flat[@]}" --recall 0.9
refused 2 "--probe-ratio: .*no lists" "$program" "${flat[@]}" --probe-ratio 1.5
refused 2 "--probe 31: .* has 30 lists" "$program" "${some[@]}" --probe 31
refused 2 "--select queue: .*has lists" "$program" "${some[@]}" --select queue
refused 2 "--probe-ratio compares distances, and metric ip has none; give --probe" "$program" search --index "$folder/four" \
    --queries "$vectors" --out "$folder/again" --force --quiet --probe-ratio 2
refused 2 "--scan-dims 31: no segment" "$program" "${some[@]}" --scan-dims 31
refused 2 "--scan-dims: candidates have to be refined" "$program" "${some[@]}" --scan-dims 32 --refine none
refused 2 "--recall chooses --scan-dims, too" "$program" "${some[@]}" --scan-dims 32 --recall 0.9
refused 2 "--scan-dims: .*no lists" "$program" "${flat[@]}" --scan-dims 32
refused 2 "--residual yes: only an index with --lists" "$program" "${encode[@]}" --residual yes
refused 2 "--residual yes: codec sq8 has no residuals" "$program" "${encode[@]}" --codec sq8 --lists 5 --residual yes
cp -r "$folder/one" "$folder/broken"
flip "$folder/broken/shard-00000-of-00001.lists" 5000
some=(search --index "$folder/broken" --queries "$vectors" --out "$folder/again" --force --quiet)
refused 65 "shard-00000-of-00001.lists: is damaged, or belongs to another index" "$program" "${some[@]}"
refused 65 "shard-00000-of-00001.lists: is damaged, or belongs to another index" "$program" verify --index "$folder/broken" --quiet
cp -r "$folder/holes30" "$folder/changed"
flip "$folder/changed/shard-00000-of-00002.vectors" 5000
refused 65 "shard-00000-of-00002.vectors: rows at places [0-9]+ to [0-9]+ are not those" "$program" verify \
    --index "$folder/changed" --quiet
rm "$folder/broken/shard-00000-of-00001.lists"
refused 65 "shard-00000-of-00001.lists: missing" "$program" "${some[@]}"
finish
