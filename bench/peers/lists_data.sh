#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lists_peers.sh on other data than SIFT, of one thread's CPU time: words and texts, and rows whose
# dimensions are alike, made by synth. Where lists lose, this shows it.
# usage: lists_data.sh DATA OUT [NAME...]
#   DATA has words200_base.fbin and _query.fbin (200 dims); text.fbin and text_query.fbin are taken if
#   they are there (text_vectors.py makes them). NAME: words, text, spectrum96, wide768, uniform96
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
bitsweep=${BITSWEEP:-$root/build/release/bitsweep}
data=${1:?usage: lists_data.sh DATA OUT [NAME...]}
out=${2:?usage: lists_data.sh DATA OUT [NAME...]}
shift 2
names=("$@")
if ((${#names[@]} == 0)); then names=(words text spectrum96 wide768 uniform96); fi
mkdir -p "$out"

# made NAME OPTIONS: files that synth writes, once
made() {
    local name=$1
    shift
    if [[ ! -e $out/$name.fbin ]]; then
        "$bitsweep" synth "$@" --seed 1 --out "$out/$name.fbin" --queries 2000 \
            --queries-out "$out/${name}_query.fbin" --quiet
    fi
}

for name in "${names[@]}"; do
    base=$out/$name.fbin queries=$out/${name}_query.fbin
    case $name in
    words) base=$data/words200_base.fbin queries=$data/words200_query.fbin ;;
    text) base=$data/text.fbin queries=$data/text_query.fbin ;;
    spectrum96) made spectrum96 --count 100000 --dims 96 --clusters 1000 --spectrum 0.625 ;;
    wide768) made wide768 --count 30000 --dims 768 --clusters 300 --spectrum 0.625 ;;
    uniform96) made uniform96 --count 50000 --dims 96 ;;
    *) echo "lists_data.sh: no data called $name" >&2 && exit 2 ;;
    esac
    if [[ ! -e $base ]]; then echo "lists_data.sh: $base is missing, $name is left out" >&2 && continue; fi
    "$here/lists_peers.sh" --base "$base" --queries "$queries" --threads 1 --repeat 3 --cpu-time \
        --out "$out/$name"
done
