#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench cluster on one and on three ranks: tables and JSON, rates, bytes of exchanges that follow from their
# formats, the same answers on any ranks; a wrong bit in a message or an answer is counted and ends with exit code
# 70, a rank without memory with 74 on all; bad options with 2. On emulated devices: the link between them, and the
# answers of the CPU. What was measured is not judged.
# ctest labels: asan
# usage: check_bench_cluster.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
faults=$(dirname "$program")/tests/bitsweep_faults
needs "$faults"
find_ranks 3
most=${ranks_axis[-1]}
small=(--rows 400 --dims 32 --queries 20 --k 10 --oversample 5 --sample 2 --threads 1 --repeat 1 --max 100K
    --factor 1000)
cases=(alone single merge)
if ((most == 3)); then cases+=(message broadcast gather weak strong replicas); fi

# bench RANKS OPTION...: stdout and stderr in $folder, the exit code in `code`.
bench() {
    local ranks=$1
    shift
    code=0
    on "$ranks" bench cluster "${small[@]}" "$@" >"$folder/stdout" 2>"$folder/stderr" || code=$?
}

# expect WHAT CODE: of the last bench; without errors there is nothing on stderr, else one line. Where a rank
# ended the job in the middle of a message mpirun stops the others by SIGTERM, which one of them may say too.
expect() {
    local lines
    mapfile -t lines < <(grep -v '^bitsweep: stopped by SIGTERM' "$folder/stderr")
    if ((code == $2 && ${#lines[@]} == (code > 0))); then
        pass
    else
        complain "$1: exit code $code, not $2"
        tail -n 5 "$folder/stdout" >&2
    fi
}

says() { # says WHAT PATTERN [FILE]
    if grep -qE -- "$2" "${3:-$folder/stdout}"; then pass; else complain "$1" "${3:-$folder/stdout}"; fi
}

# ---- what is printed ----

for ranks in "${ranks_axis[@]}"; do
    bench "$ranks"
    expect "$ranks ranks" 0
    says "$ranks ranks: a footer" '^# [0-9]+ rows, [0-9]+ checked: no wrong value, OK$'
    says "$ranks ranks: names of columns" '^# case +ranks shards merging +batch +rows +time +queries +pairs +eff'
    says "$ranks ranks: units" '^# .* ms +1/s +G/s +%'
done
for name in "${cases[@]}"; do says "rows of $name" "^  $name .* (0|N/A)$"; done
if ((most == 3)); then says "the two numbers of the network" '^# network: alpha [0-9.]+ us, beta [0-9.]+ ns/B'; fi

for codec in saq raw pq; do
    options=()
    [[ $codec != pq ]] || options=(--bits 8)
    bench "$most" --json --codec $codec ${options[@]+"${options[@]}"}
    expect "--json, $codec" 0
    cp "$folder/stdout" "$folder/$codec"
    says "$codec: passed" '^    "passed": true'
    says "$codec: the code" "^      \"codec\": \"$codec\""
    if grep -q '"errors": [1-9]' "$folder/stdout"; then complain "$codec: wrong answers" "$folder/stdout"; fi
    if command -v python3 >/dev/null; then check_json=(python3 -m json.tool "$folder/stdout"); else check_json=(true); fi
    if "${check_json[@]}" >/dev/null 2>"$folder/stderr"; then pass; else complain "$codec: no JSON"; fi
    keys=(scan_pairs_per_second scan_bytes_per_second encode_queries_per_second merge_candidates_per_second
        finish_queries_per_second cores threads ranks)
    [[ $codec == raw ]] || keys+=(refine_rows_per_second)
    ((most == 1)) || keys+=(alpha_seconds) # on one machine a byte may cost nothing
    sed -n '/^  "rates": {/,/^  }/p' "$folder/stdout" >"$folder/rates"
    for key in "${keys[@]}"; do
        value=$(sed -n "s/^ *\"$key\": \([-0-9.e+]*\),\{0,1\}\$/\1/p" "$folder/rates")
        if awk -v v="${value:-0}" 'BEGIN { exit !(v > 0) }'; then pass; else complain "$codec: $key '$value'" "$folder/rates"; fi
    done
done

says "pq: scans by tables" '^      "scan": "tables"' "$folder/pq"
says "pq: subspaces, 2 bits a dimension" '^      "subspaces": 8' "$folder/pq"
check "plan --rates takes what pq measured" "$program" plan --rows 1M --dims 32 --codec pq --subspaces 4 --ranks 1 \
    --rates "$folder/pq"

# bytes_of CASE MERGE EXCHANGE: on two ranks, with codes of saq.
bytes_of() {
    tr -d ' \n' <"$folder/saq" | grep -oE "\"table\":\"exchanges\",\"case\":\"$1\",\"ranks\":2,\"shards\":2,\"merge\":\"$2\",\"exchange\":\"$3\",\"bytes\":[0-9]+" |
        grep -oE '[0-9]+$' | head -n 1
}

# 20 queries, 50 candidates of each shard: 1, 2, 4, ... 32 and the last of a ladder, 16 bytes an entry and
# 8 for their number; a cut is 16 bytes.
if ((most == 3)); then
    for fact in "merge gather candidates $((20 * (8 + 50 * 16)))" "weak ladder candidates $((20 * (8 + 7 * 16)))" \
        "merge gather cuts $((20 * 16))" "weak ladder cuts $((20 * 16))"; do
        read -r name merge exchange bytes <<<"$fact"
        found=$(bytes_of "$name" "$merge" "$exchange")
        if [[ $found == "$bytes" ]]; then pass; else complain "$merge, $exchange: '$found' bytes, not $bytes" "$folder/saq"; fi
    done
fi

# ---- what must be noticed ----

# A wrong bit in the answers of one rank, and in the first message that is checked.
BITSWEEP=$faults
with_flip() { # with_flip RANKS N OPTION...
    local ranks=$1 flip=$2
    shift 2
    if ((ranks == 1)); then program=$faults; fi
    BITSWEEP_FAIL=flip:$flip bench "$ranks" "$@"
    program=$(dirname "$(dirname "$faults")")/bitsweep
}
with_flip 1 1 --case strong
expect "a wrong answer" 70
says "a wrong answer is counted" '^# .* wrong values in [0-9]+, FAILED$'
with_flip 1 1 --case strong --check off
expect "a wrong answer with --check off" 0
says "a wrong answer with --check off is not counted" '^  alone .* N/A$'
if ((most == 3)); then
    with_flip 3 1 --case network
    expect "a wrong byte" 70
    says "a wrong byte of a message" '^  message +0 +1 +host +8 .* [12]$'
    says "what is said of it" '^bitsweep: .*bench cluster: [0-9]+ wrong values in [0-9]+ of' "$folder/stderr"
    with_flip 3 1 --case network --check off
    expect "a wrong byte with --check off" 0
fi

# A rank that has no memory, in the middle of what it does, while another one waits outside the group.
cat >"$folder/one_rank" <<'SCRIPT'
#!/usr/bin/env bash
[[ ${OMPI_COMM_WORLD_RANK:-0} == 1 ]] || unset BITSWEEP_FAIL BITSWEEP_FAULT_LOG
exec "$FAULTS" "$@"
SCRIPT
chmod +x "$folder/one_rank"
if ((most == 3)); then
    export BITSWEEP=$folder/one_rank FAULTS=$faults
    BITSWEEP_FAULT_LOG=$folder/counts bench 3 --case strong
    expect "no fault" 0
    count=$(sed -n 's/^allocate //p' "$folder/counts")
    for part in 1 2; do
        BITSWEEP_FAIL=allocate:$((count * part / 3)) bench 3 --case strong
        expect "rank 1 without memory, $part" 74
        says "whose memory, $part" '^bitsweep: rank 1: .*no memory for' "$folder/stderr"
    done
fi
BITSWEEP=$program

# ---- devices ----

# Emulated ones, and a stand-in for NCCL between them.
stand_in=$(dirname "$program")/tests/nccl_stand_in.so
on_devices() { # on_devices RANKS OPTION...
    local ranks=$1
    shift
    code=0
    BITSWEEP=$emulated BITSWEEP_EMULATOR_NCCL=$stand_in "$run" -n "$ranks" bench cluster "${small[@]}" "$@" \
        >"$folder/stdout" 2>"$folder/stderr" || code=$?
}
if [[ -x $emulated && -e $stand_in ]] && ((most == 3)); then
    on_devices 3 --device emulated --json
    expect "devices" 0
    cp "$folder/stdout" "$folder/devices"
    for text in '"functional": false' '"merge": "exchange"' '"case": "alone"' '"case": "weak"' '"case": "strong"' \
        '"case": "replicas"' 'link between devices: NCCL '; do says "devices: $text" "$text" "$folder/devices"; done
    for name in broadcast sendrecv alltoall gather; do
        if tr -d ' \n' <"$folder/devices" | grep -qE "\"table\":\"link\",\"case\":\"$name\",\"ranks\":3,\"bytes\":8000,\"seconds\":[-0-9.e]+,\"bytes_per_second\":[-0-9.e]+,\"bus_bytes_per_second\":[-0-9.e]+,\"errors\":0"; then
            pass
        else
            complain "devices: $name" "$folder/devices"
        fi
    done
    if grep -q '"rates"' "$folder/devices"; then complain "rates of devices are none of plan's"; else pass; fi
    BITSWEEP_EMULATOR_NCCL_VERSION=23000 NCCL_MULTI_RANK_GPU_ENABLE=1 on_devices 2 --device emulated:0 --link nccl \
        --case network,strong
    expect "ranks that share a device" 0
    says "ranks that share a device: what figures are not" "^# functional: ranks share a GPU, so figures are not a cluster's$"
    says "ranks that share a device: a transfer" '^  alltoall +2 +8000 '
    says "ranks that share a device: a search" '^  strong +2 +2 exchange .* 0$'
    on_devices 2 --device emulated --link mpi --case network,strong
    expect "devices without a link" 0
    says "devices without a link: what is said" '^# link between devices: none: '
    says "devices without a link: a search" '^  strong +2 +2 ladder .* 0$'
    on_devices 2 --device emulated --codec raw --case strong
    expect "codec raw on devices" 0
    says "codec raw on devices: a search" '^  strong +2 +2 [a-z]+ .* 0$'
else
    echo "no emulated devices, or one rank alone: --device is not checked"
fi
on 1 bench cluster --device gpu >"$folder/stdout" 2>"$folder/stderr" && code=0 || code=$?
expect "--device gpu" 2

# ---- bad options ----

for options in "--case foo" "--case network,,merge" "--rows 9" "--min 10 --max 5" "--codec xfbq" "--pairs some" \
    "--k 0" "--factor 1" "--bits 9" "--min 0" "--least 1"; do
    code=0 ranks=1
    [[ $options != "--case foo" ]] || ranks=$most # one line, too
    # shellcheck disable=SC2086
    on "$ranks" bench cluster $options >"$folder/stdout" 2>"$folder/stderr" || code=$?
    expect "$options" 2
done

finish
