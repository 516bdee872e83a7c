#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recall on kinds of data that are hard for a code, beside FAISS at the same bytes.

For each kind, codec and metric: the share of the true 10 among the 50 candidates that a search
refines by default, without lists, with lists by default, with all lists looked at, and on an
emulated GPU, which has fewer rows. A cell has the worst of these and its place. Writes Markdown.

Exit code 1 if a cell is below 0.9 although FAISS has 0.9 or more there, or encode gave no warning.

Environment: BITSWEEP_LIBRARY and PYTHONPATH as docs/python.md has them. Without faiss-cpu its
columns are left out. tests/cluster/hard_data.py has the data.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import bitsweep
import numpy as np

try:
    import faiss
except ImportError:
    faiss = None

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "cluster"))
from hard_data import KINDS, Truth, as_bytes, make  # noqa: E402

GATE = 0.9
CANDIDATES = 50
METRICS = ("l2", "ip", "cosine")


@dataclass(frozen=True)
class Column:
    """A code of ours and FAISS's counterpart, if it has one."""

    name: str
    codec: str
    settings: dict[str, Any]
    metrics: tuple[str, ...]
    peer: str


COLUMNS = (
    Column("saq, 3 bits", "saq", {"bits": 3}, METRICS, "RaBitQ 3 bits"),
    Column("saq, 2 bits", "saq", {"bits": 2}, METRICS, "RaBitQ 2 bits"),
    Column("sq8", "sq8", {}, METRICS, "SQ8"),
    Column("pq", "pq", {}, METRICS, "PQ"),
    Column("xfbq, 3 bits", "xfbq", {"bits": 3}, ("cosine",), ""),
    Column("raw", "raw", {}, ("l2", "ip"), ""),
)


@dataclass
class Cell:
    """What came out of one kind, codec and metric, by place: recalls, and encode's warnings."""

    kind: str
    column: Column
    metric: str
    recalls: dict[str, float] = field(default_factory=dict)
    causes: dict[str, str] = field(default_factory=dict)
    refused: str = ""
    peer: Optional[float] = None

    @property
    def worst(self) -> float:
        return min(self.recalls.values(), default=0.0)

    @property
    def is_low(self) -> bool:
        return not self.refused and self.worst < GATE

    @property
    def is_bad(self) -> bool:
        """Low, and nobody was told, or FAISS shows that it need not be."""
        low = [place for place, recall in self.recalls.items() if recall < GATE]
        is_untold = any(place not in self.causes for place in low)
        return self.is_low and (is_untold or (self.peer or 0.0) >= GATE)

    def text(self) -> str:
        """For the table."""
        if self.refused:
            return "refused"
        place = min(self.recalls, key=lambda p: self.recalls[p])
        text = f"{self.worst:.2f}" + (f" {place}" if self.is_low and place != "flat" else "")
        if self.is_low:
            text = f"**{text}**" + (" !" if self.is_bad else "")
        return text + (" w" if self.causes else "")


class Bench:
    """Sizes, the places that are measured, a folder."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder

    def data(
        self, kind: str, column: Column, rows: int, queries: int
    ) -> tuple[np.ndarray, np.ndarray]:
        x, q = make(kind, self.options.seed, rows, queries, self.options.dims)
        return as_bytes(x, q) if column.codec == "raw" else (x, q)

    def measure(self, kind: str, column: Column, metric: str) -> Cell:
        cell = Cell(kind, column, metric)
        x, q = self.data(kind, column, self.options.rows, self.options.queries)
        truth = Truth(x, q, 10, metric)
        try:
            self.search_cpu(cell, x, q, truth)
            if self.options.emulated:
                self.search_emulated(cell)
        except bitsweep.Error as error:
            cell.refused = str(error)
        if faiss and column.peer:
            cell.peer = search_peer(column, metric, x, q, truth)
        return cell

    def encode(self, cell: Cell, x: np.ndarray, lists: int, *places: str) -> bitsweep.Index:
        """Keeps the warning, which is of these places."""
        index = bitsweep.Index.encode(
            x,
            self.folder / "index",
            metric=cell.metric,
            lists=lists,
            codec=cell.column.codec,
            force=True,
            **cell.column.settings,
        )
        # A cause without low recall is a note, such as on rows that lie far out.
        if 0 < index.info.get("check_recall", 0.0) < GATE:
            cause = index.info["check_cause"]
            cause = cause.decode() if isinstance(cause, bytes) else cause
            cell.causes.update(dict.fromkeys(places, cause))
        return index

    def search_cpu(self, cell: Cell, x: np.ndarray, q: np.ndarray, truth: Truth) -> None:
        with self.encode(cell, x, 0, "flat") as index:
            cell.recalls["flat"] = float(truth.found(index.search(q)[1]).mean())
        with self.encode(cell, x, self.options.lists, "lists", "all") as index:
            cell.recalls["lists"] = float(truth.found(index.search(q)[1]).mean())
            cell.recalls["all"] = float(truth.found(index.search(q, probe="all")[1]).mean())

    def search_emulated(self, cell: Cell) -> None:
        """Codec raw has no GPU code."""
        if cell.column.codec == "raw":
            return
        x, q = self.data(cell.kind, cell.column, self.options.emulated_rows, 20)
        truth = Truth(x, q, 10, cell.metric)
        queries, result = self.folder / "queries.fbin", self.folder / "result"
        bitsweep.write(queries, q, force=True)
        for place, lists, probe in (("GPU", 0, []), ("GPU all", 8, ["--probe", "all"])):
            self.encode(cell, x, lists, place).close()
            subprocess.run(
                [
                    self.options.emulated,
                    "search",
                    "--index",
                    self.folder / "index",
                    "--queries",
                    queries,
                    "--out",
                    result,
                    "--device",
                    "emulated",
                    "--force",
                    "--quiet",
                    *probe,
                ],
                check=True,
            )
            cell.recalls[place] = float(truth.found(bitsweep.read_neighbours(result)[1]).mean())


def unit(y: np.ndarray) -> np.ndarray:
    """Scaled to length 1: what cosine is in FAISS."""
    y = y.astype(np.float64)
    y /= np.abs(y).max(axis=1, keepdims=True)
    return (y / np.linalg.norm(y, axis=1, keepdims=True)).astype(np.float32)


def make_peer(column: Column, metric: str, dims: int) -> Any:
    """FAISS's index of the same bytes but for what is kept of lengths."""
    kind = faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT
    if column.peer == "SQ8":
        return faiss.IndexScalarQuantizer(dims, faiss.ScalarQuantizer.QT_8bit, kind)
    if column.peer == "PQ":
        index = faiss.IndexPQ(dims, dims // 4, 8, kind)
        index.pq.cp.min_points_per_centroid = 1  # it says on stderr that rows are few
        return index
    return faiss.IndexRaBitQ(dims, kind, column.settings["bits"])


def search_peer(column: Column, metric: str, x: np.ndarray, q: np.ndarray, truth: Truth) -> float:
    """The same recall: of the true 10 among its 50, which a refinement would put in order."""
    if metric == "cosine":
        x, q = unit(x), unit(q)
    index = make_peer(column, metric, x.shape[1])
    index.train(x)
    index.add(x)
    return float(truth.found(index.search(q, CANDIDATES)[1]).mean())


def table(metric: str, cells: list[Cell]) -> list[str]:
    """Markdown of one metric, a line a kind."""
    columns = [c for c in COLUMNS if metric in c.metrics]
    heads, at = ["kind"], {(c.kind, c.column.name): c for c in cells if c.metric == metric}
    peers = set()
    for column in columns:
        heads.append(column.name)
        if faiss and column.peer and column.peer not in peers:
            heads.append(column.peer)
            peers.add(column.peer)
    lines = [
        f"{metric}:",
        "",
        "| " + " | ".join(heads) + " |",
        "| --- |" + " ---: |" * (len(heads) - 1),
    ]
    for kind in dict.fromkeys(c.kind for c in cells):
        texts, shown = [kind], set()
        for column in columns:
            cell = at[kind, column.name]
            texts.append(cell.text())
            if faiss and column.peer and column.peer not in shown:
                texts.append(f"{cell.peer:.2f}")
                shown.add(column.peer)
        lines.append("| " + " | ".join(texts) + " |")
    return [*lines, ""]


def remarks(cells: list[Cell]) -> list[str]:
    """What was refused, what encode warned of, what is bad."""
    lines = [
        f"- {c.kind}, {c.metric}, {c.column.name}: refused: {c.refused}" for c in cells if c.refused
    ]
    causes: dict[str, list[str]] = {}
    for cell in cells:
        for cause in dict.fromkeys(cell.causes.values()):
            where = f"{cell.kind} ({cell.metric}, {cell.column.name})"
            causes.setdefault(cause, []).append(where)
    lines += [f"- warning \"{cause}\": {', '.join(where)}" for cause, where in causes.items()]
    for cell in cells:
        if cell.is_bad:
            recalls = ", ".join(
                f"{place} {recall:.2f}" + (" w" if place in cell.causes else "")
                for place, recall in cell.recalls.items()
            )
            peer = f"; FAISS {cell.column.peer} {cell.peer:.2f}" if cell.peer is not None else ""
            lines.append(f"- bad: {cell.kind}, {cell.metric}, {cell.column.name}: {recalls}{peer}")
    return lines


def write_csv(file: str, cells: list[Cell]) -> None:
    """Every number."""
    with open(file, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(
            ["kind", "codec", "metric", "place", "recall", "faiss", "refused", "warning"]
        )
        for c in cells:
            for place, recall in c.recalls.items() or [("", "")]:
                row = [c.kind, c.column.name, c.metric, place, recall, c.peer, c.refused]
                writer.writerow([*row, c.causes.get(place, "")])


def options_of_call() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--emulated", metavar="PROGRAM", help="bitsweep_emulated; without it no GPU is emulated"
    )
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--dims", type=int, default=64)
    parser.add_argument("--lists", type=int, default=32)
    parser.add_argument("--emulated-rows", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="", help="some, with commas")
    parser.add_argument("--csv", metavar="FILE", help="writes every number there")
    return parser.parse_args()


def head(options: argparse.Namespace) -> str:
    """What was measured, and how it is written."""
    peer = f"FAISS {faiss.__version__}" if faiss else "faiss is not installed: no columns of it"
    gpu = f", an emulated GPU ({options.emulated_rows} rows)" if options.emulated else ""
    return (
        f"bitsweep {bitsweep.__version__}, {peer}; {options.rows} rows x {options.dims} dims, "
        f"{options.queries} queries, {options.lists} lists, seed {options.seed}.\n"
        f"10-recall@{CANDIDATES}, the worst of flat, lists, all lists{gpu}.\n"
        f"Bold: below {GATE}; w: encode warned; !: it did not, or FAISS has {GATE} or more.\n"
    )


def main() -> int:
    options = options_of_call()
    kinds = options.kinds.split(",") if options.kinds else list(KINDS)
    cells = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder))
        for kind in kinds:
            for column in COLUMNS:
                cells += [bench.measure(kind, column, metric) for metric in column.metrics]
            print(f"{kind}: measured", file=sys.stderr, flush=True)
    print(head(options))
    for metric in METRICS:
        print("\n".join(table(metric, cells)))
    print("\n".join(remarks(cells)))
    if options.csv:
        write_csv(options.csv, cells)
    return int(any(cell.is_bad for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
