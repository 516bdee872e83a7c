# SPDX-License-Identifier: Apache-2.0
"""Intel SVS (Vamana graphs) in a worker (peer_worker.py). Rows and queries keep their type.

LVQ, which the wheel has for Intel's CPUs alone (elsewhere the process ends with a line that says
so), codes float32 rows; then queries are float32 too.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import svs

KEEPS_TYPE = True
METRICS = {"l2": svs.L2, "ip": svs.MIP}


def level() -> str:
    """Unknown: the library does not tell."""
    return ""


def lvq_loader(job: dict[str, Any], base: np.ndarray) -> svs.LVQLoader:
    """Rows as LVQ codes of options["primary"] and options["residual"] bits."""
    path = f"{job['index']}.fvecs"  # beside the index, which is measured; build() deletes it
    svs.write_vecs(base.astype(np.float32), path)
    rows = svs.VectorDataLoader(path, svs.DataType.float32, dims=base.shape[1])
    return svs.LVQLoader(rows, job["options"]["primary"], job["options"]["residual"])


def build(job: dict[str, Any], base: np.ndarray) -> float:
    """Options: degree and window; alpha is the library's (1.2 for l2, 0.95 for ip)."""
    options = job["options"]
    Path(job["index"]).mkdir()
    rows = lvq_loader(job, base) if "primary" in options else base
    parameters = svs.VamanaBuildParameters(graph_max_degree=options["degree"],
                                           window_size=options["window"])
    start = time.perf_counter()
    index = svs.Vamana.build(parameters, rows, METRICS[job["metric"]], num_threads=job["threads"])
    seconds = time.perf_counter() - start
    folder = job["index"]
    Path(f"{folder}.fvecs").unlink(missing_ok=True)
    index.save(f"{folder}/config", f"{folder}/graph", f"{folder}/data")
    return seconds


class Searcher:
    """A graph and rows of a folder. Points: window; also capacity, visited, ahead, step."""

    def __init__(self, job: dict[str, Any]) -> None:
        folder = job["index"]
        self.is_coded = "primary" in job["options"]
        kind = svs.np_to_svs(np.dtype(job["type"]))
        data = (svs.LVQLoader(f"{folder}/data") if self.is_coded else
                svs.VectorDataLoader(f"{folder}/data", kind, dims=job["dims"]))
        query_type = svs.DataType.float32 if self.is_coded else kind
        self.index = svs.Vamana(f"{folder}/config", svs.GraphLoader(f"{folder}/graph"), data,
                                METRICS[job["metric"]], query_type=query_type,
                                num_threads=job["threads"])

    def set_point(self, values: dict[str, float]) -> None:
        """Sets the lengths of the queue, visited set and prefetching."""
        window = int(values["window"])
        buffer = svs.SearchBufferConfig(window, int(values.get("capacity", window)))
        self.index.search_parameters = svs.VamanaSearchParameters(
            buffer, bool(values.get("visited", 1)), int(values.get("ahead", 8)),
            int(values.get("step", 1)))

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Ids, [queries][k]."""
        return self.index.search(queries.astype(np.float32) if self.is_coded else queries, k)[0]
