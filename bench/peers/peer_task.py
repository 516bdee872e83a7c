# SPDX-License-Identifier: Apache-2.0
"""What is compared, the rows of the table, and how processes are started."""

from __future__ import annotations

import os
import resource
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from peer_vectors import open_vectors, recall


TARGET_RECALL = 0.99  # what ratios and crossings are taken at


class PeerError(Exception):
    """Something that ends the run, in one line."""


@dataclass
class Row:
    """One point of one series: a row of the table."""

    engine: str  # faiss, hnswlib, svs, scann or bitsweep
    series: str
    point: str
    recall: float
    rate: float  # queries a second by the clock, in batches
    single_rate: float | None = None  # one query at a time
    build_seconds: float = 0.0  # training and adding, or training and encoding
    build_wall_seconds: float = 0.0  # the whole process, with reading and writing
    code_bytes: float = 0.0  # a vector, what the first stage reads (with links and lists)
    raw_bytes: float = 0.0  # a vector, raw rows beside that for refinement
    setting: str = ""
    passes: int = 0
    batch: int = 0  # queries at a time; 0: all
    cpu_rate: float | None = None  # queries a second of CPU time, where it is known
    build_threads: int = 0

    @property
    def name(self) -> str:
        """Engine and series: what --only is matched with."""
        return f"{self.engine} {self.series}"


@dataclass
class Task:
    """Data and settings of a run; the same for all engines."""

    base: str
    queries: str
    rows: tuple[int, int]
    query_rows: tuple[int, int]
    metric: str
    k: int
    threads: int
    repeat: int
    singles: int  # queries asked one at a time
    out: Path
    work: Path  # folder of bitsweep's indexes and of answers, deleted at the end
    indexes: Path  # folder of the peers' indexes, kept
    bitsweep: str
    only: str
    batch: int | None = None  # queries at a time; 0: all; None: each peer's best
    takes_cpu_time: bool = False  # targets and engines.svg are of CPU time, bitsweep's rows too
    cpus: list[int] = field(default_factory=list)  # those that searches run on
    all_cpus: list[int] = field(default_factory=list)  # those that building runs on
    truth: tuple[np.ndarray, np.ndarray] | None = None  # ids of the file, and values
    own_metric: str = "l2"  # bitsweep's: cosine where peers have ip of rows of unit length

    @property
    def num_rows(self) -> int:
        """Rows searched."""
        return self.rows[1] - self.rows[0]

    @property
    def num_queries(self) -> int:
        """Queries asked."""
        return self.query_rows[1] - self.query_rows[0]

    @property
    def dims(self) -> int:
        """Components of a vector."""
        return int(open_vectors(self.base).shape[1])

    @property
    def type(self) -> np.dtype:
        """Type of a component in the file."""
        return open_vectors(self.base).dtype

    @property
    def recall_name(self) -> str:
        """The measure, named in full."""
        return f"{self.k}-recall@{self.k}"

    def recall_of(self, ids: np.ndarray) -> float:
        """Recall of ids of the file, [queries][k], with exact values computed here."""
        assert self.truth is not None
        queries = open_vectors(self.queries)[self.query_rows[0]:self.query_rows[1]]
        return recall(open_vectors(self.base), queries, ids, self.truth[0], self.metric)


def size_text(batch: int) -> str:
    """A batch, as the report has it."""
    return str(batch) if batch else "all"


def best_point(rows: list[Row]) -> Row:
    """The fastest row that reaches the target, or the one of best recall."""
    good = [row for row in rows if row.recall >= TARGET_RECALL]
    return max(good, key=lambda x: x.rate) if good else max(rows, key=lambda x: x.recall)


def say(text: str) -> None:
    """A line of progress."""
    print(text, flush=True)


def run_process(command: list[str], cpus: list[int],
                environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command on these cores, with OpenMP set to as many threads; output is captured."""
    pinned = ["taskset", "-c", ",".join(map(str, cpus)), *command]
    variables = {**os.environ, "OMP_NUM_THREADS": str(len(cpus)), **(environment or {})}
    return subprocess.run(pinned, env=variables, capture_output=True, text=True, check=False)


def children_seconds() -> float:
    """CPU seconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def last_line(text: str) -> str:
    """The last line of a process's messages."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
