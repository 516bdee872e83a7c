#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rbeGIR as a whole: a trained model, 64 dims x 2 bits, norms, queues of 256 rows a thread, four parts and their merge.

usage: rbegir_tables.py [--rows N] [--num-queries N] [--k K] [--out FOLDER] [--speed]

Generated rows; k is a thousandth of them unless said, as in the paper's Appendix B. `kept` is the share of the best k by
code that the queues keep, beside what the closed form of Eq. 16 says (`plan --select queue`). Needs bitsweep on the PATH and
NumPy; --speed needs the library (BITSWEEP_LIBRARY): one query at a time on one thread, CPU seconds in turns, beside a
product of all rows of 64 floats in NumPy.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "peers"), str(ROOT / "python")]
from paper_tables import line, run, table  # noqa: E402
from peer_vectors import read_result  # noqa: E402

DIMS, CODE_DIMS, PARTS = 96, 64, 4
PLANES = ((3, 2), (2, 2))


def share(truth, ids):
    return np.mean([len(np.intersect1d(t, found)) / len(t) for t, found in zip(truth, ids)])


def search(index, asked, *options):
    run("search", "--index", index, "--queries", "queries.fbin", "--k", asked.k, "--refine", "none", "--merge", "gather",
        "--out", "result", "--force", "--quiet", *options)
    return read_result(Path("result"))[0]


def make(asked):
    run("synth", "--count", asked.rows, "--dims", DIMS, "--clusters", 100, "--spectrum", 0.625, "--out", "base.fbin",
        "--queries", asked.num_queries, "--queries-out", "queries.fbin", "--force", "--quiet")
    run("groundtruth", "--base", "base.fbin", "--queries", "queries.fbin", "--metric", "cosine", "--k", asked.k, "--out",
        "truth", "--force", "--quiet")
    for query, document in PLANES:
        name = f"model{query}"
        run("train", "--base", "base.fbin", "--metric", "cosine", "--loss", "pairs", "--start", "random", "--center",
            "--sample", 6000, "--epochs", 3, "--code-dims", CODE_DIMS, "--query-planes", query, "--document-planes",
            document, "--model", f"{name}.rbe", "--force", "--quiet")
        run("encode", "--base", "base.fbin", "--metric", "cosine", "--codec", "rbe", "--model", f"{name}.rbe", "--shards",
            PARTS, "--index", name, "--check", "off", "--force", "--quiet")


def kept(asked):
    table(f"queues, best {asked.k} of {asked.rows} rows, {PARTS} parts", "kept", "closed form")
    best = search("model3", asked)
    for length in (1, 2):
        plan = json.loads(run("plan", "--rows", asked.rows, "--dims", DIMS, "--k", asked.k, "--oversample", 1, "--codec",
                              "rbe", "--bits", 2, "--shards", PARTS, "--select", "queue", "--queue-length", length, "--json"))
        found = search("model3", asked, "--select", "queue", "--queue-length", length)
        line(f"a thread keeps {length} of 256", share(best, found), plan["queue"]["kept_percent"] / 100)


def found(asked):
    truth = read_result(Path("truth"))[0]
    table(f"share of the true {asked.k} by exact cosine", "by code", "by queues")
    for query, document in PLANES:
        ids = search(f"model{query}", asked), search(f"model{query}", asked, "--select", "queue")
        line(f"{query} planes of a query, {document} of a row", *[share(truth, x) for x in ids])


def speed(asked):
    import bitsweep

    rows = np.random.default_rng(1).standard_normal((asked.rows, CODE_DIMS), np.float32)
    queries = bitsweep.read("queries.fbin")[:8]
    indexes = {query: bitsweep.Index(f"model{query}", threads=1) for query, _ in PLANES}
    ways = {f"{query} planes of a query": lambda q, i=index: i.search(q[None], k=asked.k, refine="none")
            for query, index in indexes.items()}
    ways["floats"] = lambda q: np.argpartition(-(rows @ q[:CODE_DIMS]), asked.k)
    seconds = {name: [] for name in ways}
    for q in np.concatenate([queries[:1], queries]):
        for name, way in ways.items():
            start = time.process_time()
            way(q)
            seconds[name].append(time.process_time() - start)
    table("one query, one thread", "CPU time over that of 3 planes")
    base = np.median(seconds["3 planes of a query"][1:])
    for name, taken in seconds.items():
        line(name, f"{np.median(taken[1:]) / base:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100000)
    parser.add_argument("--num-queries", type=int, default=100)
    parser.add_argument("--k", type=int, default=0)
    parser.add_argument("--out", default="rbegir_tables")
    parser.add_argument("--speed", action="store_true")
    asked = parser.parse_args()
    asked.k = asked.k or max(1, asked.rows // 1000)
    os.makedirs(asked.out, exist_ok=True)
    os.chdir(asked.out)
    make(asked)
    kept(asked)
    found(asked)
    if asked.speed:
        speed(asked)


main()
