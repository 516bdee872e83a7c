#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recall of product codes: bitsweep's codec pq beside FAISS's IVFPQ.

Both train everything themselves, with the same subspaces, bits, lists and lists looked at, once a
seed; answers are ordered by codes alone. Prints a table of means and standard errors over seeds.

usage: product_code_recall.py BITSWEEP BASE QUERIES [--lists N] [--probe P] [--seeds S] [--codes PATTERN]
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

import faiss
import numpy as np

from peer_vectors import open_vectors, read_result

WIDTHS = (10, 100)
CODES = [(16, 8, "none"), (16, 8, "opq"), (32, 4, "none"), (32, 4, "opq")]
TABLES = ("float32", "float16", "e5m3", "e4m4")


def recalls(ids: np.ndarray, truth: np.ndarray) -> list[float]:
    """10-recall@10 and 10-recall@100, by ids."""
    found = []
    for width in WIDTHS:
        hits = [len(np.intersect1d(a[:width], t[:10])) for a, t in zip(ids, truth)]
        found.append(sum(hits) / (10 * len(hits)))
    return found


class Bitsweep:
    """The program, its files in one folder."""

    def __init__(self, program: str, base: str, queries: str, folder: Path) -> None:
        self.program, self.base, self.queries, self.folder = program, base, queries, folder
        self.result = folder / "result"

    def run(self, *arguments: str) -> None:
        """One command, quietly."""
        subprocess.run([self.program, *arguments, "--force", "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)

    def truth(self) -> np.ndarray:
        """Ids of the exact nearest 10."""
        self.run("groundtruth", "--base", self.base, "--queries", self.queries, "--k", "10",
                 "--metric", "l2", "--out", str(self.folder / "truth"))
        return read_result(self.folder / "truth")[0]

    def encode(self, parts: int, bits: int, rotation: str, lists: int, seed: int) -> None:
        """Makes the index."""
        self.run("encode", "--base", self.base, "--codec", "pq", "--metric", "l2", "--subspaces",
                 str(parts), "--bits", str(bits), "--rotation", rotation, "--lists", str(lists),
                 "--calibrate", "off", "--seed", str(seed), "--index", str(self.folder / "index"))

    def search(self, table: str, probe: int) -> np.ndarray:
        """Ids of 100 a query, by codes alone."""
        self.run("search", "--index", str(self.folder / "index"), "--queries", self.queries, "--k",
                 "100", "--refine", "none", "--probe", str(probe), "--table", table, "--out",
                 str(self.result))
        return read_result(self.result)[0]


def search_faiss(base: np.ndarray, queries: np.ndarray, code: tuple[int, int, str], lists: int,
                 probe: int, seed: int) -> np.ndarray:
    """The same of FAISS; its seeds choose rows to train with and first centroids."""
    parts, bits, rotation = code
    factory = f"IVF{lists},PQ{parts}x{bits}"
    if rotation == "opq":
        factory = f"OPQ{parts}," + factory
    index = faiss.index_factory(base.shape[1], factory)
    ivf = faiss.extract_index_ivf(index)
    ivf.cp.seed = seed
    faiss.downcast_index(ivf).pq.cp.seed = seed
    order = np.random.default_rng(seed).permutation(len(base))
    index.train(base[order])
    index.add(base)
    ivf.nprobe = probe
    return index.search(queries, WIDTHS[-1])[1]


def cell(values: list[float]) -> str:
    """Mean and standard error."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.4f} ({error:.4f})"


def main() -> None:
    """Runs all codes, line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bitsweep")
    parser.add_argument("base")
    parser.add_argument("queries")
    parser.add_argument("--lists", type=int, default=256)
    parser.add_argument("--probe", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--codes", default="", help="a pattern of PARTSxBITS ROTATION")
    options = parser.parse_args()
    base = np.array(open_vectors(options.base), np.float32)
    queries = np.array(open_vectors(options.queries), np.float32)
    print(f"| codes | what | {' | '.join(f'10-recall@{w}' for w in WIDTHS)} |", flush=True)
    print("| --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        program = Bitsweep(options.bitsweep, options.base, options.queries, Path(folder))
        truth = program.truth()
        for parts, bits, rotation in CODES:
            name = f"{parts}x{bits} {rotation}"
            if not re.search(options.codes, name):
                continue
            found: dict[str, list[list[float]]] = {}
            for seed in range(1, options.seeds + 1):
                ids = search_faiss(base, queries, (parts, bits, rotation), options.lists,
                                   options.probe, seed)
                found.setdefault("FAISS", []).append(recalls(ids, truth))
                program.encode(parts, bits, rotation, options.lists, seed)
                for table in TABLES:
                    ids = program.search(table, options.probe)
                    found.setdefault(table, []).append(recalls(ids, truth))
            for what, values in found.items():
                cells = [cell([v[i] for v in values]) for i in range(len(WIDTHS))]
                print(f"| {name} | {what} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
