#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Scans on a device against scans on the CPU: the same bytes whatever the codec, metric, k, batch,
# ranks, shards and memory of the device; and its errors. The device is emulated, so no GPU is
# needed: bitsweep_emulated is the program with the kernels compiled for the CPU. With `cuda` as a
# third argument it is GPU 0 and BITSWEEP_BINARY itself, with more rows; what needs the emulator's
# switches is then skipped.
# usage: check_device.sh BITSWEEP_BINARY SOURCE_FOLDER [cuda]
# With BITSWEEP_MAX_RANKS in the environment, as under sanitizers, it starts no more ranks than that
# and takes a part of the matrix; with QUICK=1 it ends after the first searches.
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
use_device "${3:-}"
asked=(--queries "$queries" --query-rows 0:12)
rows=2003
scale=1 # of rows and of the device's memory
if [[ $kind == cuda ]]; then rows=20000 scale=9; fi
find_ranks 2 4
is_short=${BITSWEEP_MAX_RANKS:+yes}

end() {
    echo "$skipped skipped"
    finish
}

# ---- the same bytes ------------------------------------------------------------------------------

# encode NAME ARGUMENTS: the index with 1 and with 3 shards.
encode() {
    local name=$1 shards
    shift
    for shards in 1 3; do
        "$program" encode --base "$base" --rows "0:$rows" --index "$folder/$name.$shards" --quiet \
            --shards "$shards" "$@"
    done
}

# Half of the searches that differ little are left out, unless FULL=1 is in the environment or the device is a GPU: each
# number of ranks is with one number of shards, and for the next index with the other.
num_alike=0
is_left_out() {
    local number=$((num_alike++))
    [[ -z ${FULL:-} && $kind == emulated ]] && (((number + number / 2 + number / 6) % 2))
}

# On every number of ranks, shards and some of the rest in turn; in short one of them.
turn=0
same_everywhere() {
    local name=$1 ranks shards more
    shift
    for ranks in "${ranks_axis[@]}"; do
        for shards in 1 3; do
            if [[ $is_short ]]; then
                [[ $ranks-$shards == 1-3 ]] || continue
            elif is_left_out; then
                continue
            fi
            case $((turn++ % 4)) in
            0) more=(--scan planes --batch 5) ;;
            1) more=(--scan matrix --merge gather) ;;
            2) more=(--scan auto --batch 1 --merge ladder) ;;
            3) more=(--scan auto --batch 1000 --device-memory "$((90 * scale))K") ;;
            esac
            same "$name" "$ranks" "$shards" "$@" "${more[@]}"
        done
    done
}

# agree WHAT: what info has said each rank uses and copies, and what the last search did.
agree() {
    local what=$1 said used
    said=$(sed -n 's/^ *"used_bytes": \([0-9]*\),$/\1/p' "$folder/info" | tr '\n' ' ')
    used=$(sed -n 's/^ *"used_bytes": \([0-9]*\),$/\1/p' "$folder/json" | tr '\n' ' ')
    if [[ -z $said || $said != "$used" ]]; then complain "$what: $said foretold, $used used"; else pass; fi
    said=$(sed -n 's/^ *"streamed_bytes": \([0-9]*\),*$/\1/p' "$folder/info" | awk '{sum += $1} END {print sum + 0}')
    if (((said > 0) == ($(sum_of copied_bytes) > 0))); then pass; else complain "$what: blocks or none"; fi
}

# foretell NAME RANKS SHARDS MEMORY ARGUMENTS: info, without a device, says what each rank of the same
# search then uses and copies, here of 12 queries in one batch.
foretell() {
    local name=$1 ranks=$2 shards=$3 memory=$4
    shift 4
    "$program" info "$folder/$name.$shards" --json --ranks "$ranks" --device-memory "$memory" --link mpi "$@" >"$folder/info"
    same "$name" "$ranks" "$shards" --device-memory "$memory" "$@"
    agree "info of $name, $ranks ranks, $shards shards, $memory, $*"
}

encode xfbq --codec xfbq --bits 3
encode saq --codec saq --bits 2.5 --metric l2
encode segments --codec saq --segments 32x4,64x3,32x1 --metric ip
encode staged --codec saq --bits 2 --stage 32 --metric cosine
encode cosine --codec saq --bits 1 --metric cosine

search_cpu xfbq --k 100 --refine none
same_everywhere xfbq --k 100 --refine none
if [[ -n ${QUICK:-} ]]; then end && exit; fi
search_cpu saq --k 10
same_everywhere saq --k 10
search_cpu segments --k 1
same_everywhere segments --k 1
search_cpu cosine --k 300 --oversample 7
same_everywhere cosine --k 300 --oversample 7
# The first stage of a progressive scan, which Hopper GPUs alone have.
search_cpu staged --k 10
[[ $kind == cuda ]] || same staged 1 3 --k 10 --scan progressive-matrix
[[ $kind == cuda ]] || check "in full" json_says "$folder/json" '"scan": "matrix"'
[[ $kind == cuda ]] || export BITSWEEP_EMULATOR_HOPPER=1
for k in 1 20 500; do
    search_cpu staged --k "$k"
    is_left_out || same staged 1 1 --k "$k" --scan progressive-matrix --batch 1
    is_left_out || same staged 1 3 --k "$k" --scan progressive-matrix --batch 7 --merge gather
    is_left_out || same staged 1 1 --k "$k" --scan progressive-planes --device-memory "$((100 * scale))K"
    is_left_out || same staged 1 3 --k "$k" --scan auto
done
same_everywhere staged --k 500
search_cpu staged --k 1
same staged 1 1 --k 1 --scan progressive-matrix --device-memory 100K # lists shorter than the shard
# Another GPU scans in full.
if [[ $kind != cuda ]] || json_says "$folder/json" '"scan": "progressive-matrix"'; then
    check "a progressive scan" json_says "$folder/json" '"scan": "progressive-matrix"'
    check "rows were stopped" grep -Eq '^  "stopped_share": 0\.[0-9]*[1-9]' "$folder/json"
fi
unset BITSWEEP_EMULATOR_HOPPER
most=$((rows < 10000 ? rows : 10000)) # candidates
search_cpu xfbq --k "$most" --oversample 1
same xfbq 1 3 --k "$most" --oversample 1
search_cpu saq --query-bits 3 --k 7 --refine none
same saq 1 1 --query-bits 3 --k 7 --refine none

# All codes on the device are copied once; with less memory some come for every batch.
search_cpu saq --k 10
same saq 1 3 --k 10 --batch 4
if [[ $(sum_of copied_bytes) != 0 ]]; then complain "codes that fit were copied"; else pass; fi
if grep -q '"used_bytes": 0,' "$folder/json"; then complain "no device memory used"; else pass; fi
for memory in 100K 60K 42K; do
    memory=$((${memory%K} * scale))K
    same saq 1 3 --k 10 --batch 4 --device-memory "$memory"
    if (($(sum_of copied_bytes) > 0)); then pass; else complain "nothing was copied with $memory"; fi
    if (($(sum_of used_bytes) <= 1000 * ${memory%K})); then pass; else complain "more than $memory"; fi
done
search_cpu xfbq --k 10
BITSWEEP_EMULATOR_MEMORY=70000 same xfbq 1 1 --k 10 --batch 4
if [[ $kind != emulated ]] || (($(sum_of copied_bytes) > 0)); then
    pass
else
    complain "nothing was copied"
fi

# What info foretells, for codes that fit and for codes that do not.
for memory in 40K 90K 100M; do
    foretell xfbq "${ranks_axis[-1]}" 3 "$memory" --k 10 --query-bits 6
done
search_cpu xfbq --k 10 --select histogram --max-candidates 200
foretell xfbq 1 3 40K --k 10 --select histogram --max-candidates 200
search_cpu saq --k 20 --oversample 3 --query-bits 4
foretell saq 1 3 50K --k 20 --oversample 3 --query-bits 4
foretell saq 1 1 1M --k 20 --oversample 3 --query-bits 4 --batch 5
"$program" info "$folder/saq.3" --device-memory 100M >"$folder/stdout"
if grep -q '^  rank 0 .* 1000 queries at a time' "$folder/stdout"; then pass; else complain "info as text" "$folder/stdout"; fi

# foretell_error CODE PATTERN ARGUMENTS
foretell_error() {
    local code=$1 pattern=$2 got=0
    shift 2
    "$program" info "$@" >"$folder/stdout" 2>"$folder/stderr" || got=$?
    if ((got == code)) && grep -Eq -- "$pattern" "$folder/stderr"; then pass
    else complain "exit code $got of info $*" "$folder/stderr"; fi
}
foretell_error 74 'rank 0: 5000 bytes of device memory are free, [0-9]+ are needed at least' "$folder/saq.3" \
    --device-memory 5000 --json
"$program" encode --base "$base" --rows 0:2003 --index "$folder/few" --quiet --codec xfbq --bits 1
foretell_error 2 '--k 5000: the index has 2003 rows only' "$folder/few" --device-memory 1M --k 5000
foretell_error 2 '--device-memory: .*sift20k_base.u8bin is no index' "$base" --device-memory 1M

# Nothing is allocated for a batch, whatever a batch is.
search_cpu xfbq --k 10
for memory in 100M 60K; do
    same xfbq 1 3 --k 10 --batch 3 --warmup 1 --repeat 2 --device-memory "$memory"
    if grep -q '"batch_allocations": 0' "$folder/json" && (($(sum_of batch_allocations) == 0)); then pass
    else complain "allocations for a batch"; fi
done

# Lists that hold a small part of the rows: limits from a sample, several segments.
"$program" encode --base "$base" --index "$folder/long.1" --quiet --codec xfbq --bits 1
search_cpu long --k 100 --refine none
for scan in planes matrix; do
    same long 1 1 --k 100 --refine none --device-memory 2M --scan "$scan"
    if (($(sum_of samples) == 1 && $(sum_of segments) > 1)); then pass; else complain "no sample"; fi
done
same long 1 1 --k 100 --refine none --device-memory 200K # a sample of what stays on the device
if (($(sum_of samples) > 0 && $(sum_of copied_bytes) > 0)); then pass; else complain "no sample of a part"; fi

turn=0
# Histogram selection: ties at the K-th distance and beyond it, cut to the most candidates.
for more in "--k 10" "--k 100 --refine none" "--k 10 --extra-distance 40" \
    "--k 10 --extra-distance 3000 --max-candidates 150" "--k 2003 --extra-distance 0"; do
    # shellcheck disable=SC2086
    search_cpu xfbq --select histogram $more
    for ranks in "${ranks_axis[@]:0:2}"; do
        # shellcheck disable=SC2086
        is_left_out || same xfbq "$ranks" $((turn % 2 ? 1 : 3)) --select histogram $more
        turn=$((turn + 1))
    done
    turn=$((turn + 1)) # the other way round
done
search_cpu xfbq --k 10 --extra-distance 40
same xfbq 1 3 --k 10 --extra-distance 40 --batch 5 --device-memory "$((60 * scale))K"
if (($(sum_of copied_bytes) > 0)); then pass; else complain "nothing was copied"; fi

# Queues follow the cut into shards: three.1 has three of them.
ln -s saq.3 "$folder/three.1"
queue=(--select queue --items 1 --k 20)
search_cpu three "${queue[@]}"
foretell three "${ranks_axis[-1]}" 1 "$((60 * scale))K" "${queue[@]}" # codes in blocks
foretell three 1 1 100M "${queue[@]}"
same three 1 1 "${queue[@]}" --scan planes --batch 5 --merge ladder
if (($(sum_of segments) > 3 * 3)); then pass; else complain "one round of queues"; fi
queue=(--select queue --items 3 --queue-length 2 --k 300 --refine none)
search_cpu xfbq "${queue[@]}"
for order in descending random; do
    BITSWEEP_EMULATOR_ORDER=$order same xfbq 1 1 "${queue[@]}" --scan matrix --device-memory "$((70 * scale))K"
done
queue=(--select queue --items 16M --queue-length 256 --k 10)
search_cpu saq "${queue[@]}"
same saq "${ranks_axis[-1]}" 1 "${queue[@]}" --scan matrix

# Whatever the order in which threads and blocks run.
search_cpu xfbq --k 10
for order in descending random; do
    search_cpu xfbq --k 10
    for scan in planes matrix; do
        is_left_out || BITSWEEP_EMULATOR_ORDER=$order same xfbq 1 3 --k 10 --batch 6 --scan "$scan"
    done
    search_cpu staged --k 10
    BITSWEEP_EMULATOR_HOPPER=1 BITSWEEP_EMULATOR_ORDER=$order same staged 1 3 --k 10 --batch 6 --scan progressive-matrix
done

# A GPU is taken unasked, an emulated device is not.
unasked=cpu
if [[ $kind == cuda ]]; then unasked=cuda; fi
"$emulated" search --index "$folder/xfbq.3" --queries "$queries" --query-rows 0:12 --quiet --json \
    --out "$folder/found" --force >"$folder/json"
if grep -q "^  \"device\": \"$unasked\"" "$folder/json"; then
    pass
else
    complain "auto did not take $unasked"
fi

# ---- errors --------------------------------------------------------------------------------------

# expect CODE PATTERN ARGUMENTS: one line and no result, on every number of ranks in error_ranks.
# "emulated" in both stands for the kind of device.
expect() {
    local code=$1 pattern=${2//emulated/$kind} ranks got
    shift 2
    set -- "${@//emulated/$kind}"
    if needs_emulator "$*"; then return; fi
    for ranks in "${error_ranks[@]}"; do
        got=0
        rm -f "$folder"/none*
        BITSWEEP=${tool:-$emulated} timeout 30 "$run" -n "$ranks" search --index "$folder/${index:-xfbq.3}" \
            --queries "$queries" --k 10 --query-rows 0:12 --quiet --out "$folder/none" "$@" \
            >"$folder/stdout" 2>"$folder/stderr" || got=$?
        if ((got != code)); then
            complain "exit code $got instead of $code on $ranks ranks: $*" "$folder/stderr"
        elif [[ $(wc -l <"$folder/stderr") != 1 ]] || ! grep -Eq -- "$pattern" "$folder/stderr"; then
            complain "another error on $ranks ranks: $*" "$folder/stderr"
        elif compgen -G "$folder/none*" >/dev/null; then
            complain "a result was written on $ranks ranks: $*"
        else
            pass
        fi
    done
}

error_ranks=(1)
expect 2 "--device 'gpu' is not one of auto|cpu|cuda|cuda:N" --device gpu
expect 2 "--device 'emulatedx' is not one of" --device emulatedx
expect 2 '--device .*is not a whole number' --device emulated:x
if [[ $kind == emulated ]]; then
    expect 2 '--device cuda:1: this build has no CUDA; deploy/build.sh --gpu' --device cuda:1
    tool=$program expect 2 "--device 'emulated' is not one of" --device emulated
else
    expect 2 '--device cuda:1000: this host has [0-9]+, numbered' --device cuda:1000
fi
expect 2 '--scan progressive-matrix: the codes of .* have no first stage' --device emulated \
    --scan progressive-matrix
BITSWEEP_EMULATOR_DEVICES=1 expect 2 '--device emulated:1: this host has 1, numbered' \
    --device emulated:1
if [[ $kind == emulated ]]; then error_ranks=("${ranks_axis[@]:0:2}"); fi
if [[ $is_short ]]; then error_ranks=(1); fi
BITSWEEP_EMULATOR_DEVICES=0 expect 2 '--device emulated: no device can be used: ' --device emulated
BITSWEEP_EMULATOR_DEVICES=-1 expect 2 '--device emulated: no device .*: no NVIDIA driver is installed' \
    --device emulated
expect 74 'emulated:[0-9]+: 5000 bytes of device memory are free, [0-9]+ are needed at least' \
    --device emulated --device-memory 5000
BITSWEEP_EMULATOR_MEMORY=6400 expect 74 ': 6300 bytes of device memory are free' --device emulated
BITSWEEP_EMULATOR_FAIL=12 expect 74 'emulated:[0-9]+: .*LaunchFailure' --device emulated --batch 3
BITSWEEP_EMULATOR_STALL=12 expect 74 'emulated:[0-9]+: .*: not done within 1.125 s' --device emulated \
    --batch 3 --timeout 1.5

# ---- devices of several ranks --------------------------------------------------------------------

# labels: of the ranks of the last search.
labels() {
    sed -n 's/^ *"label": "\(.*\)",$/\1/p' "$folder/json" | tr '\n' ' '
}

if [[ $kind == emulated ]] && ((${#ranks_axis[@]} > 1)); then
    search_cpu saq --k 10
    BITSWEEP_EMULATOR_DEVICES=2 same saq 2 3 --k 10
    if [[ $(labels) == "emulated:0 emulated:1 " ]]; then pass; else complain "devices $(labels)"; fi
    BITSWEEP_EMULATOR_DEVICES=1 device=emulated:0 same saq 2 3 --k 10
    if [[ $(labels) == "emulated:0 emulated:0 " ]]; then pass; else complain "devices $(labels)"; fi
    # One device for two: each gets half of it, which is too little here.
    error_ranks=(2)
    BITSWEEP_EMULATOR_MEMORY=12800 expect 74 \
        ': 6300 bytes of device memory are free' --device emulated:0
    # What drivers take is nobody's.
    BITSWEEP_EMULATOR_MEMORY=12800 BITSWEEP_EMULATOR_TAKEN=3000 expect 74 \
        ': 4800 bytes of device memory are free' --device emulated:0
    # Eight ranks on one device, most of which their contexts take: plans share out what is left, and
    # fit. Contexts are as large as info takes them to be (common/device/device_node.c).
    contexts=$((8 * (555 << 20)))
    for part in 60000 300000 30000000; do
        memory=$(((contexts + 8 * part) * 64 / 63 + 1))
        "$program" info "$folder/saq.1" --json --ranks 8 --sharers 8 --gpu-memory "$memory" --k 10 >"$folder/info"
        BITSWEEP_EMULATOR_MEMORY=$memory BITSWEEP_EMULATOR_TAKEN=$contexts device=emulated:0 same saq 8 1 --k 10
        agree "info of eight ranks on one GPU, $part bytes for each"
    done
    foretell_error 74 'rank 0: 0 bytes of device memory are free' "$folder/saq.1" --ranks 8 --sharers 8 \
        --gpu-memory "$contexts" --k 10
    foretell_error 2 '--sharers 8: there are --ranks 4 only' "$folder/saq.1" --ranks 4 --sharers 8 --gpu-memory 8G
    foretell_error 2 '--gpu-memory: .*sift20k_base.u8bin is no index' "$base" --gpu-memory 8G
    BITSWEEP_EMULATOR_DEVICES=1 expect 2 '--device emulated: 2 ranks on a host with 1: start' \
        --device emulated
    # A launcher that shows each rank its own device alone, which every rank then has as number 0.
    cat >"$folder/one_each" <<END
#!/usr/bin/env bash
BITSWEEP_EMULATOR_VISIBLE=\$((7 - \${OMPI_COMM_WORLD_RANK:-0})) exec "$emulated" "\$@"
END
    chmod +x "$folder/one_each"
    for on in emulated emulated:0; do
        emulated=$folder/one_each device=$on same saq 2 3 --k 10
        if [[ $(labels) == "emulated:0 emulated:0 " ]]; then pass; else complain "devices $(labels)"; fi
    done
    BITSWEEP_EMULATOR_MEMORY=12800 emulated=$folder/one_each expect 74 \
        ': 12600 bytes of device memory are free' --device emulated:0 # each has all of its own
fi

# ---- devices that no kernel can run on -----------------------------------------------------------

# left NOTE: auto takes the CPU and says so.
left() {
    BITSWEEP_EMULATOR_AUTO=1 "$emulated" search --index "$folder/saq.3" --queries "$queries" --query-rows 0:12 \
        --k 10 --quiet --json --out "$folder/found" --force >"$folder/json" 2>"$folder/stderr" || complain "$1: failed" "$folder/stderr"
    if ! cmp -s "$folder/expected" "$folder/found"; then complain "$1: other bytes"
    elif ! grep -Eq "^ *\"note\": \"$1" "$folder/json" || [[ $(labels) != cpu* ]]; then complain "not: $1" "$folder/json"
    else pass; fi
}

if [[ $kind == emulated ]]; then
    search_cpu saq --k 10
    BITSWEEP_EMULATOR_AUTO=1 device=auto same saq 1 3 --k 10
    BITSWEEP_EMULATOR_OLD=1 BITSWEEP_EMULATOR_DEVICES=2 left 'emulated:0: its compute capability is 7.0, and kernels of this build need 8.0'
    BITSWEEP_EMULATOR_OLD=0:1 BITSWEEP_EMULATOR_AUTO=1 BITSWEEP_EMULATOR_DEVICES=2 device=auto same saq 1 3 --k 10
    if [[ $(labels) == "emulated:1 " ]]; then pass; else complain "devices $(labels)"; fi
    BITSWEEP_EMULATOR_NO_IMAGE=1 left 'emulated:0: kernels of this build cannot run on it: .*NoKernelImage'
    error_ranks=(1)
    BITSWEEP_EMULATOR_NO_IMAGE=1 expect 74 'emulated:0: kernels of this build cannot run on it: ' --device emulated
    BITSWEEP_EMULATOR_OLD=1 expect 2 '--device emulated: no device can be used: emulated:0: its compute cap' --device emulated
fi

end
