#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Self-checks of search on damage made on purpose (shard/damage_points.h): bits of resident codes on
# CPUs and emulated devices and keys that a scan gives, at the start and in the middle, on one rank
# and on three. One line that names host, device, shard and rank, exit code 70, STATUS.json says it, no
# result, and --resume goes on from the last check that all had passed. Undisturbed searches give the
# same bytes with checks and without; indexes of any number of ranks the same known answers.
# usage: check_self_check.sh BITSWEEP_BINARY SOURCE_FOLDER
# ctest labels: asan
# With BITSWEEP_MAX_RANKS in the environment it starts no more ranks than that.
#
# SELF_CHECK_FLIPS: bits flipped, one a search (12, under sanitizers 6); SELF_CHECK_SCORES: searches with wrong keys
# (8, 3).
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
needs "${emulated}_faults"
faults=$(dirname "$program")/tests/bitsweep_faults
is_short=${BITSWEEP_MAX_RANKS:+yes} # under sanitizers
flips=${SELF_CHECK_FLIPS:-$([[ $is_short ]] && echo 6 || echo 12)}
num_scores=${SELF_CHECK_SCORES:-$([[ $is_short ]] && echo 3 || echo 8)}
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
unset BITSWEEP_DAMAGE BITSWEEP_DAMAGE_SHARE
cd "$folder"

# The faults program; on several ranks only rank DAMAGED_RANK has the damage.
# shellcheck disable=SC2016
printf '#!/usr/bin/env bash\n[[ $OMPI_COMM_WORLD_RANK == "$DAMAGED_RANK" ]] || unset BITSWEEP_DAMAGE
    exec %q "$@"\n' "$faults" >one_rank
chmod +x one_rank

for codec in xfbq saq raw; do
    metric=l2
    [[ $codec != xfbq ]] || metric=cosine
    "$program" encode --base "$base" --rows 0:4000 --index $codec --codec $codec --metric $metric \
        --shards 3 --threads 1 --quiet
done

# search PROGRAM INDEX ARGUMENTS: 60 queries unless `rows` says otherwise; sets code.
rows=0:60
search() {
    local shape=(--k 5 --batch 6)
    if [[ "$*" == *"--batch "* ]]; then shape=(); fi
    code=0
    "$1" search --index "$2" --queries "$queries" --query-rows $rows "${shape[@]}" --threads 1 --quiet \
        "${@:3}" >json 2>stderr || code=$?
}

# failed_check WHAT PATTERN: the last search failed as it must.
failed_check() {
    if ((code != 70)); then
        complain "$1: exit code $code"
    elif [[ $(wc -l <stderr) != 1 ]] || ! grep -Eq -- "$2" stderr; then
        complain "$1: another line than $2"
    elif [[ -e found ]] || ! grep -q '"exit_code": 70' status.json; then
        complain "$1: a result, or no STATUS"
    else
        pass
        return 0
    fi
    return 1
}

# ---- undisturbed ---------------------------------------------------------------------------------

for codec in xfbq saq raw; do
    search "$program" $codec --out $codec.want --check-every never
    for every in 0 0.000001; do
        search "$faults" "$codec" --out found --force --check-every $every --json
        check "$codec, a check every $every s: other bytes" cmp $codec.want found
        check "$codec: no known answers" grep -q '"known_answers": 4' json
    done
    for arguments in "--query-bits 1" "--query-bits 3 --scan planes" "--scan matrix --oversample 1 --k 1 --batch 7" \
        "--select queue --items 4" "--batch 3 --k 2 --refine none"; do
        if [[ $codec == raw && $arguments == *--query-bits* ]]; then continue; fi
        # shellcheck disable=SC2086
        search "$program" $codec --out found --force --check-every 0.000001 $arguments
        check "$codec $arguments: exit code $code" test $code = 0
    done
done
for arguments in "--check-every -1" "--check-every often"; do
    # shellcheck disable=SC2086
    search "$program" saq --out found --force $arguments
    check "$arguments: exit code $code" test $code = 2
done
rm -f found*
export BITSWEEP_STATUS=$folder/status.json

# ---- flipped bits --------------------------------------------------------------------------------

place="^bitsweep: self-check: host [^ ]+, cpu: "
caught=0
# Before batch 1, found at the end; before batch 4, found by the check before batch 5 at the latest.
for ((seed = 1; seed <= flips; seed++)); do
    codecs=(saq xfbq raw)
    codec=${codecs[seed % 3]}
    rm -f found*
    BITSWEEP_DAMAGE=codes:1:$seed search "$faults" "$codec" --out found --refine none --check-every 0
    if failed_check "$codec, bit $seed" "$place.*shard [0-2]: "; then ((++caught)); fi
done
for ((seed = 101; seed <= 100 + flips / 3; seed++)); do
    rm -f found*
    export BITSWEEP_JOURNAL_SECONDS=0
    BITSWEEP_DAMAGE=codes:4:$seed search "$faults" saq --out found --refine none --check-every 0.000001 \
        --device cpu
    if failed_check "in the middle, bit $seed" "$place.*shard [0-2]: "; then ((++caught)); fi
    check "no journal" test -e found.journal
    search "$program" saq --out found --refine none --resume --json
    check "resume: exit code $code" test $code = 0
    # Batches 1 to 3 were scanned before the last good check, in the overlapped case 2 of them put.
    check "resumed: not what was checked" grep -Eq '"resumed_queries": 1[28],' json
    search "$program" saq --out found.again --refine none --check-every never
    check "resumed: other bytes" cmp found found.again
    unset BITSWEEP_JOURNAL_SECONDS
done
flipped=$((flips + flips / 3))
rm -f found*

# ---- wrong keys ----------------------------------------------------------------------------------

# At the start, from the first scan on.
known=0
keys=0
for ((seed = 1; seed <= num_scores; seed++)); do
    codecs=(saq xfbq raw)
    codec=${codecs[seed % 3]}
    rm -f found*
    BITSWEEP_DAMAGE=scores:1:$seed search "$faults" "$codec" --out found
    if failed_check "wrong keys at the start, $seed" "${place}[a-z-]+ scan: shard 0: known answer [0-3] "; then
        ((++known))
    fi
    # After the known answers at the start; a sixteenth of all keys.
    BITSWEEP_DAMAGE_SHARE=16 BITSWEEP_DAMAGE=scores:7:$seed search "$faults" "$codec" --out found --check-every 0
    if failed_check "wrong keys, $seed" "$place.*shard [0-2]: "; then
        if grep -q 'the key of row [0-9]* and query' stderr; then ((++keys)); fi
    fi
done
rm -f found*

# ---- emulated devices ----------------------------------------------------------------------------

emulated_caught=0
emulated_flips=$((flips / 3))
rows=0:18
place="^bitsweep: self-check: host [^ ]+, emulated:0: "
for ((seed = 1; seed <= emulated_flips; seed++)); do
    codecs=(saq xfbq)
    codec=${codecs[seed % 2]}
    rm -f found*
    BITSWEEP_DAMAGE=codes:2:$seed search "${emulated}_faults" "$codec" --out found --refine none --device emulated \
        --check-every $((seed % 2)).000001
    if failed_check "emulated, $codec, bit $seed" "$place.*shard [0-2]: "; then ((++emulated_caught)); fi
done
rm -f found*
BITSWEEP_DAMAGE=scores:1:1 search "${emulated}_faults" xfbq --out found --device emulated
failed_check "emulated, wrong keys" "$place.*shard 0: known answer" || true
rm -f found*
# A check sees the codes of one shard of the three: a bit of shard 1 flips after the second check and is
# found by the fifth, what was put in between is not gone on with.
rows=0:42
BITSWEEP_JOURNAL_SECONDS=0 BITSWEEP_DAMAGE=codes:2:2 search "${emulated}_faults" xfbq --out found \
    --refine none --device emulated --check-every 0.000001
failed_check "emulated, found late" "$place.*shard 1: .* have changed in memory" || true
check "a journal of what no round of checks has seen" test ! -e found.journal
rm -f found*
rows=0:18
search "${emulated}_faults" xfbq --out found --device emulated --check-every 0.000001
search "$program" xfbq --out cpu
check "emulated, undisturbed: other bytes" cmp cpu found
rm -f found*

# Lists that a device refines itself: wrong keys of survivors are seen, and nothing where there are none.
make_gpu_lists_tuning
"$program" encode --base "$base" --rows 0:1000 --index lists --metric l2 --bits 3 --lists 20 --calibrate off --threads 1 --quiet
BITSWEEP_TUNING=$gpu_lists BITSWEEP_DAMAGE_SHARE=1 BITSWEEP_DAMAGE=scores:3:1 search "${emulated}_faults" lists --out found \
    --device emulated --probe 8
failed_check "emulated, refined, wrong keys" "$place.*shard 0: the key of row" || true
rm -f found*
BITSWEEP_TUNING=$gpu_lists search "${emulated}_faults" lists --out found --device emulated --probe 8 --check-every 0.000001 --json
check "refined on the device: exit code $code" grep -q '"refine_waits": 0,' json
search "$program" lists --out cpu --force --probe 8
check "refined on the device: other bytes" cmp cpu found
rm -f found*

# ---- several ranks -------------------------------------------------------------------------------

find_ranks 3
ranks=${ranks_axis[-1]}
if ((ranks == 3)); then
    export BITSWEEP=$folder/one_rank
    on_ranks() { timeout 60 "$run" -n 3 -- "$@"; }
    for codec in xfbq saq; do
        "$run" -n 3 -- encode --base "$base" --rows 0:4000 --index ranks.$codec --codec $codec \
            --metric "$([[ $codec == xfbq ]] && echo cosine || echo l2)" --shards 3 --threads 1 --quiet
        check "$codec: other known answers on 3 ranks" cmp ranks.$codec/manifest.pb $codec/manifest.pb
    done
    for DAMAGED_RANK in 1 2; do
        export DAMAGED_RANK
        what=codes:2:7
        [[ $DAMAGED_RANK == 1 ]] || what=scores:1:7
        rm -f found*
        BITSWEEP_DAMAGE=$what search on_ranks saq --out found --refine none --check-every 0.000001
        failed_check "rank $DAMAGED_RANK of 3, $what" \
            "^bitsweep: rank $DAMAGED_RANK: self-check: host [^ ]+, cpu: .*shard $DAMAGED_RANK: " || true
    done
fi

echo "$caught of $flipped flipped bits of host memory caught, $emulated_caught of $emulated_flips on an emulated device"
echo "wrong keys: $known of $num_scores caught by known answers at the start; of a sixteenth wrong" \
    "$keys of $num_scores by keys of a batch, the others at the end"
finish
