# SPDX-License-Identifier: Apache-2.0
"""FAISS's side beyond that of every peer: its settings, and exact answers by Flat."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import replace
from typing import Any

import numpy as np

from peer_engine import PeerEngine, Setting
from peer_series import Series
from peer_task import Task

NARROW = {"FAISS_SIMD_LEVEL": "AVX2"}
TUNE_ROWS = 100_000  # more than a core's caches hold, few enough for many trials
TUNE_QUERIES = 1000
FLAT = Series("Flat", [""], {"factory": "Flat"})


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


class FaissEngine(PeerEngine):
    """Builds and searches FAISS indexes of one task."""

    def __init__(self, task: Task, name: str = "faiss") -> None:
        super().__init__(task, name)
        self.tuned = Setting()
        self.trials: list[str] = []  # what tuning found, a line each

    @property
    def build_setting(self) -> Setting:
        """The best environment that tune() found; block sizes are FAISS's own for all cores."""
        return replace(self.tuned, variables={})

    def tune(self) -> None:
        """Finds the setting at which Flat is fastest, and keeps it."""
        first, last = self.task.rows
        asked, end = self.task.query_rows
        job = {"do": "tune", "base_rows": (first, min(last, first + TUNE_ROWS)), "repeat": 3,
               "queries_rows": (asked, min(end, asked + TUNE_QUERIES)),
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

    def settings(self, series: Series) -> list[Setting]:
        """None, that of Flat, and that with AVX2 code alone; for Flat what was tuned with it."""
        if series.name == "Flat":
            return [self.tuned]
        settings = {str(x): x for x in (Setting(), self.tuned)}
        if "avx512f" in cpu_flags():
            narrow = {**self.tuned.environment, **NARROW}
            settings["narrow"] = replace(self.tuned, name="tuned, AVX2", environment=narrow)
        return list(settings.values())

    def search_flat(self, batch: int, repeat: int) -> tuple[dict[str, Any], str]:
        """Flat at its one point, and where the ids are."""
        points, stem = self.search(self.build(FLAT), [{"point": "", "batch": batch}], self.tuned,
                                   repeat)
        return points[0], stem

    def repeat_flat(self, batch: int) -> float:
        """Flat once more: queries a second."""
        measured, _ = self.search_flat(batch, self.task.repeat)
        return self.task.num_queries / statistics.median(measured["seconds"])

    def flat_ids(self) -> np.ndarray:
        """Ids by Flat with float32 rows, [queries][k] of the file."""
        _, stem = self.search_flat(0, 1)
        return np.load(f"{stem}.0.npy") + self.task.rows[0]
