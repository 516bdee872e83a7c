# SPDX-License-Identifier: Apache-2.0
"""hnswlib in a worker (peer_worker.py). Rows and queries are float32."""

from __future__ import annotations

import time
from typing import Any

import hnswlib
import numpy as np

KEEPS_TYPE = False


def level() -> str:
    """Unknown: the package is compiled for the machine that it is installed on."""
    return ""


def build(job: dict[str, Any], base: np.ndarray) -> float:
    """Options: M and ef_construction."""
    index = hnswlib.Index(job["metric"], base.shape[1])
    start = time.perf_counter()
    index.init_index(len(base), random_seed=100, **job["options"])
    index.add_items(base, num_threads=job["threads"])
    seconds = time.perf_counter() - start
    index.save_index(job["index"])
    return seconds


class Searcher:
    """A graph read from its file. Points: ef."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.index = hnswlib.Index(job["metric"], job["dims"])
        self.index.load_index(job["index"])
        self.index.set_num_threads(job["threads"])

    def set_point(self, values: dict[str, float]) -> None:
        """Sets the length of the queue of candidates."""
        self.index.set_ef(int(values["ef"]))

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Ids, [queries][k]."""
        return self.index.knn_query(queries, k)[0]
