#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every error: one line on stderr that names the file, row or option and the cause, the exit code of
# its kind, nothing half-written, and all of it soon; alone, on three ranks, and where only the last
# rank meets it.
# usage: check_errors.sh BITSWEEP_BINARY SOURCE_FOLDER
# ctest: alone
#
# What every rank meets is asked of three ranks by turns only, with FULL=1 in the environment always.
#
# Functions are called through `start`, which shellcheck does not see.
# shellcheck disable=SC2317
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
ranks=3
most_seconds=10
in=$folder/in
index=$folder/index
mkdir "$in" "$index"
pool=6 # starting mpirun is mostly waiting

num_expected=0
every=1 # how manieth of what is expected is asked of several ranks, too

# shellcheck source=tests/cluster/error_cases.sh
. "$(dirname "$0")/error_cases.sh"

# ---- errors --------------------------------------------------------------------------------------

search=(search --queries "$in/q.fbin" --out OUT/r --k 300)

check_files() {
    local name code text every=8 turn=0
    while IFS='|' read -r name code text; do
        expect "$code" "$name: $text" encode --base "$in/$name" --metric l2 --index OUT/i
        expect "$code" "$name: $text" search --index "$index/good" --queries "$in/$name" --out OUT/r
        expect "$code" "$name: $text" groundtruth --base "$in/$name" --queries "$in/q.fbin" \
            --metric l2 --out OUT/r
        # The last rank reads the base, and for a ground truth the queries too.
        expect_last "$in/base.fbin" "$in/$name" "$code" "rank $((ranks - 1)): .*$name: $text" \
            encode --base "$in/base.fbin" --metric l2 --index OUT/i
        expect_last "$in/q.fbin" "$in/$name" "$code" "rank $((ranks - 1)): .*$name: $text" \
            groundtruth --base "$in/base.fbin" --queries "$in/q.fbin" --metric l2 --out OUT/r
    done <<'LIST'
missing.fbin|74|cannot open: No such file
folder.fbin|74|not a regular file
fifo.fbin|74|not a regular file
empty.fbin|65|empty
head.fbin|65|truncated
short.fbin|65|the header says 300 x 16 .*, the file has 19000
long.fbin|65|the header says 300 x 16 .*, the file has 19209
bytes.fbin|65|the header says 300 x 16 .*, the file has 4808
floats.u8bin|65|the header says 300 x 16 .*, the file has 19208
text.npy|65|does not begin as a .npy file
norows.fbin|65|the header says 0 rows
huge.fbin|65|the header says 4294967295
ragged.fvecs|65|row 1 says 15 dims
base.dat|2|the name must end in
ids.ivecs|2|.ivecs files hold the ids
LIST
    expect 65 'wide.fbin: 17 dims, the index has 16' search --index "$index/good" \
        --queries "$in/wide.fbin" --out OUT/r
    expect 65 'wide.fbin: 17 dims, .*base.fbin has 16' groundtruth --base "$in/base.fbin" \
        --queries "$in/wide.fbin" --metric l2 --out OUT/r
    expect 2 '--model .*good: its rows have 16 dims, those of --base 17' encode --base "$in/wide.fbin" --metric l2 \
        --model "$index/good" --index OUT/i
    expect 74 'nothing: cannot open: No such file' info "$in/nothing"
    expect 65 'base.dat: the header says .*: no result; names of vectors end in .fvecs' info "$in/base.dat"
}

# Another good file under the same name is the worst fault: every checksum of it is right.
check_views() {
    local name
    for name in other fewer; do
        expect_last "$in/base.fbin" "$in/$name.fbin" 65 'base.fbin: rank 2 sees another' \
            encode --base "$in/base.fbin" --metric l2 --index OUT/i
        expect_last "$in/base.fbin" "$in/$name.fbin" 65 'base.fbin: rank 2 sees another' \
            groundtruth --base "$in/base.fbin" --queries "$in/q.fbin" --metric l2 --out OUT/r
    done
    expect_last "$in/q.fbin" "$in/base.fbin" 65 'q.fbin: rank 2 sees another' \
        groundtruth --base "$in/base.fbin" --queries "$in/q.fbin" --metric l2 --out OUT/r
    for name in seed source two xfbq; do
        expect_last "$index/good" "$index/$name" 65 'good: rank 2 sees another' \
            "${search[@]}" --index "$index/good"
        expect_last "$index/good" "$index/$name" 65 'good: rank 2 sees another' \
            verify "$index/good"
    done
}

check_rows() {
    local name text every=4
    while IFS='|' read -r name text; do
        expect 65 "$name.fbin: row 290 $text" encode --base "$in/$name.fbin" --metric cosine \
            --index OUT/i
        expect 65 "$name.fbin: row 290 $text" groundtruth --base "$in/$name.fbin" --metric cosine \
            --queries "$in/q.fbin" --out OUT/r
        expect 65 "q-$name.fbin: row 3 $text" search --index "$index/xfbq" \
            --queries "$in/q-$name.fbin" --out OUT/r
        expect 65 "q-$name.fbin: row 3 $text" search --index "$index/xfbq" --batch 2 \
            --queries "$in/q-$name.fbin" --out OUT/r
        expect 65 "q-$name.fbin: row 3 $text" groundtruth --base "$in/base.fbin" --metric cosine \
            --queries "$in/q-$name.fbin" --out OUT/r
    done <<'LIST'
nan|.*(NaN|finite)
inf|.*(Inf|finite)
zero|.*zero
LIST
    # Codec raw takes whole numbers of the rows' type.
    expect 65 'q.fbin: row 0 has .* at dimension 0: a raw index of uint8 takes .* 0 to 255 only' \
        search --index "$index/raw" --queries "$in/q.fbin" --out OUT/r
    expect 65 'q.u8bin: row 0 has .*: a raw index of int8 takes .* -128 to 127 only' \
        search --index "$index/rawsigned" --queries "$in/q.u8bin" --out OUT/r
    expect 65 'q-half.fbin: row 3 has 0.5 at dimension 2' search --index "$index/raw" --batch 2 \
        --queries "$in/q-half.fbin" --out OUT/r
    expect 65 'q-half.fbin: row 5 .*(NaN|finite)' search --index "$index/raw" --query-rows 4:7 \
        --queries "$in/q-half.fbin" --out OUT/r
    # Vectors of zeros are good for other metrics, NaN and Inf are not.
    succeed 'a zero row and ip' bitsweep encode --base "$in/zero.fbin" --metric ip --index "$folder/zero"
    expect 65 'nan.fbin: row 290' encode --base "$in/nan.fbin" --metric l2 --index OUT/i
    expect 65 'q-inf.fbin: row 3' search --index "$index/good" --queries "$in/q-inf.fbin" --out OUT/r
    expect 65 'nan.fbin: no good row' encode --base "$in/nan.fbin" --rows 290:291 --drop-bad-rows \
        --metric l2 --index OUT/i
}

# A dropped row keeps its id, and no answer has it.
check_dropped() {
    local name ids
    for name in nan inf zero; do
        succeed "--drop-bad-rows of $name.fbin" bitsweep encode --base "$in/$name.fbin" \
            --metric cosine --drop-bad-rows --shards 2 --index "$folder/dropped-$name"
        succeed "search without the $name row" bitsweep search --index "$folder/dropped-$name" \
            --queries "$in/q.fbin" --k 300 --out "$folder/dropped-$name.bin"
        ids=$(od -An -v -td4 -j 8 -N 1200 -w4 "$folder/dropped-$name.bin" | sort -n | tr -d ' ' | tr '\n' ' ')
        if [[ $ids == "-1 $(seq -s ' ' 0 289) $(seq -s ' ' 291 299) " ]]; then
            pass
        else
            complain "$name: the 300 places do not hold all rows but 290, and one -1"
        fi
        succeed "ground truth without the $name row" bitsweep groundtruth --base "$in/$name.fbin" \
            --drop-bad-rows --metric cosine --queries "$in/q.fbin" --k 299 --out "$folder/truth-$name.bin"
        succeed "search of as many" bitsweep search --index "$folder/dropped-$name" \
            --queries "$in/q.fbin" --k 299 --out "$folder/all-$name.bin"
        succeed "search and ground truth agree" cmp "$folder/all-$name.bin" "$folder/truth-$name.bin"
        expect 2 "--k 300: .*$name.fbin has 300 rows only, 1 of them dropped" groundtruth --drop-bad-rows \
            --base "$in/$name.fbin" --metric cosine --queries "$in/q.fbin" --k 300 --out OUT/r
    done
}

check_options() {
    local every=12 bare=(encode --base "$in/base.fbin" --index OUT/i)
    local base=("${bare[@]}" --metric cosine)
    local find=(search --index "$index/good" --queries "$in/q.fbin" --out OUT/r)
    local truth=(groundtruth --base "$in/base.fbin" --queries "$in/q.fbin" --metric l2 --out OUT/r)
    start run_alone 2 'no command'
    expect 2 "unknown command 'serch': did you mean search[?] bitsweep --help lists them$" serch --index "$index/good"
    expect 2 'unknown option --indx of search: did you mean --index[?]$' "${find[@]}" --indx x
    expect 2 '--out -: standard input and output are not used so: name a file' search --index "$index/good" \
        --queries "$in/q.fbin" --out -
    expect 2 "'stray' is no option" "${find[@]}" stray
    expect 2 '--k needs a value' "${find[@]}" --k
    expect 2 '--k is given twice' "${find[@]}" --k 3 --k=3
    expect 2 '--force takes no value' "${find[@]}" --force=1
    expect 2 'search needs --queries' search --index "$index/good" --out OUT/r
    expect 2 '--index needs a value' encode --base "$in/base.fbin" --index ''
    expect 2 '--k 0: must be 1 to 10000' "${find[@]}" --k 0
    expect 2 '--k 301: the index has 300 rows' "${find[@]}" --k 301
    expect 2 '--k 301: .*base.fbin has 300 rows' "${truth[@]}" --k 301
    expect 2 '--k 0' "${truth[@]}" --k 0
    expect 2 "--k '10x' is not a whole number" "${find[@]}" --k 10x
    expect 2 "--k '-1' is not a whole number" "${find[@]}" --k -1
    expect 2 "--oversample 'nan' is not a number" "${find[@]}" --oversample nan
    expect 2 '--oversample 0.5: must be 1 to' "${find[@]}" --oversample 0.5
    expect 2 '--pin cores: [0-9]+ ranks x 4096 threads need [0-9]+ CPUs of this host, [0-9]+ may be' \
        "${find[@]}" --threads 4096 --pin cores
    expect 2 "--query-rows '5' is not of the form A:B" "${find[@]}" --query-rows 5
    expect 2 "--query-rows '5:5' is an empty range" "${find[@]}" --query-rows 5:5
    expect 2 '--query-rows 3:8: .*q.fbin has 7 rows' "${find[@]}" --query-rows 3:8
    expect 2 "unknown --merge 'scatter': use" "${find[@]}" --merge scatter
    expect 2 "unknown --level 'sse': use" "${find[@]}" --level sse
    expect 2 '--query-bits 8' "${find[@]}" --query-bits 8
    expect 2 'histogram selection needs integer distances' "${find[@]}" --select histogram
    expect 2 "--extra-distance '-1'" search --index "$index/xfbq" --queries "$in/q.fbin" --out OUT/r \
        --extra-distance -1
    expect 2 "--extra-distance 101%: must be 0% to 100%" search --index "$index/xfbq" --queries "$in/q.fbin" --out OUT/r \
        --extra-distance 101%
    expect 2 "--extra-distance 'x'" search --index "$index/xfbq" --queries "$in/q.fbin" --out OUT/r --extra-distance x%
    expect 2 '--max-candidates 5 is below --k 10' search --index "$index/xfbq" \
        --queries "$in/q.fbin" --out OUT/r --select histogram --max-candidates 5
    expect 2 '--metric cosine, ip or l2 is needed: .*base.fbin does not say' "${bare[@]}"
    expect 2 '--metric cosine, ip or l2 is needed: .*base.fbin does not say' groundtruth \
        --base "$in/base.fbin" --queries "$in/q.fbin" --out OUT/r
    expect 2 '--bits 0: must be 1 to 8' "${base[@]}" --bits 0
    expect 2 '--bits 9: must be 1 to 8' "${base[@]}" --bits 9
    expect 2 '--bits 2.5: --codec xfbq takes whole bits' "${base[@]}" --codec xfbq --bits 2.5
    expect 2 '--codec xfbq knows --metric cosine only' "${bare[@]}" --codec xfbq --metric ip
    expect 2 '--codec xfbq knows --metric cosine only' "${bare[@]}" --codec xfbq --metric l2
    expect 2 '--scale' "${base[@]}" --codec xfbq --scale 0
    expect 2 '--rotation opq is for --codec pq: xfbq has random and none' "${base[@]}" --codec xfbq --rotation opq
    expect 2 '--rotation is for --codec pq and xfbq' "${base[@]}" --codec sq8 --rotation none
    expect 2 '--rotation random takes up to 4096 dims, .*dims=4097.* has 4097: say none' encode --index OUT/i \
        --base synth:count=2,dims=4097 --codec xfbq --rotation random
    expect 2 '--segments is for --codec saq' "${base[@]}" --codec xfbq --segments 16x2
    expect 2 '--stage is for --codec saq' "${base[@]}" --codec xfbq --stage 32
    expect 2 '--stage 8: the codes have bits of 16 dims, too few for two stages' "${base[@]}" --stage 8
    expect 2 '--stage 32: the codes have bits of 16 dims, too few for two stages' "${base[@]}" --stage 32
    expect 2 "--lists 'many' is not a whole number .*, nor auto" "${base[@]}" --lists many
    expect 2 "--stage 'some' is not a whole number .*, nor auto" "${base[@]}" --stage some
    expect 2 '--scan progressive-matrix: the codes of .*good have no first stage' "${find[@]}" \
        --scan progressive-matrix
    expect 2 '--codec raw has no cosine: say --metric l2 or --metric ip' encode --index OUT/i \
        --base "$in/base.u8bin" --codec raw --metric cosine
    expect 2 '--codec raw takes uint8 or int8 rows, .*base.fbin has float32' "${bare[@]}" --codec raw \
        --metric l2
    expect 2 '--codec raw takes up to 26378 dims, .*dims=26379.* has 26379' encode --index OUT/i \
        --base synth:count=2,dims=26379,type=uint8 --codec raw --metric ip
    expect 2 '--bits 4: --codec raw keeps all 8' "${bare[@]}" --codec raw --metric l2 --bits 4
    expect 2 '--segments is for --codec saq' "${bare[@]}" --codec raw --metric l2 --segments 16x8
    expect 2 '--model is for --codec saq, pq and rbe' "${bare[@]}" --codec raw --metric l2 --model "$index/good"
    expect 2 '--model .*: its codec is raw, not saq' "${bare[@]}" --metric l2 --model "$index/raw"
    find=(search --index "$index/raw" --queries "$in/q.u8bin" --out OUT/r)
    expect 2 '--scan planes: codec raw has no bit planes' "${find[@]}" --scan planes
    expect 2 '--query-bits is for codes' "${find[@]}" --query-bits 6
    expect 2 'histogram selection needs integer distances: codec raw' "${find[@]}" --extra-distance 3
    expect 2 '--k 301: the index has 300 rows' "${find[@]}" --k 301
    expect 2 "segments '8x2' have 8 dims, the vectors 16" "${base[@]}" --segments 8x2
    expect 2 "segments '16y2' are not of the form" "${base[@]}" --segments 16y2
    expect 2 "segments '16x9'" "${base[@]}" --segments 16x9
    expect 2 '--shards 301: .*base.fbin has 300 rows' "${base[@]}" --shards 301
    expect 2 '--shards 0' "${base[@]}" --shards 0
    expect 2 '--rows 0:301: .*has 300 rows' "${base[@]}" --rows 0:301
    expect 2 'synth' encode --base synth:rows=3 --index OUT/i
    expect 2 'synth needs --dims' synth --count 3 --out OUT/v.fbin
    expect 2 'v.u8bin' synth --count 3 --dims 3 --type float32 --out OUT/v.u8bin
    expect 2 'bench of what\? usage: bitsweep bench WHAT .*tune' bench
    expect 2 "no bench 'tine': did you mean tune[?] usage: bitsweep bench WHAT .*tune" bench tine
    expect 2 "no bench '--level'" bench --level avx2
    expect 2 "'reference' is no option of bench tune" bench tune reference
    expect 2 "--dims '32,48': .*multiples of 32 up to 65536" bench tune --dims 32,48
    expect 2 "--dims '64,64': 64 is there twice" bench tune --dims 64,64
    expect 2 "--bits '1,': .*up to 8" bench tune --bits 1,
    expect 2 "--bits '9'" bench tune --bits 9
    expect 2 '--seconds 0: ' bench tune --seconds 0
}

put_output() {
    mkdir "$out/i"
    printf old >"$out/r"
    printf old >"$out/v.fbin"
    cp "$index/good"/* "$out/i"
}

put_fault_in_the_way() {
    mkdir "$out/folder"
    printf file >"$out/file"
}

check_outputs() {
    local every=4 prepare=put_output truth=(groundtruth --base "$in/base.fbin" --queries "$in/q.fbin" --metric l2)
    local find=(search --index "$index/good" --queries "$in/q.fbin")
    expect 2 'out/r: exists; --force replaces it' "${find[@]}" --out OUT/r
    expect 2 'out/r: exists; --force replaces it' "${truth[@]}" --out OUT/r
    expect 2 'out/i: holds an index already; --force replaces it' encode --base "$in/base.fbin" \
        --metric l2 --index OUT/i
    expect 2 'out/v.fbin: exists' synth --count 3 --dims 3 --out OUT/v.fbin
    expect 65 'out/r: line 1: ' bench tune --write OUT/r
    # A job that fails leaves even what it was allowed to replace.
    expect 65 'q-nan.fbin: row 3' search --index "$index/good" --queries "$in/q-nan.fbin" --out OUT/r --force
    expect 65 'nan.fbin: row 290' encode --base "$in/nan.fbin" --metric l2 --index OUT/i --force
    expect 65 'nan.fbin: row 290' groundtruth --base "$in/nan.fbin" --queries "$in/q.fbin" --metric l2 \
        --out OUT/r --force
    prepare=put_fault_in_the_way
    expect 2 'out/folder: is a folder' "${find[@]}" --out OUT/folder
    expect 2 'out/file: exists and is no folder' encode --base "$in/base.fbin" --metric l2 \
        --index OUT/file
    expect 74 'out/file/r.*: cannot create: Not a directory' "${find[@]}" --out OUT/file/r
    expect 74 'out/file/r.*: cannot create: Not a directory' "${truth[@]}" --out OUT/file/r
    expect 74 'out/file/i: cannot create folder: Not a directory' encode --base "$in/base.fbin" \
        --metric l2 --index OUT/file/i
    expect 74 'out/none/i: cannot create folder: No such file' encode --base "$in/base.fbin" \
        --metric l2 --index OUT/none/i
    expect 74 '/proc/bitsweep.*: cannot create' "${find[@]}" --out /proc/bitsweep
    expect 74 '/proc/bitsweep: cannot create folder' encode --base "$in/base.fbin" --metric l2 \
        --index /proc/bitsweep
    expect 2 '/dev/full: not a regular file' "${find[@]}" --out /dev/full
    expect 74 'out/file/v.fbin.*: cannot create' synth --count 3 --dims 3 --out OUT/file/v.fbin
    expect 74 'out/folder: not a regular file' bench tune --write OUT/folder
    expect 74 'out/file/t.*: cannot create' bench tune --write OUT/file/t --quiet --dims 32 --bits 8 \
        --seconds 0.0001
}

# The same with --force.
check_replacing() {
    local out=$folder/replaced
    mkdir "$out" && put_output
    succeed '--force replaces a result' bitsweep search --index "$index/good" --queries "$in/q.fbin" \
        --out "$out/r" --force
    succeed '--force replaces a ground truth' bitsweep groundtruth --base "$in/base.fbin" --metric l2 \
        --queries "$in/q.fbin" --out "$out/r" --force
    succeed '--force replaces an index' bitsweep encode --base "$in/base.fbin" --metric l2 --shards 2 \
        --index "$out/i" --force
    succeed 'the new index is whole' bitsweep verify "$out/i"
    local left
    left=$(cd "$out" && find . -type f | sort | tr '\n' ' ')
    if [[ $left == "./i.json ./i/manifest.pb ./i/shard-00000-of-00002.codes \
./i/shard-00001-of-00002.codes ./r ./r.json ./v.fbin " ]]; then
        pass
    else
        complain "--force left files of the old index or temporary ones: $left"
    fi
}

check_indexes() {
    local name code text last=shard-00002-of-00003 view every=6 turn=0
    while IFS='|' read -r name code text; do
        view=${name##*/}
        [[ $name == */* ]] && view=$folder/$name || view=$index/$name
        expect "$code" "$text" "${search[@]}" --index "$view"
        expect "$code" "$text" verify "$view"
        expect_last "$index/good" "$view" "$code" "rank $((ranks - 1)): .*($text)" \
            "${search[@]}" --index "$index/good"
        expect_last "$index/good" "$view" "$code" "rank $((ranks - 1)): .*($text)" verify "$index/good"
    done <<LIST
manifest|65|manifest/manifest.pb: checksum does not match
emptied|65|emptied/manifest.pb: empty
nomanifest|74|nomanifest: not an index: it has no manifest.pb
codes|65|codes/$last.codes: block 0 of 1 .* is corrupt
footer|65|footer/$last.codes: footer is corrupt
header|65|header/$last.codes: header is corrupt
swapped|65|swapped/$last.codes: belongs to another build
missing|65|missing/$last.codes: missing from the index
longer|65|longer/$last.codes: .* bytes, the manifest says
row/index/good|65|base.fbin: rows 264 to 295 are not those the index was made from
size/index/good|65|base.fbin: changed since the index was made: its size
cut/index/good|65|base.fbin: the header says 300 x 16 .*, the file has 19144
gone/index/good|74|base.fbin: cannot open: No such file
LIST
    turn=""
    text="rawcodes/$last.codes: block 0 of 1 .* is corrupt"
    expect 65 "$text" search --index "$index/rawcodes" --queries "$in/q.u8bin" --out OUT/r
    expect 65 "$text" verify "$index/rawcodes"
    for name in vectors novectors; do
        text="$last.vectors: rows 296 to 299 are not those"
        [[ $name == vectors ]] || text="$last.vectors: missing from the index"
        expect 65 "$text" "${search[@]}" --index "$index/$name"
        expect 65 "$text" verify "$index/$name"
        expect_last "$index/copied" "$index/$name" 65 "rank $((ranks - 1)): .*$text" \
            "${search[@]}" --index "$index/copied"
    done
    expect 74 'none/manifest.pb: cannot open' "${search[@]}" --index "$folder/none"
    expect 2 'codes: is part of an index; info takes its folder' info "$index/good/shard-00000-of-00003.codes"
    expect 2 'manifest.pb: is part of an index' info "$index/good/manifest.pb"
    expect 65 'emptied/manifest.pb: empty' info "$index/emptied"
    # What does not need the raw rows works without them.
    succeed 'search by code without the source' bitsweep search --index "$folder/gone/index/good" \
        --queries "$in/q.fbin" --refine none --out "$folder/by-code"
    succeed 'a copied index without the source' bitsweep search --index "$folder/gone/index/copied" \
        --queries "$in/q.fbin" --out "$folder/by-copy"
    succeed 'verify --no-source without the source' bitsweep verify "$folder/gone/index/good" --no-source
}

# An error of the last rank in a late batch, while rank 0 has work of other batches under way.
check_late_batches() {
    local overlap
    for overlap in on off; do
        expect 65 'base.fbin: rows 264 to 295 are not those' search --index "$folder/row/index/good" \
            --queries "$in/base.fbin" --k 1 --oversample 1 --batch 7 --overlap "$overlap" --out OUT/r
    done
}

check_eval() {
    local name=$in/short.fbin every=10
    bitsweep groundtruth --base "$in/base.fbin" --queries "$in/q.fbin" --metric l2 --out "$in/truth"
    bitsweep groundtruth --base "$in/base.fbin" --queries "$in/q.fbin" --metric ip --out "$in/truth-ip"
    bitsweep groundtruth --base "$in/base.fbin" --queries "$in/q.fbin" --metric l2 --query-rows 0:5 \
        --out "$in/truth-5"
    bitsweep search --index "$index/good" --queries "$in/q.fbin" --out "$in/result"
    head -c -1 "$in/result" >"$in/result-short"
    cp "$in/result" "$in/result-nan" && put "$in/result-nan" $((8 + 7 * 10 * 4)) '\0\0\300\177'
    cp "$in/result" "$in/result-id" && put "$in/result-id" 8 '\376\377\377\377'
    head -c -1 "$in/ids.ivecs" >"$in/short.ivecs"
    for name in "missing|74|cannot open" "empty.fbin|65|empty" \
        "result-short|65|the header says 7 queries x 10" "base.fbin|65|holds vectors, not neighbours" \
        "result-nan|65|query 0, place 0: the value is NaN" "result-id|65|query 0, place 0: id -2" \
        "short.ivecs|65|.*which does not divide" "folder.fbin|74|not a regular file"; do
        local file=${name%%|*} text=${name##*|} code
        code=${name#*|} && code=${code%%|*}
        expect "$code" "$file: $text" eval --results "$in/$file" --groundtruth "$in/truth"
        expect "$code" "$file: $text" eval --results "$in/result" --groundtruth "$in/$file"
    done
    expect 65 'result has 7 queries, .*truth-5 has 5' eval --results "$in/result" \
        --groundtruth "$in/truth-5"
    expect 2 'result has metric l2, .*truth-ip has ip' eval --results "$in/result" \
        --groundtruth "$in/truth-ip"
    expect 2 '--k 11: .*truth has 10' eval --results "$in/result" --groundtruth "$in/truth" --k 11
    expect 2 '--base and --queries go together' eval --results "$in/result" --groundtruth "$in/truth" \
        --base "$in/base.fbin"
}

# Floats may ask bytes, and bytes floats.
check_query_types() {
    succeed 'float queries of a uint8 base' bitsweep search --index "$index/bytes" \
        --queries "$in/q.fbin" --out "$folder/float-queries"
    succeed 'uint8 queries of a float base' bitsweep search --index "$index/good" \
        --queries "$in/q.u8bin" --out "$folder/byte-queries"
    succeed 'their ground truth' bitsweep groundtruth --base "$in/base.u8bin" --queries "$in/q.fbin" \
        --metric l2 --out "$folder/float-truth"
    succeed 'its recall' bitsweep eval --results "$folder/float-queries" --groundtruth "$folder/float-truth"
}

# ---- a full disk ---------------------------------------------------------------------------------

# full_case RANKS PATTERN ARGUMENTS: with an output folder of 16 KiB, in a name space of its own.
full_case() {
    local num_ranks=$1 pattern=$2 got=0 begin=$SECONDS arguments
    shift 2
    arguments=("${@/#OUT/$out}")
    snapshot "$out" >"$job/before"
    # shellcheck disable=SC2016
    BITSWEEP=$program timeout 20 unshare -Urm bash -c '
        mount -t tmpfs -o size=16k tmpfs "$1" || exit 99
        shift
        "${@:2}" || code=$?
        find "$out" -mindepth 1 >"$job/left"
        exit "${code:-0}"' - "$out" "$out" \
        "$run" -n "$num_ranks" -- "${arguments[@]}" >"$job/stdout" 2>"$job/stderr" || got=$?
    if [[ -s $job/left ]]; then
        complain "full disk, $num_ranks ranks: $* left something behind" "$job/left"
    else
        judge "full disk, $num_ranks ranks: $*" 74 "$pattern" "$got" $((SECONDS - begin))
    fi
}

check_full_disk() {
    local num_ranks overlap pattern='No space left'
    expect_stdout_full
    # shellcheck disable=SC2016
    if ! unshare -Urm bash -c 'mount -t tmpfs -o size=16k tmpfs "$1"' - "$in" 2>/dev/null; then
        echo "  skipped: a small tmpfs needs user name spaces (unshare -Urm)"
        return
    fi
    export out job
    for num_ranks in 1 $((has_mpi ? ranks : 1)); do
        start full_case "$num_ranks" "i/shard-[^ ]*.tmp: cannot write: $pattern" encode --base "$in/base.fbin" \
            --metric l2 --shards 2 --copy-vectors --index OUT/i
        start full_case "$num_ranks" "$pattern" search --index "$index/good" --queries "$in/base.fbin" \
            --out OUT/r
        # The sixth batch does not fit; with overlap the seventh is on its way by then.
        for overlap in on off; do
            start full_case "$num_ranks" "$pattern" search --index "$index/good" --batch 20 \
                --queries "$in/base.fbin" --out OUT/r --overlap "$overlap"
        done
        start full_case "$num_ranks" "$pattern" groundtruth --base "$in/base.fbin" --metric l2 \
            --queries "$in/base.fbin" --out OUT/r
        start full_case "$num_ranks" "$pattern" synth --count 300 --dims 16 --out OUT/v.fbin
    done
}

expect_stdout_full() {
    local got=0
    [[ -w /dev/full ]] || { echo "  skipped: there is no /dev/full" && return; }
    "$program" info "$index/good" >/dev/full 2>"$folder/stderr" || got=$?
    if ((got == 74)) && grep -q '^bitsweep: cannot write to standard output' "$folder/stderr"; then
        pass
    else
        complain "stdout is full: exit code $got" "$folder/stderr"
    fi
}

# ---- ranks that die or stop ----------------------------------------------------------------------

# Until every rank has noted its process and there is a file of the output, which is after they have
# found each other; or 20 s.
await_work() {
    local i noted
    for ((i = 0; i < 400; i++)); do
        noted=("$job/pids/"*)
        if ((${#noted[@]} == ranks)) && { compgen -G "$out/r.tmp.*" || compgen -G "$out/i/shard-*"; } >/dev/null; then
            return 0
        fi
        sleep 0.05
    done
    return 1
}

# signal_case SIGNAL RANK CODE PATTERN ARGUMENTS: sends it when all ranks are at work. Code "-" is any
# but 0.
signal_case() {
    local signal=$1 rank=$2 code=$3 pattern=$4 got=0 begin pid arguments
    shift 4
    arguments=("${@/#OUT/$out}")
    mkdir "$job/pids"
    BITSWEEP=$folder/other_view PIDS=$job/pids timeout 60 "$run" -n "$ranks" -- "${arguments[@]}" \
        >"$job/stdout" 2>"$job/stderr" &
    pid=$!
    if ! await_work; then
        complain "kill -$signal of rank $rank: the ranks did not begin" "$job/stderr"
    fi
    sleep 0.3
    begin=$SECONDS
    kill -"$signal" "$(cat "$job/pids/$rank")" || complain "rank $rank is no longer there"
    wait "$pid" || got=$?
    if ((SECONDS - begin > most_seconds + 2)); then
        complain "kill -$signal of rank $rank, $1: took $((SECONDS - begin)) s"
    elif ((got == 0)) || [[ $code != - && $code != "$got" ]]; then
        complain "kill -$signal of rank $rank, $1: exit code $got instead of $code" "$job/stderr"
    elif ! grep -qE "$pattern" "$job/stderr"; then
        complain "kill -$signal of rank $rank, $1: stderr has no '$pattern'" "$job/stderr"
    elif [[ -e $out/r || -e $out/i/manifest.pb ]] || grep -qs complete "$out/r.json"; then
        complain "kill -$signal of rank $rank, $1: left an output"
    else
        pass
    fi
    if [[ -d $out/i ]]; then expect_no_index; fi
}

# What an encoder that was killed leaves is no index, and does not stand in the way of one.
expect_no_index() {
    local names
    if "$program" info "$out/i" >/dev/null 2>&1; then complain "a killed encoder left an index"; fi
    if ! "$program" encode --base "$in/base.fbin" --metric l2 --shards 3 --index "$out/i" --quiet \
        --force 2>"$job/stderr" || ! "$program" verify "$out/i" --quiet >/dev/null 2>"$job/stderr"; then
        complain "encoding over the remains of a killed encoder" "$job/stderr"
    fi
    names=$(cd "$out/i" && echo *)
    if [[ $names == "$(cd "$index/good" && echo *)" ]]; then
        pass
    else
        complain "encoding over the remains of a killed encoder left $names"
    fi
}

check_signals() {
    ((has_mpi)) || return 0
    local last=$((ranks - 1)) find
    local lost='ended by signal 9|is lost: its connection broke' # run.sh, or another rank
    find=(search --index "$index/good" --queries "synth:count=20K,dims=16" --out OUT/r --repeat 1000
        --quiet --batch 100)
    local build=(encode --base "synth:count=20M,dims=64" --metric cosine --axes random --shards 3 --index OUT/i
        --quiet)
    start signal_case KILL "$last" 75 "$lost" "${find[@]}"
    start signal_case KILL 0 75 "$lost" "${find[@]}"
    wait
    start signal_case STOP "$last" 75 "rank $last did not .* within 3 s" "${find[@]}" --timeout 3
    start signal_case STOP 0 75 'rank 0 did not' "${find[@]}" --timeout 3
    wait
    start signal_case KILL "$last" 75 "$lost" "${build[@]}"
    start signal_case TERM 0 - . "${build[@]}"
}

section "files and indexes"
make_files
make_bad_rows
make_indexes
snapshot "$in" >"$folder/in-before"
snapshot "$index" >"$folder/index-before"
section "options"
check_options
section "files"
check_files
section "one name, two files"
check_views
section "bad rows"
check_rows
check_dropped
section "outputs"
check_outputs
check_replacing
section "indexes"
check_indexes
section "late batches"
check_late_batches
section "full disk"
check_full_disk
section "nothing was written beside the inputs"
snapshot "$in" | diff - "$folder/in-before" >"$folder/diff" || complain "in" "$folder/diff"
snapshot "$index" | diff - "$folder/index-before" >"$folder/diff" || complain "index" "$folder/diff"
pass
section "results and ground truths"
check_eval
check_query_types
section "ranks that die or stop"
check_signals
finish_all_jobs || complain "a job did not come to its end"
finish
