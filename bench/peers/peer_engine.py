# SPDX-License-Identifier: Apache-2.0
"""A peer's side: builds its indexes once, keeps them, and has workers search them."""

from __future__ import annotations

import hashlib
import json
import shutil
import statistics
import sys
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from peer_series import PACKAGES, Series
from peer_task import PeerError, Row, Task, best_point, last_line, run_process, say

WORKER = Path(__file__).with_name("peer_worker.py")
BATCHES = (0, 1000)  # tried where the task does not say; 0: all


@dataclass(frozen=True)
class Setting:
    """Environment of the process and global variables of FAISS."""

    name: str = "default"
    environment: dict[str, str] = field(default_factory=dict)
    variables: dict[str, int] = field(default_factory=dict)

    @property
    def is_default(self) -> bool:
        """Whether it sets nothing."""
        return not self.environment and not self.variables

    def __str__(self) -> str:
        pairs = {**self.environment, **self.variables}
        return " ".join(f"{key}={value}" for key, value in pairs.items()) or "as it comes"


@dataclass
class Built:
    """An index in a file or folder."""

    path: Path
    options: dict[str, Any]
    seconds: float
    wall_seconds: float
    threads: int
    total_bytes: float  # a vector, all that is written
    raw_bytes: float  # of these, rows kept for refinement


class PeerEngine:
    """Builds and searches the indexes of one library."""

    def __init__(self, task: Task, name: str) -> None:
        self.task = task
        self.name = name
        self.level = ""
        self.skipped: list[str] = []
        self.num_jobs = 0

    @property
    def build_setting(self) -> Setting:
        """What indexes are built with."""
        return Setting()

    def settings(self, series: Series) -> list[Setting]:
        """What a series is tried with; the best is taken."""
        del series
        return [Setting()]

    def run(self, job: dict[str, Any], setting: Setting, cpus: list[int]) -> dict[str, Any]:
        """Runs a worker; returns its answer."""
        task = self.task
        self.num_jobs += 1
        stem = task.work / f"{self.name}.{self.num_jobs}"
        job = {"engine": self.name, "base": task.base, "base_rows": task.rows,
               "queries": task.queries, "queries_rows": task.query_rows, "metric": task.metric,
               "dims": task.dims, "type": task.type.name, "k": task.k, "threads": len(cpus),
               "variables": setting.variables, "answer": f"{stem}.answer", "ids": str(stem),
               **job}
        path = Path(f"{stem}.job")
        path.write_text(json.dumps(job), encoding="utf-8")
        ended = run_process([sys.executable, "-B", str(WORKER), str(path)], cpus,
                            setting.environment)
        if ended.returncode:
            raise PeerError(f"{self.name} worker ({job['do']}): {last_line(ended.stderr)}")
        answer: dict[str, Any] = json.loads(Path(f"{stem}.answer").read_text(encoding="utf-8"))
        self.level = answer["level"]
        answer["ids"] = str(stem)
        return answer

    def index_path(self, series: Series) -> Path:
        """Where an index lies: a name with a digest of all that it is made from."""
        task = self.task
        base = Path(task.base).resolve()
        stat = base.stat()
        made_from = [self.name, version(PACKAGES[self.name]), series.options, str(base),
                     stat.st_size, stat.st_mtime_ns, task.rows, task.metric]
        digest = hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:12]
        plain = "".join(x if x.isalnum() else "_" for x in series.name)
        return task.indexes / f"{self.name}.{plain}.{digest}"

    def build(self, series: Series) -> Built:
        """An index, built with all cores unless a run before has left it."""
        path = self.index_path(series)
        facts = path.with_name(path.name + ".json")
        if not facts.exists():
            self.forget(path)
            start = time.perf_counter()
            answer = self.run({"do": "build", "index": str(path), "options": series.options},
                              self.build_setting, self.task.all_cpus)
            found = {"seconds": answer["seconds"], "bytes": answer["bytes"],
                     "wall_seconds": time.perf_counter() - start,
                     "threads": len(self.task.all_cpus)}
            facts.write_text(json.dumps(found), encoding="utf-8")  # last: the index is whole
        found = json.loads(facts.read_text(encoding="utf-8"))
        return Built(path, series.options, found["seconds"], found["wall_seconds"],
                     found["threads"], found["bytes"] / self.task.num_rows,
                     series.raw_bytes * self.task.dims)

    def forget(self, path: Path) -> None:
        """Deletes what an interrupted build has left."""
        for old in path.parent.glob(path.name + "*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()

    def search(self, built: Built, points: list[dict[str, Any]], setting: Setting, repeat: int,
               is_trial: bool = False) -> tuple[list[dict[str, Any]], str]:
        """What the worker measured at each point, and where the ids are."""
        job = {"do": "search", "index": str(built.path), "options": built.options,
               "points": points, "repeat": repeat, "is_trial": is_trial}
        answer = self.run(job, setting, self.task.cpus)
        return answer["points"], answer["ids"]

    def batches(self) -> list[int]:
        """Batches to try."""
        if self.task.batch is not None:
            return [self.task.batch]
        return [x for x in BATCHES if x < self.task.num_queries]

    def choose(self, series: Series, built: Built) -> tuple[Setting, int]:
        """The setting and batch that are fastest at the middle point."""
        settings, batches = self.settings(series), self.batches()
        if len(settings) * len(batches) == 1:
            return settings[0], batches[0]
        middle = series.points[len(series.points) // 2]
        asked = [{"point": middle, "batch": x} for x in batches]
        seconds = []
        for number, setting in enumerate(settings):
            points, _ = self.search(built, asked, setting, 2, is_trial=True)
            seconds += [(min(x["seconds"]), number, x["batch"]) for x in points]
        _, number, batch = min(seconds)
        return settings[number], batch

    def make_row(self, series: Series, built: Built, measured: dict[str, Any], ids: np.ndarray,
                 setting: Setting) -> Row:
        """A row of the table from what the worker measured at a point."""
        ids = np.where(ids >= 0, ids + self.task.rows[0], -1)
        count = self.task.num_queries
        return Row(self.name, series.name, measured["point"], self.task.recall_of(ids),
                   count / statistics.median(measured["seconds"]),
                   build_seconds=built.seconds, build_wall_seconds=built.wall_seconds,
                   code_bytes=built.total_bytes - built.raw_bytes, raw_bytes=built.raw_bytes,
                   setting=setting.name, passes=len(measured["seconds"]),
                   batch=measured["batch"], build_threads=built.threads,
                   cpu_rate=count / statistics.median(measured["cpu_seconds"]))

    def measure_singles(self, built: Built, rows: list[Row], setting: Setting) -> None:
        """One query at a time, at the fastest point that reaches the target (or the best one)."""
        row = best_point(rows)
        asked = [{"point": row.point, "batch": 1, "count": self.task.singles}]
        rates = []
        for tried in {x.name: x for x in (Setting(), setting)}.values():
            points, _ = self.search(built, asked, tried, 3)
            rates.append(self.task.singles / statistics.median(points[0]["seconds"]))
        row.single_rate = max(rates)

    def measure(self, series: Series) -> list[Row]:
        """A row for every point; none, and a line, where a machine does not have the variant."""
        try:
            built = self.build(series)
        except PeerError as error:
            if not series.is_optional:
                raise
            self.forget(self.index_path(series))
            self.skipped.append(f"{self.name} {series.name}: {error}")
            say(f"  skipped: {self.skipped[-1]}")
            return []
        setting, batch = self.choose(series, built)
        asked = [{"point": x, "batch": batch} for x in series.points]
        points, stem = self.search(built, asked, setting, self.task.repeat)
        rows = [self.make_row(series, built, measured, np.load(f"{stem}.{number}.npy"), setting)
                for number, measured in enumerate(points)]
        if series.has_singles and batch != 1:
            self.measure_singles(built, rows, setting)
        return rows
