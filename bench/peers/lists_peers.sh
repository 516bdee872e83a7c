#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lists beside inverted lists and graphs of FAISS, hnswlib, Intel SVS and ScaNN, each with the build
# that won before on SIFT: run_peers.sh with those series, all queries in one batch. Writes what that
# writes; engines.svg is the plot of README.md.
# usage: lists_peers.sh --base FILE --queries FILE --out FOLDER [--threads T] [other options of run_peers.sh]
#   LISTS (auto), BITS (3): of the index; SCAN_DIMS: first dimensions that are scanned, where a segment
#   of its code ends; none: all, and what `--recall` takes itself; ONLY: other series than these
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
index="--codec saq --bits ${BITS:-3} --lists ${LISTS:-auto}"
more=()
if [[ ${SCAN_DIMS:-} ]]; then
    searches=""
    for ratio in 1.1 1.15 1.2 1.25 1.3; do
        searches+=" | --probe-ratio $ratio --scan-dims $SCAN_DIMS --oversample 5"
    done
    for ratio in 1.3 1.4 1.5; do searches+=" | --probe-ratio $ratio --scan-dims $SCAN_DIMS --oversample 8"; done
    more=(--bitsweep-series "$index --calibrate off$searches")
fi
peers='faiss IVF|faiss HNSW32$|hnswlib M32|svs Vamana32 |scann tree[0-9]*,AH2$'
exec "$here/run_peers.sh" --batch all --only "${ONLY:-$peers|bitsweep saq-3 auto|bitsweep .*lists}" \
    --bitsweep-series "$index | --recall 0.8 | --recall 0.9 | --recall 0.95 | --recall 0.97 | --recall 0.99" \
    "${more[@]}" "$@"
