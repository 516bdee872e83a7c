# SPDX-License-Identifier: Apache-2.0
"""FAISS in a worker (peer_worker.py). Rows and queries are float32."""

from __future__ import annotations

import time
from typing import Any

import faiss
import numpy as np

from peer_worker import TRIAL_SECONDS, passes, read_vectors

KEEPS_TYPE = False
METRICS = {"l2": faiss.METRIC_L2, "ip": faiss.METRIC_INNER_PRODUCT}


def level() -> str:
    """The instruction sets that FAISS chose."""
    return faiss.SIMDConfig.get_level_name()


def apply_variables(variables: dict[str, int]) -> None:
    """Sets FAISS's global variables, such as distance_compute_blas_threshold."""
    for name, value in variables.items():
        setattr(faiss.cvar, name, value)


def tune(job: dict[str, Any]) -> dict[str, Any]:
    """Rates of a Flat index under several sets of variables, and CPU seconds of a pass."""
    queries = read_vectors(job, "queries", KEEPS_TYPE)
    base = read_vectors(job, "base", KEEPS_TYPE)
    index = faiss.IndexFlat(base.shape[1], METRICS[job["metric"]])
    index.add(base)
    rates, cpu_seconds = [], []
    for variables in job["candidates"]:
        apply_variables(variables)
        start = time.process_time()
        seconds, _, _ = passes(lambda: index.search(queries, job["k"]), job["repeat"],
                               TRIAL_SECONDS)
        cpu_seconds.append((time.process_time() - start) / (len(seconds) + 1))
        rates.append(len(queries) / min(seconds))
    return {"rates": rates, "cpu_seconds": cpu_seconds}


def build(job: dict[str, Any], base: np.ndarray) -> float:
    """Builds what index_factory makes of options["factory"]; other options are parameters."""
    options = dict(job["options"])
    apply_variables(job["variables"])
    index = faiss.index_factory(base.shape[1], options.pop("factory"), METRICS[job["metric"]])
    for name, value in options.items():
        faiss.ParameterSpace().set_index_parameter(index, name, value)
    start = time.perf_counter()
    index.train(base)
    index.add(base)
    seconds = time.perf_counter() - start
    faiss.write_index(index, job["index"])
    return seconds


class Searcher:
    """An index read from its file; points are ParameterSpace's."""

    def __init__(self, job: dict[str, Any]) -> None:
        apply_variables(job["variables"])
        self.index = faiss.read_index(job["index"])

    def set_point(self, values: dict[str, float]) -> None:
        """Sets parameters by name."""
        for name, value in values.items():
            faiss.ParameterSpace().set_index_parameter(self.index, name, value)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Ids, [queries][k]."""
        return self.index.search(queries, k)[1]
