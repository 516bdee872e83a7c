"""FAISS's side: its settings, its series, and the worker processes that measure them."""

from __future__ import annotations

import itertools
import json
import math
import os
import statistics
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from peer_task import PeerError, Row, Task, best_point, last_line, run_process

WORKER = Path(__file__).with_name("faiss_worker.py")
NARROW = {"FAISS_SIMD_LEVEL": "AVX2"}
TUNE_ROWS = 100_000  # more than a core's caches hold, few enough for many trials


@dataclass(frozen=True)
class Setting:
    """Environment of the process and global variables of FAISS."""

    name: str = "default"
    environment: dict[str, str] = field(default_factory=dict)
    variables: dict[str, int] = field(default_factory=dict)

    @property
    def is_default(self) -> bool:
        """Whether it sets nothing."""
        return not self.environment and not self.variables

    def __str__(self) -> str:
        pairs = {**self.environment, **self.variables}
        return " ".join(f"{key}={value}" for key, value in pairs.items()) or "as it comes"


@dataclass
class Series:
    """An index and the points at which it is searched."""

    name: str  # as index_factory takes it
    points: list[str]  # as ParameterSpace takes them
    has_singles: bool = False  # also searched one query at a time


@dataclass
class Built:
    """An index in a file."""

    path: Path
    seconds: float
    wall_seconds: float
    total_bytes: float  # a vector, the whole file
    raw_bytes: float  # of these, rows kept for refinement


def list_series(rows: int, dims: int, is_uint8: bool) -> list[Series]:
    """What is compared, for so many rows of so many dims."""
    lists = max(1, round(4 * math.sqrt(rows)))
    pq = f"PQ{dims if dims % 2 else dims // 2}x4fs,RFlat"  # 64 for 128 dims
    probes = [(x, y) for x in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512) for y in (10, 20)
              if x <= lists and (y == 10 or x >= 64)]
    efs = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
    return [
        Series("Flat", [""], True),
        Series("SQ8", [""]),
        *([Series("SQ8_direct", [""])] if is_uint8 else []),
        Series("RaBitQfs4", [""]),
        Series(f"RR{dims},RaBitQfs4,RFlat", [f"k_factor_rf={x}" for x in (1, 2, 3, 5)]),
        Series(pq, [f"k_factor_rf={x}" for x in (1, 2, 5, 10, 20, 50)]),
        Series(f"IVF{lists},{pq}", [f"nprobe={x},k_factor_rf={y}" for x, y in probes]),
        Series("HNSW32", [f"efSearch={x}" for x in efs], True),
    ]


def cpu_flags() -> set[str]:
    """Instruction sets of the CPU, as the kernel names them."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("flags"):
                return set(line.split(":", 1)[1].split())
    return set()


def candidate_settings(threads: int) -> list[Setting]:
    """Settings of OpenBLAS that are tried; the first is none at all."""
    flags = cpu_flags()
    cores = [""]
    if "avx512f" in flags:
        cores.append("SkylakeX")
    if "avx2" in flags:
        cores.append("Haswell")
    pools = ["", "1"] if threads > 1 else [""]
    settings = []
    for core, pool in itertools.product(cores, pools):
        environment = {}
        if core:
            environment["OPENBLAS_CORETYPE"] = core
        if pool:
            environment["OPENBLAS_NUM_THREADS"] = pool
        settings.append(Setting(environment=environment))
    return settings


def candidate_variables() -> list[dict[str, int]]:
    """Variables of batched Flat that are tried in each process; the first is none at all."""
    blocks = [(4096, 1024), (4096, 256), (1024, 4096), (256, 1024)]
    return [{}] + [{"distance_compute_blas_threshold": 1,
                    "distance_compute_blas_query_bs": queries,
                    "distance_compute_blas_database_bs": rows} for queries, rows in blocks]


class FaissEngine:
    """Builds and searches FAISS indexes of one task."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.tuned = Setting()
        self.level = ""
        self.trials: list[str] = []  # what tuning found, a line each
        self.num_jobs = 0

    def run(self, job: dict[str, Any], setting: Setting, cpus: list[int]) -> dict[str, Any]:
        """Runs a worker; returns its answer."""
        task = self.task
        self.num_jobs += 1
        stem = task.work / f"faiss.{self.num_jobs}"
        job = {"base": task.base, "base_rows": task.rows, "queries": task.queries,
               "queries_rows": task.query_rows, "metric": task.metric, "k": task.k,
               "variables": setting.variables, "answer": f"{stem}.answer", "ids": str(stem),
               **job}
        path = Path(f"{stem}.job")
        path.write_text(json.dumps(job), encoding="utf-8")
        ended = run_process([sys.executable, str(WORKER), str(path)], cpus, setting.environment)
        if ended.returncode:
            raise PeerError(f"FAISS worker ({job['do']}): {last_line(ended.stderr)}")
        answer: dict[str, Any] = json.loads(Path(f"{stem}.answer").read_text(encoding="utf-8"))
        self.level = answer["level"]
        answer["ids"] = str(stem)
        return answer

    def tune(self) -> None:
        """Finds the setting at which Flat is fastest, and keeps it."""
        first, last = self.task.rows
        job = {"do": "tune", "base_rows": (first, min(last, first + TUNE_ROWS)), "repeat": 3,
               "candidates": candidate_variables()}
        best = 0.0
        for setting in candidate_settings(self.task.threads):
            best = self.try_setting(job, setting, best)
        if "avx512f" in cpu_flags():
            job["candidates"] = [self.tuned.variables]
            narrow = {**self.tuned.environment, **NARROW}
            self.try_setting(job, Setting(environment=narrow), best)

    def try_setting(self, job: dict[str, Any], setting: Setting, best: float) -> float:
        """Rates of a setting with every set of variables; keeps the best so far."""
        rates = self.run(job, setting, self.task.cpus)["rates"]
        for variables, rate in zip(job["candidates"], rates):
            tried = replace(setting, variables=variables)
            tried = replace(tried, name="default" if tried.is_default else "tuned")
            self.trials.append(f"{rate:10.0f}  {tried}")
            if rate > best:
                best, self.tuned = rate, tried
        return best

    def build(self, series: Series) -> Built:
        """Builds an index with all cores and the best setting."""
        path = self.task.work / f"{series.name}.faiss"
        start = time.perf_counter()
        answer = self.run({"do": "build", "factory": series.name, "index": str(path)},
                          self.tuned, self.task.all_cpus)
        wall = time.perf_counter() - start
        raw = 4.0 * self.task.dims if series.name.endswith(",RFlat") else 0.0
        return Built(path, answer["seconds"], wall, answer["bytes"] / self.task.num_rows, raw)

    def search(self, built: Built, points: list[str], setting: Setting, repeat: int,
               singles: int = 0, is_trial: bool = False) -> tuple[list[dict[str, Any]], str]:
        """What the worker measured at each point, and where the ids are."""
        job = {"do": "search", "index": str(built.path), "points": points, "repeat": repeat,
               "singles": singles, "is_trial": is_trial}
        answer = self.run(job, setting, self.task.cpus)
        return answer["points"], answer["ids"]

    def choose_setting(self, series: Series, built: Built) -> Setting:
        """The best of none, that of Flat, and that with AVX2 code alone, at the middle point."""
        if series.name == "Flat":
            return self.tuned
        middle = [series.points[len(series.points) // 2]]
        settings = {str(x): x for x in (Setting(), self.tuned)}
        if "avx512f" in cpu_flags():
            narrow = {**self.tuned.environment, **NARROW}
            settings["narrow"] = replace(self.tuned, name="tuned, AVX2", environment=narrow)
        seconds = {}
        for name, setting in settings.items():
            points, _ = self.search(built, middle, setting, 2, is_trial=True)
            seconds[name] = min(points[0]["seconds"])
        return settings[min(seconds, key=lambda name: seconds[name])]

    def make_row(self, series: Series, built: Built, measured: dict[str, Any], ids: np.ndarray,
                 setting: Setting) -> Row:
        """A row of the table from what the worker measured at a point."""
        ids = np.where(ids >= 0, ids + self.task.rows[0], -1)
        return Row("faiss", series.name, measured["point"], self.task.recall_of(ids),
                   self.task.num_queries / statistics.median(measured["seconds"]),
                   build_seconds=built.seconds, build_wall_seconds=built.wall_seconds,
                   code_bytes=built.total_bytes - built.raw_bytes, raw_bytes=built.raw_bytes,
                   setting=setting.name, passes=len(measured["seconds"]))

    def measure_points(self, series: Series, built: Built, setting: Setting) -> list[Row]:
        """A row for every point."""
        points, stem = self.search(built, series.points, setting, self.task.repeat)
        return [self.make_row(series, built, measured, np.load(f"{stem}.{number}.npy"), setting)
                for number, measured in enumerate(points)]

    def measure_singles(self, built: Built, rows: list[Row], setting: Setting) -> None:
        """One query at a time, at the fastest point that reaches the target (or the best one)."""
        row = best_point(rows)
        rates = []
        for tried in {x.name: x for x in (Setting(), setting)}.values():
            points, _ = self.search(built, [row.point], tried, 0, self.task.singles)
            rates.append(points[0]["single_rate"])
        row.single_rate = max(rates)

    def measure(self, series: Series) -> list[Row]:
        """Builds an index, searches it at every point, and deletes it (repeat_flat takes Flat)."""
        built = self.build(series)
        setting = self.choose_setting(series, built)
        rows = self.measure_points(series, built, setting)
        if series.has_singles:
            self.measure_singles(built, rows, setting)
        if series.name != "Flat":
            os.unlink(built.path)
        return rows

    def repeat_flat(self) -> float:
        """Flat once more, from the file that measure() left: queries a second."""
        built = Built(self.task.work / "Flat.faiss", 0, 0, 0, 0)
        points, _ = self.search(built, [""], self.tuned, self.task.repeat)
        return self.task.num_queries / statistics.median(points[0]["seconds"])

    def flat_ids(self) -> np.ndarray:
        """Ids by Flat with float32 rows, [queries][k] of the file."""
        built = self.build(Series("Flat", [""]))
        _, stem = self.search(built, [""], self.tuned, 1)
        os.unlink(built.path)
        return np.load(f"{stem}.0.npy") + self.task.rows[0]
