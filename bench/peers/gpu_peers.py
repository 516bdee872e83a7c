#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brute force of torch, FAISS and cuVS on a GPU, as far as they are installed: what users know.

Rows of float16 and float32 lie in the GPU's memory, queries and answers on the host, as in a search
of bitsweep; the time of a pass is the median of some after one not timed. Ids are compared with
those that numpy finds for a few queries. One step of bench/gpu_check.sh, beside whose passes of
`bench device` these stand; or by itself.

usage: gpu_peers.py [--rows N] [--dims D] [--queries N,N,...] [--k K] [--repeat N] [--seed S]

Wants numpy, and torch, faiss-gpu-cu12, or cuvs-cu12 and cupy-cuda12x, from PyPI.
Exit codes: 0 done, 1 an engine failed or found other rows, 2 usage, 77 there is none.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any, Callable

CHECKED = 8  # queries whose answers are compared with numpy's
LEAST_FOUND = 0.98  # of the true rows: products of rounded floats change places now and then
CHUNK_ROWS = 1 << 20


class Absent(Exception):
    """An engine that this machine has not, and why."""


class Faiss:
    """GpuIndexFlat, metric L2."""

    def __init__(self) -> None:
        try:
            import faiss  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise Absent(f"faiss: {error}") from error
        if not hasattr(faiss, "StandardGpuResources"):
            raise Absent("faiss: built without GPUs")
        if faiss.get_num_gpus() < 1:
            raise Absent("faiss: no GPU")
        self.faiss = faiss
        self.name = f"FAISS {faiss.__version__}"
        self.resources = faiss.StandardGpuResources()

    def build(self, rows: Any, is_half: bool) -> Any:
        """The rows on the GPU."""
        config = self.faiss.GpuIndexFlatConfig()
        config.useFloat16 = is_half
        index = self.faiss.GpuIndexFlatL2(self.resources, rows.shape[1], config)
        for first in range(0, len(rows), CHUNK_ROWS):
            index.add(rows[first:first + CHUNK_ROWS])
        return index

    def search(self, index: Any, queries: Any, k: int) -> Any:
        """Ids on the host."""
        return index.search(queries, k)[1]


class Cuvs:
    """cuVS brute_force, metric sqeuclidean."""

    def __init__(self) -> None:
        try:
            import cupy  # pylint: disable=import-outside-toplevel
            import cuvs  # pylint: disable=import-outside-toplevel
            from cuvs.neighbors import brute_force  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise Absent(f"cuvs: {error}") from error
        try:
            if cupy.cuda.runtime.getDeviceCount() < 1:
                raise Absent("cuvs: no GPU")
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise Absent(f"cuvs: {error}") from error
        self.cupy, self.brute_force = cupy, brute_force
        self.name = f"cuVS {getattr(cuvs, '__version__', '')}"

    def build(self, rows: Any, is_half: bool) -> Any:
        """The rows on the GPU, and their type."""
        kind = self.cupy.float16 if is_half else self.cupy.float32
        data = self.cupy.empty(rows.shape, kind)
        for first in range(0, len(rows), CHUNK_ROWS):
            data[first:first + CHUNK_ROWS] = self.cupy.asarray(rows[first:first + CHUNK_ROWS])
        return self.brute_force.build(data, metric="sqeuclidean"), kind

    def search(self, index: Any, queries: Any, k: int) -> Any:
        """Ids on the host: cupy.asnumpy waits for them."""
        built, kind = index
        found = self.brute_force.search(built, self.cupy.asarray(queries, kind), k)[1]
        return self.cupy.asnumpy(self.cupy.asarray(found))


class Torch:
    """matmul and topk, metric L2 without the queries' own norms; float32 in TF32's precision or not
    as torch has it by default."""

    def __init__(self) -> None:
        try:
            import torch  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise Absent(f"torch: {error}") from error
        if not torch.cuda.is_available():
            raise Absent("torch: no GPU")
        self.torch = torch
        self.name = f"torch {torch.__version__}"

    def build(self, rows: Any, is_half: bool) -> Any:
        """The rows on the GPU, and half of their squared norms."""
        torch = self.torch
        kind = torch.float16 if is_half else torch.float32
        data = torch.empty(rows.shape, dtype=kind, device="cuda")
        norms = torch.empty(len(rows), dtype=kind, device="cuda")
        for first in range(0, len(rows), CHUNK_ROWS):
            chunk = torch.from_numpy(rows[first:first + CHUNK_ROWS]).cuda()
            data[first:first + len(chunk)] = chunk
            norms[first:first + len(chunk)] = (chunk * chunk).sum(1) / 2
        return data, norms

    def search(self, index: Any, queries: Any, k: int) -> Any:
        """Ids on the host; as many queries at a time as scores have room for."""
        data, norms = index
        count = max(1, (4 << 30) // (4 * len(data)))
        parts = []
        for first in range(0, len(queries), count):
            some = self.torch.from_numpy(queries[first:first + count]).cuda().to(data.dtype)
            parts.append(self.torch.topk(some @ data.T - norms, k, dim=1).indices)
        return self.torch.cat(parts).cpu().numpy()


def median_seconds(work: Callable[[], Any], repeat: int) -> float:
    """Of `repeat` passes."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def true_ids(numpy: Any, rows: Any, queries: Any, k: int) -> Any:
    """Ids of the nearest k rows, from float32 values, a chunk of rows at a time."""
    values = numpy.concatenate(
        [(rows[first:first + CHUNK_ROWS]**2).sum(1)[:, None] -
         2 * rows[first:first + CHUNK_ROWS] @ queries.T
         for first in range(0, len(rows), CHUNK_ROWS)])
    return numpy.argpartition(values, k - 1, axis=0)[:k].T


def share_found(ids: Any, truth: Any) -> float:
    """Of the true rows."""
    return sum(len(set(a) & set(t)) for a, t in zip(ids, truth)) / truth.size


def measure(engine: Any, rows: Any, queries: Any, truth: Any, options: Any) -> bool:
    """A line for each type and number of queries; whether the right rows were found."""
    is_right = True
    for is_half in (True, False):
        index = engine.build(rows, is_half)
        for count in options.queries:
            some = queries[:count]
            found = share_found(engine.search(index, some, options.k)[:CHECKED], truth[:count])
            seconds = median_seconds(lambda q=some: engine.search(index, q, options.k),
                                     options.repeat)
            is_right = is_right and found >= LEAST_FOUND
            print(f"{engine.name:16} {'float16' if is_half else 'float32'} {count:9} "
                  f"{seconds * 1e3:12.3f} {count / seconds:12.0f} "
                  f"{count * len(rows) / seconds / 1e9:12.1f} {found:7.3f}", flush=True)
        del index
    return is_right


def parse() -> Any:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--dims", type=int, default=96)
    parser.add_argument("--queries", default="1,8,64,1000,4000",
                        type=lambda text: [int(x) for x in text.split(",")])
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if min(options.rows, options.dims, options.k, options.repeat, *options.queries) < 1:
        parser.error("numbers from 1 on")
    if options.k > options.rows:
        parser.error("--k is more than --rows")
    return options


def find_engines() -> list[Any]:
    """Those that are here; says why others are not."""
    engines = []
    for kind in (Torch, Faiss, Cuvs):
        try:
            engines.append(kind())
        except Absent as why:
            print(f"# without {why}")
    return engines


def main() -> int:
    """Measures every engine; one that fails does not keep the next from running."""
    options = parse()
    engines = find_engines()
    if not engines:
        print("gpu_peers.py: skipped: neither torch, FAISS nor cuVS can use a GPU here")
        return 77
    import numpy  # pylint: disable=import-outside-toplevel  # engines want it, too

    random = numpy.random.default_rng(options.seed)
    rows = random.standard_normal((options.rows, options.dims), numpy.float32)
    queries = random.standard_normal((max(options.queries), options.dims), numpy.float32)
    truth = true_ids(numpy, rows, queries[:CHECKED], options.k)
    print(f"# {options.rows} rows, {options.dims} dims, k {options.k}, metric l2")
    print(f"{'engine':16} {'rows':7} {'queries':>9} {'ms a pass':>12} {'queries/s':>12} "
          f"{'G pairs/s':>12} {'found':>7}")
    num_failed = 0
    for engine in engines:
        try:
            is_right = measure(engine, rows, queries, truth, options)
        except Exception as error:  # pylint: disable=broad-except  # of any library
            print(f"{engine.name}: {type(error).__name__}: {error}")
            is_right = False
        num_failed += not is_right
    print(f"gpu_peers.py: {len(engines)} engines, {num_failed} failures")
    return 1 if num_failed else 0


if __name__ == "__main__":
    sys.exit(main())
