# SPDX-License-Identifier: Apache-2.0
"""Points that no other beats, and rates at a given recall between them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from peer_task import Row

TARGETS = (0.95, 0.99, 0.995)


@dataclass
class Reached:
    """A rate at a target."""

    rate: float  # queries a second
    series: str
    point: str  # the first that reaches the target
    how: str  # interpolated or point
    batch: int
    build_seconds: float
    vector_bytes: float


def best_points(rows: list[Row]) -> list[Row]:
    """Points that no other beats in recall and rate, from low recall to high."""
    best: list[Row] = []
    for row in sorted(rows, key=lambda x: (-x.recall, -x.rate)):
        if not best or row.rate > best[-1].rate:
            best.append(row)
    return best[::-1]


def engine_rows(rows: list[Row]) -> dict[str, list[Row]]:
    """Rows by engine, in the table's order."""
    return {name: [x for x in rows if x.engine == name]
            for name in dict.fromkeys(x.engine for x in rows)}


def by_cpu_time(rows: list[Row]) -> list[Row]:
    """Rows with rates of CPU time in place of those by the clock, as far as they have them."""
    return [replace(x, rate=x.cpu_rate) for x in rows if x.cpu_rate is not None]


def reach_series(rows: list[Row], target: float) -> Reached | None:
    """A series' rate at a target: logarithms in a straight line between its best points."""
    points = best_points(rows)
    number = next((i for i, x in enumerate(points) if x.recall >= target), None)
    if number is None:
        return None
    above = points[number]
    if number == 0 or above.recall == target:
        rate, how = above.rate, "point"
    else:
        below = points[number - 1]
        share = (target - below.recall) / (above.recall - below.recall)
        rate = math.exp((1 - share) * math.log(below.rate) + share * math.log(above.rate))
        how = "interpolated"
    return Reached(rate, above.series, above.point, how, above.batch, above.build_seconds,
                   above.code_bytes + above.raw_bytes)


def reach(rows: list[Row], target: float) -> Reached | None:
    """An engine's rate at a target: that of its best series."""
    series = dict.fromkeys(x.series for x in rows)
    found = [reach_series([x for x in rows if x.series == name], target) for name in series]
    return max((x for x in found if x), key=lambda x: x.rate, default=None)
