# SPDX-License-Identifier: Apache-2.0
"""What is compared: each peer's indexes, and the points at which they are searched."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

QUEUES = (10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)  # of graphs


@dataclass
class Series:
    """An index and the points at which it is searched."""

    name: str
    points: list[str]  # name=value,name=value
    options: dict[str, Any] = field(default_factory=dict)  # what it is built with
    raw_bytes: float = 0.0  # a component, of rows kept for refinement
    has_singles: bool = False  # also searched one query at a time
    is_optional: bool = False  # what a machine may do without


def num_lists(rows: int) -> int:
    """About 4 sqrt(rows), a power of two."""
    return 1 << max(0, round(math.log2(4 * math.sqrt(rows))))


def queue_points(name: str, k: int) -> list[str]:
    """Lengths of a graph's queue, none below k."""
    return [f"{name}={x}" for x in sorted({max(x, k) for x in QUEUES})]


def faiss_series(rows: int, dims: int, k: int, dtype: np.dtype) -> list[Series]:
    """Exhaustive indexes, lists and graphs; the names are as index_factory takes them."""
    lists = num_lists(rows)
    pq = f"PQ{dims if dims % 2 else dims // 2}x4fs,RFlat"  # 64 for 128 dims
    probes = [f"nprobe={x},k_factor_rf={y}" for x in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
              for y in (10, 20) if x <= lists and (y == 10 or x >= 16)]
    direct = [Series("SQ8_direct", [""])] if dtype == np.uint8 else []
    listed = [
        Series("Flat", [""], has_singles=True),
        Series("SQ8", [""]),
        *direct,
        Series("RaBitQfs4", [""]),
        Series(f"RR{dims},RaBitQfs4,RFlat", [f"k_factor_rf={x}" for x in (1, 2, 3, 5)]),
        Series(pq, [f"k_factor_rf={x}" for x in (1, 2, 5, 10, 20, 50)]),
        Series(f"IVF{lists},{pq}", probes),
        Series("HNSW32", queue_points("efSearch", k), has_singles=True),
    ]
    for series in listed:
        series.options = {"factory": series.name}
        series.raw_bytes = 4.0 if series.name.endswith(",RFlat") else 0.0
    best = Series("HNSW32 construction 200", queue_points("efSearch", k),
                  {"factory": "HNSW32", "efConstruction": 200}, has_singles=True)
    return [*listed, best]


def hnswlib_series(rows: int, dims: int, k: int, dtype: np.dtype) -> list[Series]:
    """Graphs of two degrees."""
    del rows, dims, dtype
    return [Series(f"M{m} construction 200", queue_points("ef", k),
                   {"M": m, "ef_construction": 200}, has_singles=True) for m in (16, 32)]


def svs_series(rows: int, dims: int, k: int, dtype: np.dtype) -> list[Series]:
    """Vamana graphs of the rows as they are, and of LVQ codes."""
    del rows, dims
    points = queue_points("window", k)
    grid = ((32, 128), (40, 128), (64, 200))
    listed = [Series(f"Vamana{degree} {dtype.name}", points, {"degree": degree, "window": window},
                     has_singles=degree == 32) for degree, window in grid]
    for primary, residual in ((4, 8), (8, 0)):
        name = f"LVQ{primary}x{residual}" if residual else f"LVQ{primary}"
        options = {"degree": 64, "window": 200, "primary": primary, "residual": residual}
        listed.append(Series(f"Vamana64 {name}", points, options, is_optional=True))
    return listed


def scann_series(rows: int, dims: int, k: int, dtype: np.dtype) -> list[Series]:
    """Lists with codes of 2 dimensions, reordered on float32 rows; with and without SOAR.

    The more lists are looked at, the more rows are reordered; the threshold is that of ScaNN's
    own examples.
    """
    del dims, dtype
    listed = []
    for leaves in (num_lists(rows) // 2, num_lists(rows)):
        points = [f"leaves={x},reorder={y * k}" for x in (4, 8, 16, 32, 64, 128, 256, 512)
                  for y in (5, 10, 20, 40) if x <= leaves and 0.8 * y <= x <= 26 * y]
        for soar in (None, 1.5):
            options: dict[str, Any] = {"leaves": leaves, "block": 2, "threshold": 0.2}
            name = f"tree{leaves},AH2"
            if soar:
                options["soar"] = soar
                name += ",SOAR"
            listed.append(Series(name, points, options, raw_bytes=4.0,
                                 has_singles=not soar and leaves == num_lists(rows)))
    return listed


PEERS = {"faiss": faiss_series, "hnswlib": hnswlib_series, "svs": svs_series,
         "scann": scann_series}
PACKAGES = {"faiss": "faiss-cpu", "hnswlib": "hnswlib", "svs": "scalable-vs", "scann": "scann"}
