#!/usr/bin/env bash
# The main job on real data: codes of several sizes in 4 shards, searches with 4 ranks, exact ground
# truth, a table and a plot of recall. See --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
here=$PWD
cd "$root"
out=$root/build/demo
base=$root/tests/data/sift20k_base.u8bin
queries=$root/tests/data/sift20k_query.u8bin
metric=
ranks=4

help() {
    cat <<'END'
usage: deploy/demo.sh [--out FOLDER] [--base FILE --queries FILE] [--metric cosine|ip|l2]
       [--ranks N]

Installs what is missing, builds, and runs the main job: encodes the vectors with several codes into
4 shards, searches each index with N ranks by code alone and with refinement, computes the exact
ground truth, and writes a table and a plot of recall against bytes a vector.

  --out FOLDER     where everything goes; made new [build/demo]
  --base FILE      vectors [tests/data/sift20k_base.u8bin: 20,000 real SIFT descriptors]
  --queries FILE   queries [tests/data/sift20k_query.u8bin]
  --metric M       what is nearest; needed with --base [cosine]; xfbq takes part under cosine only
  --ranks N        ranks [4]
END
}

fail() {
    echo "demo.sh: $1" >&2
    exit 2
}

absolute() {
    if [[ $1 == /* || $1 == synth:* ]]; then echo "$1"; else echo "$here/$1"; fi
}

while (($#)); do
    case $1 in
    -h | --help) help && exit 0 ;;
    --out | --base | --queries | --metric | --ranks)
        (($# > 1)) || fail "$1 needs a value; --help tells more"
        case $1 in
        --out) out=$(absolute "$2") ;;
        --base) base=$(absolute "$2") ;;
        --queries) queries=$(absolute "$2") ;;
        --metric) metric=$2 ;;
        --ranks) ranks=$2 ;;
        esac
        shift 2
        ;;
    *) fail "unknown option $1; --help tells more" ;;
    esac
done

if [[ ! $metric ]]; then
    [[ $base == "$root"/tests/data/* ]] || fail "--base needs --metric; --help tells more"
    metric=cosine
fi

deploy/install.sh
# Without a GPU nothing is compiled for one but what test.sh compiles too.
gpu_arguments=()
if ! nvidia-smi -L >/dev/null 2>&1; then
    gpu_arguments=(-- "-DBITSWEEP_CUDA_ARCHITECTURES=80;90a-real")
fi
deploy/build.sh release ${gpu_arguments[@]+"${gpu_arguments[@]}"}

[[ ! -e $out || -e $out/demo.table ]] || fail "$out exists and was not made by this script"
rm -rf "$out"
mkdir -p "$out"

# number FILE NAME: the number behind "NAME": in a JSON file of ours.
number() {
    sed -n "s/^ *\"$2\": \([-0-9.e+]*\),\{0,1\}\$/\1/p" "$1" | head -n 1
}

run() {
    deploy/run.sh -n "$ranks" "$@" --json
}

echo
echo "== exact ground truth: $ranks ranks"
run groundtruth --base "$base" --queries "$queries" --metric "$metric" --k 10 --out "$out/truth" \
    >"$out/groundtruth.json"
echo "$(number "$out/groundtruth.json" queries) queries x $(number "$out/groundtruth.json" rows) rows," \
    "$metric, k 10: $(printf '%.3f' "$(number "$out/groundtruth.json" seconds)") s"

# try CODEC BITS: a row of the table.
try() {
    local codec=$1 bits=$2 name=$1-$2
    run encode --base "$base" --index "$out/$name" --codec "$codec" --bits "$bits" \
        --metric "$metric" --shards 4 >"$out/$name.encode.json"
    run search --index "$out/$name" --queries "$queries" --k 10 --refine none --repeat 3 \
        --out "$out/$name.code" >"$out/$name.code.search.json"
    run search --index "$out/$name" --queries "$queries" --k 10 --repeat 3 \
        --out "$out/$name.refined" >"$out/$name.refined.search.json"
    run eval --results "$out/$name.code" --groundtruth "$out/truth" >"$out/$name.code.eval.json"
    run eval --results "$out/$name.refined" --groundtruth "$out/truth" >"$out/$name.refined.eval.json"
    printf '%-5s %5.4g %8s %14.4f %14.4f %12.0f\n' "$codec" "$(number "$out/$name.encode.json" bits)" \
        "$(number "$out/$name.encode.json" bytes_per_vector)" \
        "$(number "$out/$name.code.eval.json" 10-recall@10)" \
        "$(number "$out/$name.refined.eval.json" 10-recall@10)" \
        "$(number "$out/$name.refined.search.json" queries_per_second)" | tee -a "$out/demo.table"
}

echo
echo "== codes in 4 shards, searched with $ranks ranks"
{
    echo "# 10-recall@10: the share of the 10 true nearest among the 10 returned"
    echo "# code           by code      refined (the best 50 by code,"
    echo "# name  bits  B/vector      alone        ordered by exact value)   queries/s"
} | tee "$out/demo.table"
if [[ $metric == cosine ]]; then
    for bits in 2 3 4 6; do try xfbq "$bits"; done
fi
for bits in 1 1.5 2 2.5 3 4 6; do try saq "$bits"; done

echo
echo "== plot"
gnuplot -e "table='$out/demo.table'" -e "out='$out/recall'" -e "title='$(basename "$base"), $metric'" deploy/demo.gnuplot
echo "table     $out/demo.table"
echo "plot      $out/recall.svg"
echo "          $out/recall.png"
echo "indexes   $out/saq-3 and so on: build/release/bitsweep info $out/saq-3"
echo "results   $out/saq-3.refined (big-ann's layout) and its .json; ground truth $out/truth"
