# SPDX-License-Identifier: Apache-2.0
"""What gpu_peers.py measures: cuVS, FAISS and torch on a GPU, and bitsweep, each with its series.

A series is an index and the points at which it is searched. Rows lie in the GPU's memory, queries
and answers on the host, as in a search of bitsweep. A library that is not there is Absent, with the
reason.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

CHUNK_ROWS = 1 << 20


class Absent(Exception):
    """An engine that this machine has not, and why."""


@dataclass(frozen=True)
class Series:
    """An index, and the points at which it is searched."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    points: tuple[dict[str, Any], ...] = ({},)
    is_exact: bool = False


@dataclass(frozen=True)
class Wish:
    """How a point is to be measured."""

    batch: int
    k: int
    repeat: int
    seconds: float  # after these no further pass


EXACT = tuple(Series(f"brute force {kind}", {"type": kind}, is_exact=True)
              for kind in ("float32", "float16"))
ITOPK = tuple({"itopk": size} for size in (16, 32, 64, 128, 256, 512))
PROBES = tuple({"probes": number} for number in (8, 16, 32, 64, 128))


def lists_for(rows: int) -> int:
    """The power of two nearest 4 sqrt(rows) from below."""
    number = 1
    while 2 * number <= 4 * rows**0.5:
        number *= 2
    return number


def median_seconds(work: Callable[[], Any], wish: Wish) -> float:
    """The median of passes, one at least."""
    seconds: list[float] = []
    while len(seconds) < wish.repeat and (not seconds or sum(seconds) < wish.seconds):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


class Engine:
    """What all have. A pass asks some queries, a batch at a time."""

    name = ""
    series: tuple[Series, ...] = EXACT

    def build(self, rows: Any, series: Series) -> Any:
        """An index of the rows, which may take several seconds."""
        raise NotImplementedError

    def search(self, index: Any, queries: Any, k: int, point: dict[str, Any]) -> Any:
        """Ids on the host."""
        raise NotImplementedError

    def used_bytes(self) -> int | None:
        """Bytes of the GPU's memory that are taken, by all; None: it does not say."""
        return None

    def forget(self) -> None:
        """Gives memory back that is kept for later."""

    def measure(self, index: Any, queries: Any, point: dict[str, Any],
                wish: Wish) -> tuple[Any, float]:
        """Ids of the queries, and seconds of a pass after one that does not count."""
        def run() -> list[Any]:
            return [row for first in range(0, len(queries), wish.batch)
                    for row in self.search(index, queries[first:first + wish.batch], wish.k, point)]
        ids = run()
        return ids, median_seconds(run, wish)


class Cuvs(Engine):
    """brute_force, cagra with graphs of two degrees, ivf_pq with refinement; metric sqeuclidean."""

    series = (
        *(Series(f"CAGRA degree {degree}", {"degree": degree}, ITOPK) for degree in (32, 64)),
        Series("IVF-PQ refined", {"parts": 2},
               tuple({**point, "refined": factor} for point in PROBES for factor in (2, 5))),
        *EXACT)

    def __init__(self) -> None:
        try:
            import cupy  # pylint: disable=import-outside-toplevel
            import cuvs  # pylint: disable=import-outside-toplevel
            from cuvs import neighbors  # pylint: disable=import-outside-toplevel
            from cuvs.neighbors import (  # pylint: disable=import-outside-toplevel,unused-import
                brute_force, cagra, ivf_pq, refine)
        except ImportError as error:
            raise Absent(f"cuvs: {error}") from error
        try:
            if cupy.cuda.runtime.getDeviceCount() < 1:
                raise Absent("cuvs: no GPU")
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise Absent(f"cuvs: {error}") from error
        self.cupy, self.neighbors = cupy, neighbors
        # A function, or in later versions a module that has it.
        self.refine = getattr(neighbors.refine, "refine", neighbors.refine)
        self.name = f"cuVS {getattr(cuvs, '__version__', '')}".strip()

    def upload(self, rows: Any, kind: Any) -> Any:
        """Rows on the GPU, as that type."""
        data = self.cupy.empty(rows.shape, kind)
        for first in range(0, len(rows), CHUNK_ROWS):
            data[first:first + CHUNK_ROWS] = self.cupy.asarray(rows[first:first + CHUNK_ROWS])
        return data

    def build(self, rows: Any, series: Series) -> Any:
        options, neighbors = series.options, self.neighbors
        if "degree" in options:
            kind: Any = rows.dtype
            data = self.upload(rows, kind)
            asked = neighbors.cagra.IndexParams(
                metric="sqeuclidean", graph_degree=options["degree"],
                intermediate_graph_degree=2 * options["degree"])
            return neighbors.cagra.build(asked, data), data
        if "parts" in options:
            data = self.upload(rows, self.cupy.float32)
            asked = neighbors.ivf_pq.IndexParams(
                n_lists=lists_for(len(rows)), metric="sqeuclidean", pq_bits=8,
                pq_dim=rows.shape[1] // options["parts"])
            return neighbors.ivf_pq.build(asked, data), data
        data = self.upload(rows, getattr(self.cupy, options["type"]))
        return neighbors.brute_force.build(data, metric="sqeuclidean"), data

    def search(self, index: Any, queries: Any, k: int, point: dict[str, Any]) -> Any:
        built, data = index
        asked, neighbors = self.cupy.asarray(queries, data.dtype), self.neighbors
        if "itopk" in point:
            params = neighbors.cagra.SearchParams(itopk_size=point["itopk"])
            found = neighbors.cagra.search(params, built, asked, k)[1]
        elif "probes" in point:
            # Distances of float16 overflow on uint8 rows.
            params = neighbors.ivf_pq.SearchParams(
                n_probes=point["probes"], lut_dtype=self.cupy.float16,
                internal_distance_dtype=self.cupy.float32)
            some = neighbors.ivf_pq.search(params, built, asked, k * point["refined"])[1]
            found = self.refine(data, asked, some, k=k, metric="sqeuclidean")[1]
        else:
            found = neighbors.brute_force.search(built, asked, k)[1]
        return self.cupy.asnumpy(self.cupy.asarray(found))

    def used_bytes(self) -> int | None:
        free, total = self.cupy.cuda.runtime.memGetInfo()
        return int(total - free)

    def forget(self) -> None:
        self.cupy.get_default_memory_pool().free_all_blocks()


class Faiss(Engine):
    """GpuIndexFlat, and GpuIndexIVFFlat; metric L2."""

    series = (Series("IVFFlat", {"lists": True}, PROBES), *EXACT)

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

    def build(self, rows: Any, series: Series) -> Any:
        faiss, dims = self.faiss, rows.shape[1]
        if "lists" in series.options:
            index = faiss.GpuIndexIVFFlat(self.resources, dims, lists_for(len(rows)),
                                          faiss.METRIC_L2)
            index.train(rows.astype("float32"))
        else:
            config = faiss.GpuIndexFlatConfig()
            config.useFloat16 = series.options["type"] == "float16"
            index = faiss.GpuIndexFlatL2(self.resources, dims, config)
        for first in range(0, len(rows), CHUNK_ROWS):
            index.add(rows[first:first + CHUNK_ROWS].astype("float32"))
        return index

    def search(self, index: Any, queries: Any, k: int, point: dict[str, Any]) -> Any:
        if "probes" in point:
            index.nprobe = point["probes"]
        return index.search(queries.astype("float32"), k)[1]


class Torch(Engine):
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

    def build(self, rows: Any, series: Series) -> Any:
        torch = self.torch
        kind = getattr(torch, series.options["type"])
        data = torch.empty(rows.shape, dtype=kind, device="cuda")
        norms = torch.empty(len(rows), dtype=kind, device="cuda")
        for first in range(0, len(rows), CHUNK_ROWS):
            chunk = torch.from_numpy(rows[first:first + CHUNK_ROWS].astype("float32")).cuda()
            data[first:first + len(chunk)] = chunk
            norms[first:first + len(chunk)] = (chunk * chunk).sum(1) / 2
        return data, norms

    def search(self, index: Any, queries: Any, k: int, point: dict[str, Any]) -> Any:
        data, norms = index
        count = max(1, (4 << 30) // (4 * len(data)))  # as many as scores have room for
        parts = []
        for first in range(0, len(queries), count):
            some = self.torch.from_numpy(queries[first:first + count].astype("float32"))
            scores = some.cuda().to(data.dtype) @ data.T - norms
            parts.append(self.torch.topk(scores, k, dim=1).indices)
        return self.torch.cat(parts).cpu().numpy()

    def used_bytes(self) -> int | None:
        free, total = self.torch.cuda.mem_get_info()
        return int(total - free)

    def forget(self) -> None:
        self.torch.cuda.empty_cache()


class Bitsweep(Engine):
    """saq of 3 bits, all rows and lists, by the program: from a file to a file of answers."""

    series = (
        Series("saq-3 all rows", {"lists": []}, ({"oversample": 5}, {"oversample": 2})),
        Series("saq-3 lists", {"lists": ["--lists", "auto"]},
               tuple({"recall": share} for share in (0.9, 0.95, 0.98, 0.99))))

    def __init__(self, program: str, device: str) -> None:
        ended = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        if ended.returncode:
            raise Absent(f"bitsweep: {program} does not run")
        self.program, self.device = program, device
        self.name = ended.stdout.splitlines()[0].strip() or "bitsweep"
        self.folder = Path(tempfile.mkdtemp(prefix="gpu_peers."))
        self.bytes = 0  # of codes

    def close(self) -> None:
        """Deletes what it wrote."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name: str, rows: Any) -> str:
        """A file of vectors."""
        path = self.folder / (name + (".u8bin" if rows.dtype == "uint8" else ".fbin"))
        with open(path, "wb") as file:
            for number in rows.shape:
                file.write(int(number).to_bytes(4, "little"))
            rows.tofile(file)
        return str(path)

    def run(self, *words: str) -> dict[str, Any]:
        """The command's JSON."""
        ended = subprocess.run([self.program, *words, "--json", "--quiet", "--force"],
                               capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RuntimeError((ended.stderr.strip().splitlines() or ["it failed"])[-1])
        answer: dict[str, Any] = json.loads(ended.stdout)
        return answer

    def build(self, rows: Any, series: Series) -> Any:
        index = str(self.folder / "index")
        answer = self.run("encode", "--base", self.write("base", rows), "--metric", "l2", "--bits",
                          "3", "--index", index, *series.options["lists"])
        self.bytes = int(answer["bytes_per_vector"] * len(rows))
        return index

    def search(self, index: Any, queries: Any, k: int, point: dict[str, Any]) -> Any:
        return self.measure(index, queries, point, Wish(len(queries), k, 1, 0))[0]

    def measure(self, index: Any, queries: Any, point: dict[str, Any],
                wish: Wish) -> tuple[Any, float]:
        import numpy  # pylint: disable=import-outside-toplevel
        asked = [word for key, value in point.items() for word in (f"--{key}", str(value))]
        out = self.folder / "found"
        answer = self.run("search", "--index", str(index), "--queries",
                          self.write("queries", queries), "--k", str(wish.k), "--batch",
                          str(wish.batch), "--device", self.device, "--warmup", "1", "--repeat",
                          str(wish.repeat), "--check-every", "never", "--out", str(out), *asked)
        ids = numpy.fromfile(out, numpy.int32, len(queries) * wish.k, offset=8)
        return ids.reshape(len(queries), wish.k), len(queries) / answer["queries_per_second"]

    def used_bytes(self) -> int | None:
        return self.bytes

    def forget(self) -> None:
        self.bytes = 0


LIBRARIES: tuple[Callable[[], Engine], ...] = (Cuvs, Faiss, Torch)


def find_engines(bitsweep: str | None, device: str) -> tuple[list[Engine], list[str]]:
    """Those that are here, and why others are not."""
    engines: list[Engine] = []
    missing = []
    makers = list(LIBRARIES)
    if bitsweep:
        makers.append(lambda: Bitsweep(bitsweep, device))
    for make in makers:
        try:
            engines.append(make())
        except Absent as why:
            missing.append(str(why))
    return engines, missing
