#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FAISS's IVFPQ as a line of the table of bench/papers/selective.sh: the same subspaces, lists and lists looked at.

CPU seconds are of the search alone, one thread, the least of three; bitsweep's lines have loading too.

usage: selective_peer.py BASE QUERIES TRUTH FOLDER [LISTS [PROBE]]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import faiss
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from peer_vectors import open_vectors, read_result  # noqa: E402

K = 100


def index_of(base: np.ndarray, lists: int, path: Path) -> faiss.Index:
    """Made once, kept in the folder."""
    if not path.exists():
        dims = base.shape[1]
        index = faiss.IndexIVFPQ(faiss.IndexFlatL2(dims), dims, lists, dims // 2, 8)
        index.train(base)
        index.add(base)
        faiss.write_index(index, str(path))
    return faiss.read_index(str(path))


def main() -> int:
    """One line on stdout."""
    if len(sys.argv) < 5:
        print("usage: selective_peer.py BASE QUERIES TRUTH FOLDER [LISTS [PROBE]]", file=sys.stderr)
        return 2
    base, queries = (open_vectors(path).astype(np.float32) for path in sys.argv[1:3])
    lists, probe = (int(x) for x in (sys.argv[5:] + ["256", "16"][len(sys.argv) - 5:])[:2])
    truth = read_result(Path(sys.argv[3]))[0][:, :K]
    faiss.omp_set_num_threads(1)
    index = index_of(base, lists, Path(sys.argv[4]) / "faiss.index")
    index.nprobe = probe
    seconds = []
    for _ in range(3):
        start = time.process_time()
        ids = index.search(queries, K)[1]
        seconds.append(time.process_time() - start)
    first = np.mean([t[0] in found for t, found in zip(truth, ids)])
    whole = np.mean([len(np.intersect1d(t, found)) / K for t, found in zip(truth, ids)])
    print(f"| FAISS IVFPQ, search alone | 1.000 | 1.000 | {first:.3f} | {whole:.3f} | {min(seconds):.3f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
