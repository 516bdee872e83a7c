#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of product codes with lists: bitsweep's codec pq beside FAISS's IVFPQ and its 4-bit fast scan.

One thread, all queries in one batch, refined by raw rows on both sides. Rates are of CPU seconds, so
that other programs on the machine do little harm: FAISS's around its search, bitsweep's of a run of
several passes less a run of one. Each setting is measured in turns with all others; medians are
printed, one line a point, and then rates at given recalls, between neighbouring best points.

usage: product_code_speed.py BITSWEEP BASE QUERIES --folder FOLDER [--lists N] [--turns T]
"""

from __future__ import annotations

import argparse
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import faiss
import numpy as np

from peer_vectors import open_vectors, read_result

K = 10
TARGETS = (0.9, 0.95, 0.99)
FAISS_CODES = {"IVFPQ 16x8": (16, 8), "IVFPQ 32x8": (32, 8), "IVFPQFastScan 64x4": (64, 4),
               "IVFPQFastScan 32x4": (32, 4)}
BITSWEEP_CODES = {
    "pq 16x8": "--codec pq --subspaces 16 --bits 8 --rotation none",
    "pq 32x8": "--codec pq --subspaces 32 --bits 8 --rotation none",
    "pq 64x4": "--codec pq --subspaces 64 --bits 4 --rotation none",
    "pq 32x4": "--codec pq --subspaces 32 --bits 4 --rotation none",
    "saq 1": "--codec saq --bits 1",
    "saq 2": "--codec saq --bits 2",
    "saq 3": "--codec saq --bits 3",
}


@dataclass
class Point:
    """A setting of a series, and what was measured."""

    series: str
    setting: tuple[int, int]  # lists looked at, candidates times k
    seconds: Callable[[], float]  # CPU seconds of all queries, once
    ids: Callable[[], np.ndarray]  # of the last run
    recall: float = 0.0
    taken: list[float] = field(default_factory=list)


def recall_of(ids: np.ndarray, truth: np.ndarray) -> float:
    """10-recall@10, by ids."""
    return sum(len(np.intersect1d(a, t)) for a, t in zip(ids, truth)) / truth.size


class Bitsweep:
    """The program; its indexes are kept in the folder."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder = Path(options.folder)
        self.result = self.folder / "result"

    def run(self, *arguments: str) -> float:
        """One command, quietly, on one thread; returns its CPU seconds."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([self.options.bitsweep, *arguments, "--force", "--quiet"], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def truth(self) -> np.ndarray:
        """Ids of the exact nearest."""
        path = self.folder / "truth"
        if not path.exists():
            self.run("groundtruth", "--base", self.options.base, "--queries", self.options.queries,
                     "--k", str(K), "--metric", "l2", "--out", str(path))
        return read_result(path)[0]

    def index(self, name: str) -> Path:
        """An index, made once; says what it took."""
        path = self.folder / ("bitsweep." + name.replace(" ", "."))
        if not path.exists():
            seconds = self.run("encode", "--base", self.options.base, "--metric", "l2", "--lists",
                               str(self.options.lists), "--calibrate", "off", "--index", str(path),
                               *BITSWEEP_CODES[name].split())
            print(f"# {name}: {seconds:.0f} CPU seconds to make", flush=True)
        return path

    def search(self, path: Path, setting: tuple[int, int], table: str, repeat: int) -> float:
        """CPU seconds of so many passes and of all else."""
        tables = ("--table", table) if table else ()
        return self.run("search", "--index", str(path), "--queries", self.options.queries, "--k",
                        str(K), "--probe", str(setting[0]), "--oversample", str(setting[1]),
                        "--batch", str(self.options.batch), "--threads", "1", "--repeat",
                        str(repeat), "--check-every", "never", "--out", str(self.result), *tables)

    def point(self, name: str, setting: tuple[int, int], table: str = "") -> Point:
        """A point of the index."""
        path = self.index(name)

        def seconds() -> float:
            first = self.search(path, setting, table, 1)
            more = self.options.passes
            return max(1e-9, self.search(path, setting, table, 1 + more) - first) / more

        series = f"{name} {table}".strip()
        return Point(series, setting, seconds, lambda: read_result(self.result)[0])


class Faiss:
    """FAISS's indexes over one set of centroids, with exact rows behind them."""

    def __init__(self, options: argparse.Namespace, base: np.ndarray, queries: np.ndarray) -> None:
        faiss.omp_set_num_threads(1)
        self.options, self.base, self.queries = options, base, queries
        self.folder = Path(options.folder)
        self.found = np.empty((0, K), np.int64)
        self.made: dict[str, tuple[faiss.Index, faiss.IndexRefineFlat]] = {}

    def centroids(self) -> faiss.Index:
        """Trained once for all codes."""
        path = self.folder / f"faiss.centroids.{self.options.lists}"
        if not path.exists():
            start = time.process_time()
            index = faiss.index_factory(self.base.shape[1], f"IVF{self.options.lists},Flat")
            index.train(self.base)
            faiss.write_index(index.quantizer, str(path))
            print(f"# FAISS centroids: {time.process_time() - start:.0f} CPU seconds", flush=True)
        return faiss.read_index(str(path))

    def index(self, name: str) -> tuple[faiss.Index, faiss.IndexRefineFlat]:
        """An index, and the same with refinement."""
        if name in self.made:
            return self.made[name]
        path = self.folder / ("faiss." + name.replace(" ", "."))
        if not path.exists():
            start = time.process_time()
            parts, bits = FAISS_CODES[name]
            kind = faiss.IndexIVFPQFastScan if bits == 4 else faiss.IndexIVFPQ
            made = kind(self.centroids(), self.base.shape[1], self.options.lists, parts, bits)
            made.train(self.base)
            made.add(self.base)
            faiss.write_index(made, str(path))
            print(f"# FAISS {name}: {time.process_time() - start:.0f} CPU seconds", flush=True)
        index = faiss.read_index(str(path))
        self.made[name] = index, faiss.IndexRefineFlat(index, faiss.swig_ptr(self.base))
        return self.made[name]

    def point(self, name: str, setting: tuple[int, int]) -> Point:
        """A point of the index."""

        def seconds() -> float:
            index, refined = self.index(name)
            index.nprobe, refined.k_factor = setting
            start = time.process_time()
            self.found = refined.search(self.queries, K)[1]
            return time.process_time() - start

        return Point("FAISS " + name, setting, seconds, lambda: self.found)


def best(points: list[Point], queries: int) -> list[tuple[float, float]]:
    """(recall, rate) that no other beats, from low recall to high."""
    found: list[tuple[float, float]] = []
    for recall, rate in sorted(((x.recall, queries / statistics.median(x.taken)) for x in points),
                               reverse=True):
        if not found or rate > found[-1][1]:
            found.append((recall, rate))
    return found[::-1]


def rate_at(points: list[tuple[float, float]], target: float) -> str:
    """A rate between two points, logarithms in a straight line; nothing is drawn out."""
    for (low, fast), (high, slow) in zip(points, points[1:]):
        if low <= target <= high:
            share = (target - low) / (high - low)
            return f"{math.exp((1 - share) * math.log(fast) + share * math.log(slow)):,.0f}"
    return "-"


def all_points(options: argparse.Namespace, base: np.ndarray, queries: np.ndarray) -> list[Point]:
    """All that --series names, series after series within a setting."""
    ours, theirs = Bitsweep(options), Faiss(options, base, queries)
    points = []
    for setting in ((p, x) for x in options.oversample for p in options.probes):
        for name in FAISS_CODES:
            if re.search(options.series, "FAISS " + name):
                points.append(theirs.point(name, setting))
        for name in BITSWEEP_CODES:
            for table in options.tables if name.startswith("pq") else [""]:
                if re.search(options.series, f"{name} {table}".strip()):
                    points.append(ours.point(name, setting, table))
    return points


def numbers(text: str) -> list[int]:
    """Integers with commas."""
    return [int(x) for x in text.split(",")]


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bitsweep")
    parser.add_argument("base")
    parser.add_argument("queries")
    parser.add_argument("--folder", required=True, help="where indexes are kept")
    parser.add_argument("--lists", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=10000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--passes", type=int, default=3, help="of bitsweep beyond the first")
    parser.add_argument("--series", default="", help="a pattern of names, such as 'FAISS|64x4'")
    parser.add_argument("--tables", type=lambda x: x.split(","), default=["float32"])
    parser.add_argument("--probes", type=numbers, default=[16, 32, 64, 128, 256])
    parser.add_argument("--oversample", type=numbers, default=[5, 10, 20])
    return parser.parse_args()


def main() -> None:
    """Measures all points in turns and prints them."""
    options = parse()
    Path(options.folder).mkdir(parents=True, exist_ok=True)
    base = np.array(open_vectors(options.base), np.float32)
    queries = np.array(open_vectors(options.queries), np.float32)
    truth = Bitsweep(options).truth()
    points = all_points(options, base, queries)
    for _ in range(options.turns):
        for point in points:
            point.taken.append(point.seconds())
            point.recall = recall_of(point.ids(), truth)
            print(f"# {point.series} {point.setting}: {point.recall:.4f}, {point.taken[-1]:.3f} s",
                  file=sys.stderr, flush=True)
    print("| series | lists looked at | candidates | 10-recall@10 | queries/s of CPU time |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for x in sorted(points, key=lambda x: x.series):
        rate = len(queries) / statistics.median(x.taken)
        print(f"| {x.series} | {x.setting[0]} | {K * x.setting[1]} | {x.recall:.4f} | {rate:,.0f} |")
    print(f"\n| series | {' | '.join(f'at {t}' for t in TARGETS)} |")
    print("| --- | ---: | ---: | ---: |")
    for name in sorted({x.series for x in points}):
        found = best([x for x in points if x.series == name], len(queries))
        print(f"| {name} | {' | '.join(rate_at(found, t) for t in TARGETS)} |", flush=True)


if __name__ == "__main__":
    main()
