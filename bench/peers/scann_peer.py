# SPDX-License-Identifier: Apache-2.0
"""ScaNN (lists, product codes, reordering) in a worker (peer_worker.py). Rows are float32.

l2 can be asked as an inner product, for which alone ScaNN has SOAR: rows become (x, (mean of
|y|^2 - |x|^2) / 2s), queries (q, s), so that the product is (mean - |x - q|^2 + |q|^2) / 2 and
falls as the distance grows. s is such that the new component varies as the others do.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from scann.scann_ops.py import scann_ops_pybind as scann

KEEPS_TYPE = False
SAMPLE = 250_000  # rows to train on, at most


def level() -> str:
    """Unknown: the library does not tell."""
    return ""


def augmented(base: np.ndarray) -> tuple[np.ndarray, float]:
    """Rows with the component above, and s."""
    halves = (base.astype(np.float64) ** 2).sum(axis=1) / 2
    lengths = halves.mean() - halves
    spread = float(lengths.std() / base.std()) or 1.0
    return np.hstack([base, (lengths / spread)[:, None].astype(np.float32)]), spread


def builder(job: dict[str, Any], rows: np.ndarray) -> Any:
    """ScaNN's builder with the job's options: leaves, block, threshold, soar."""
    options = job["options"]
    is_l2 = job["metric"] == "l2" and "soar" not in options
    tree = {"soar_lambda": options["soar"]} if "soar" in options else {}
    made = scann.builder(rows, job["k"], "squared_l2" if is_l2 else "dot_product")
    made = made.tree(num_leaves=options["leaves"], num_leaves_to_search=options["leaves"] // 20 + 1,
                     training_sample_size=min(len(rows), SAMPLE), **tree)
    made = made.score_ah(options["block"],
                         anisotropic_quantization_threshold=options["threshold"])
    return made.reorder(10 * job["k"]).set_n_training_threads(job["threads"])


def build(job: dict[str, Any], base: np.ndarray) -> float:
    """Trains, codes and writes to a folder."""
    folder = Path(job["index"])
    folder.mkdir()
    start = time.perf_counter()
    spread = 0.0
    if "soar" in job["options"] and job["metric"] == "l2":
        base, spread = augmented(base)
    searcher = builder(job, base).build()
    seconds = time.perf_counter() - start
    searcher.serialize(str(folder))
    (folder / "spread.json").write_text(json.dumps(spread), encoding="utf-8")
    return seconds


class Searcher:
    """An index read from its folder. Points: leaves and reorder."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.index = scann.load_searcher(job["index"])
        self.spread = json.loads((Path(job["index"]) / "spread.json").read_text(encoding="utf-8"))
        self.is_parallel = job["threads"] > 1
        if self.is_parallel:
            self.index.set_num_threads(job["threads"])
        self.leaves = self.reorder = 0

    def set_point(self, values: dict[str, float]) -> None:
        """Sets lists looked at and rows compared exactly."""
        self.leaves, self.reorder = int(values["leaves"]), int(values["reorder"])

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Ids, [queries][k]; -1 where there are fewer."""
        if self.spread:
            last = np.full((len(queries), 1), self.spread, np.float32)
            queries = np.hstack([queries, last])
        if len(queries) == 1:
            ids = self.index.search(queries[0], k, self.reorder, self.leaves)[0]
            return np.pad(ids.astype(np.int64), (0, k - len(ids)), constant_values=-1)[None]
        many = (self.index.search_batched_parallel if self.is_parallel else
                self.index.search_batched)
        return many(queries, k, self.reorder, self.leaves)[0]
