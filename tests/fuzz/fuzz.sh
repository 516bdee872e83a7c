#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes every target with libFuzzer, one job a core, and prints executions per target. See --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build/release
amount=60
only=
jobs=$(nproc)

help() {
    cat <<'END'
usage: tests/fuzz/fuzz.sh [--build FOLDER] [--only TARGET] [--jobs N] [SECONDS | EXECUTIONSx]

  SECONDS        so long each target (60)
  EXECUTIONSx    so many executions each target: 1000000x
  --build        folder of a build with clang's libFuzzer (build/release)
  --only         one target: fuzz_manifest
  --jobs         targets at a time (one a core)

Inputs that reach new code are kept in BUILD/tests/fuzz/corpus and begun with the next time. An
input that fails is left in BUILD/tests/fuzz/failed: mend, and move it to tests/fuzz/findings/TARGET.
Exit code 1 if there is one, 77 without libFuzzer.
END
}

while (($#)); do
    case $1 in
    --build) build=$2 && shift ;;
    --only) only=$2 && shift ;;
    --jobs) jobs=$2 && shift ;;
    -h | --help) help && exit 0 ;;
    [0-9]*) amount=$1 ;;
    *)
        echo "fuzz.sh: unknown option $1; --help tells more" >&2
        exit 2
        ;;
    esac
    shift
done

programs=$build/tests/fuzz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$programs/failed"
if [[ $amount == *x ]]; then limit=-runs=${amount%x}; else limit=-max_total_time=$amount; fi

# fuzz_one TARGET: its line of the table in WORK/TARGET.line, a failure in WORK/TARGET.failed.
fuzz_one() {
    local target=$1 corpus=$programs/corpus/$1 log=$work/$1.log begin=$SECONDS rc=0
    mkdir -p "$corpus"
    "$programs/${target}_replay" --write-seeds "$corpus" "$root/tests/fuzz/findings/$target"
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 "$programs/$target" "$limit" -max_len=8192 -timeout=20 \
        -rss_limit_mb=1024 -malloc_limit_mb=256 -print_final_stats=1 \
        -artifact_prefix="$programs/failed/$target-" "$corpus" >"$log" 2>&1 || rc=$?
    local runs
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    printf '%-24s %14s executions %6d s\n' "$target" "${runs:-?}" $((SECONDS - begin)) >"$work/$target.line"
    if ((rc)); then
        { echo "$target: exit $rc" && tail -n 60 "$log"; } >"$work/$target.failed"
    fi
}

targets=()
for source in "$root"/tests/fuzz/fuzz_*.c; do
    target=$(basename "$source" .c)
    [[ -z $only || $only == "$target" ]] || continue
    if [[ ! -x $programs/$target ]]; then
        echo "fuzz.sh: $programs/$target is missing: build with clang's libFuzzer" >&2
        exit 77
    fi
    targets+=("$target")
done

for target in "${targets[@]}"; do
    while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
    fuzz_one "$target" &
done
wait

cat "$work"/*.line
awk '{sum += $2} END {printf "%-24s %14d executions\n", "all targets", sum}' "$work"/*.line
if compgen -G "$work/*.failed" >/dev/null; then
    cat "$work"/*.failed >&2
    exit 1
fi
