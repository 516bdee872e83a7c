"""--rows-sweep: where HNSW32 and bitsweep's exhaustive scan cross as the corpus grows.

HNSW's rate hardly falls with the number of rows, an exhaustive scan's falls as 1 / rows; HNSW's
building time grows a little faster than the rows.
"""

from __future__ import annotations

import math
from dataclasses import replace

import bitsweep_engine
import faiss_engine
from peer_report import align
from peer_task import Row, Task, best_point, say

SCANS = ("auto", "progressive-matrix")


def faiss_row(task: Task, tuned: faiss_engine.Setting) -> Row:
    """HNSW32 at its point."""
    engine = faiss_engine.FaissEngine(task)
    engine.tuned = tuned
    listed = faiss_engine.list_series(task.num_rows, task.dims, False)
    series = next(x for x in listed if x.name == "HNSW32")
    return best_point(engine.measure(replace(series, has_singles=False)))


def bitsweep_rows(task: Task) -> list[Row]:
    """Each scan of 3-bit codes at its point."""
    engine = bitsweep_engine.BitsweepEngine(task)
    code = bitsweep_engine.Code("saq", 3)
    task.truth = engine.truth()
    rows = [engine.measure(bitsweep_engine.Series(code, scan, (1, 2, 5))) for scan in SCANS]
    return [best_point(x) for x in rows if x]


def crossing(sizes: list[int], ratios: list[float]) -> str:
    """Rows at which a falling ratio passes 1, by straight lines through logarithms."""
    pairs = list(zip(sizes, ratios))
    if len(pairs) < 2:
        return "one size has no crossing"
    for (n0, r0), (n1, r1) in zip(pairs, pairs[1:]):
        if (r0 - 1) * (r1 - 1) <= 0 and r0 != r1:
            return f"{interpolate(n0, r0, n1, r1):.0f} rows"
    (n0, r0), (n1, r1) = pairs[-2:] if ratios[-1] > 1 else pairs[:2]
    where = "above" if ratios[-1] > 1 else "below"
    if r1 >= r0:
        return f"none: bitsweep is {'faster' if ratios[-1] > 1 else 'slower'} at every size"
    return f"{where} the sizes measured; extrapolated {interpolate(n0, r0, n1, r1):.0f} rows"


def interpolate(n0: float, r0: float, n1: float, r1: float) -> float:
    """Where the line through (log n, log r) is 0."""
    share = math.log(r0) / (math.log(r0) - math.log(r1))
    return math.exp(math.log(n0) + share * (math.log(n1) - math.log(n0)))


def sweep(task: Task, tuned: faiss_engine.Setting, sizes: list[int]) -> str:
    """Measures all sizes, writes rows_sweep.md, returns its text."""
    head = ["rows", "engine", "series", "point", task.recall_name, "queries/s", "building s",
            "ratio"]
    table = [head]
    ratios: dict[str, list[float]] = {}
    for size in sizes:
        say(f"== {size} rows")
        part = replace(task, rows=(task.rows[0], task.rows[0] + size))
        own = bitsweep_rows(part)
        peer = faiss_row(part, tuned)
        for row in [*own, peer]:
            ratio = row.rate / peer.rate
            if row is not peer:
                ratios.setdefault(row.name, []).append(ratio)
            table.append([str(size), row.engine, row.series, row.point, f"{row.recall:.4f}",
                          f"{row.rate:.0f}", f"{row.build_seconds:.1f}", f"{ratio:.2f}"])
    crossings = [f"{name} and HNSW32 cross at: {crossing(sizes, values)}"
                 for name, values in ratios.items()]
    text = "\n".join(["# Rates against rows", "", *align(table, 4), "", *crossings]) + "\n"
    (task.out / "rows_sweep.md").write_text(text, encoding="utf-8")
    return text
