# SPDX-License-Identifier: Apache-2.0
"""The options of run_peers.sh, which need no package but Python's own.

As a program it only looks at them: run_peers.sh installs nothing for --help or a mistake.
"""

from __future__ import annotations

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOC = """bitsweep beside FAISS, hnswlib, Intel SVS and ScaNN: the same data, threads and k.

The first run installs them in build/peers-venv. 640,000 rows took 49 minutes on one thread; other
numbers take time in proportion, graphs more. Every series says how long the others will take."""


def parser() -> argparse.ArgumentParser:
    """The options."""
    p = argparse.ArgumentParser(prog="run_peers.sh", description=DOC)
    p.add_argument("--base", help="vectors (.u8bin .i8bin .fbin .npy) [the sample in tests/data]")
    p.add_argument("--queries", help="query vectors")
    p.add_argument("--rows", default=":", metavar="A:B", help="only these rows [all]")
    p.add_argument("--query-rows", default=":", metavar="A:B", help="only these queries [all]")
    p.add_argument("--metric", choices=["l2", "ip", "cosine"], default="l2",
                   help="what is nearest; cosine: of float32 rows of unit length, which are made "
                   "first, peers take ip [l2]")
    p.add_argument("--threads", type=int, default=0, metavar="T",
                   help="threads for searches, on the last T cores [all cores]")
    p.add_argument("--k", type=int, default=10, help="neighbours a query [10]")
    p.add_argument("--batch", default="best", metavar="B",
                   help="queries at a time: a number, all, or best: all or 1000, whichever is "
                   "faster for a peer's index, and bitsweep's own default [best]")
    p.add_argument("--repeat", type=int, default=5, help="timed passes, median taken [5]")
    p.add_argument("--out", default=str(ROOT / "build/peers"), metavar="FOLDER",
                   help="where results go [build/peers]")
    p.add_argument("--indexes", default="", metavar="FOLDER",
                   help="where the peers' indexes are kept for the next run [OUT/indexes]")
    p.add_argument("--bitsweep-series", default=[], action="append", metavar="OPTIONS",
                   help="one more series of bitsweep: 'options of encode | options of search | "
                   "...', a point for every search")
    p.add_argument("--only", default="", metavar="REGEX",
                   help="only series that match, such as 'HNSW|bitsweep saq-3'")
    p.add_argument("--cpu-time", action="store_true",
                   help="rates at recalls, and engines.svg, of CPU time: for a busy machine, where "
                   "they are of one thread")
    p.add_argument("--groundtruth-turns", type=int, default=0, metavar="N",
                   help="only bitsweep groundtruth against FAISS Flat, N times in turns")
    return p


if __name__ == "__main__":
    parser().parse_args()
