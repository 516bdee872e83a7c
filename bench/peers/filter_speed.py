#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches of some rows, beside those of all: queries a second of CPU time, one thread, and recall.

usage: filter_speed.py BITSWEEP BASE.u8bin QUERIES.u8bin FOLDER [LISTS]

Masks are random or of rows that lie together (clusters of 128 rows drawn as centres). A table for
docs and results on stdout. With faiss installed its Flat and IVF indexes go over the same rows by
an IDSelectorBitmap. FOLDER keeps the indexes. Rates are what 3 more passes over the queries take.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np

K, PASSES = 10, 3
SHARES = (0.001, 0.01, 0.1, 0.5)
Answer = tuple[float, np.ndarray]  # queries a second, ids


def read(file: str) -> np.ndarray:
    data = np.fromfile(file, np.uint8)
    rows, dims = data[:8].view("<u4")
    return data[8:].reshape(rows, dims)


def read_ids(file: Path) -> np.ndarray:
    queries, k = np.fromfile(file, "<u4", 2)
    return np.fromfile(file, "<i4", queries * k, offset=8).reshape(queries, k)


def cluster_mask(rows: np.ndarray, share: float, random: np.random.Generator) -> np.ndarray:
    """Rows of centres in a random order, the last of them in part."""
    x = rows.astype(np.float32)
    centres = x[random.choice(len(x), 128, replace=False)]
    nearest = np.argmin((centres**2).sum(1) - 2 * x @ centres.T, axis=1)
    order = np.argsort(random.permutation(128)[nearest], kind="stable")
    mask = np.zeros(len(x), bool)
    mask[order[: int(share * len(x))]] = True
    return mask


class Bitsweep:
    def __init__(self, program: str, base: str, queries: str, folder: Path) -> None:
        self.program, self.base, self.queries, self.folder = program, base, queries, folder

    def run(self, *arguments: Any) -> float:
        """CPU seconds."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([self.program, *map(str, arguments), "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def index(self, name: str, *options: Any) -> Path:
        made = self.folder / name
        if not made.exists():
            self.run("encode", "--base", self.base, "--metric", "l2", "--bits", 3, "--index", made,
                     *options)
        return made

    def search(self, index: Path, mask: Optional[Path], num_queries: int) -> Answer:
        out = self.folder / "result"
        seconds = []
        for repeat in (1, 1 + PASSES):
            allow = ("--allow", mask) if mask else ()
            seconds.append(self.run("search", "--index", index, "--queries", self.queries, "--k", K,
                                    "--out", out, "--force", "--threads", 1, "--check-every",
                                    "never", "--repeat", repeat, "--overlap", "off", *allow))
        return num_queries * PASSES / (seconds[1] - seconds[0]), read_ids(out)

    def truth(self, mask: Optional[Path]) -> np.ndarray:
        out = self.folder / "truth"
        allow = ("--allow", mask) if mask else ()
        self.run("groundtruth", "--base", self.base, "--queries", self.queries, "--metric", "l2",
                 "--k", K, "--out", out, "--force", *allow)
        return read_ids(out)


def faiss_engines(base: np.ndarray, queries: np.ndarray, lists: int) -> dict[str, Callable[..., Answer]]:
    try:
        import faiss
    except ImportError:
        return {}
    faiss.omp_set_num_threads(1)
    x, q = base.astype(np.float32), queries.astype(np.float32)
    flat = faiss.IndexFlatL2(x.shape[1])
    flat.add(x)
    ivf = faiss.index_factory(x.shape[1], f"IVF{lists},Flat")
    ivf.train(x[:: max(1, len(x) // (40 * lists))])
    ivf.add(x)

    def search(index: Any, parameters: Any, mask: Optional[np.ndarray]) -> Answer:
        if mask is not None:
            bits = np.packbits(mask, bitorder="little")
            selector = faiss.IDSelectorBitmap(len(mask), faiss.swig_ptr(bits))
            parameters.sel = selector
        started = time.process_time()
        _, ids = index.search(q, K, params=parameters)
        return len(q) / (time.process_time() - started), ids

    return {
        "FAISS Flat": lambda mask: search(flat, faiss.SearchParameters(), mask),
        "FAISS IVF Flat, nprobe 64": lambda mask: search(ivf, faiss.SearchParametersIVF(nprobe=64), mask),
    }


def recall(ids: np.ndarray, truth: np.ndarray) -> float:
    found = [len(np.intersect1d(a[a >= 0], b[b >= 0])) for a, b in zip(ids, truth)]
    return sum(found) / max(1, (truth >= 0).sum())


def main() -> None:
    program, base_file, queries_file, folder = sys.argv[1:5]
    lists = int(sys.argv[5]) if len(sys.argv) > 5 else 1024
    base, queries = read(base_file), read(queries_file)
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1)
    own = Bitsweep(program, base_file, queries_file, where)
    indexes = {"all rows": own.index("flat"), "lists": own.index("lists", "--lists", lists)}
    others = faiss_engines(base, queries, lists)
    print("| allowed |", " | ".join([*indexes, *others]), "|")
    print("| --- |" + " --- |" * (len(indexes) + len(others)))
    masks: dict[str, Optional[np.ndarray]] = {"all": None}
    for share in SHARES:
        masks[f"{share:.1%} at random"] = random.random(len(base)) < share
    for share in SHARES:
        masks[f"{share:.1%} together"] = cluster_mask(base, share, random)
    for name, mask in masks.items():
        file = where / "mask.npy" if mask is not None else None
        if file:
            np.save(file, mask)
        truth = own.truth(file)
        answers = [own.search(index, file, len(queries)) for index in indexes.values()]
        answers += [engine(mask) for engine in others.values()]
        cells = [f"{rate:,.0f} ({recall(ids, truth):.4f})" for rate, ids in answers]
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


main()
