"""bitsweep's side: indexes, scans and the program's own figures (search --json)."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from peer_task import PeerError, Row, Task, best_point, last_line, run_process, say
from peer_vectors import read_result

USAGE_EXIT = 2  # what the program ends with when it does not know or take an option's value


class Refused(PeerError):
    """The program does not have or take what was asked for."""


@dataclass(frozen=True)
class Code:
    """What an index is made with."""

    codec: str
    bits: int  # a dimension; 0: the codec has no choice

    @property
    def name(self) -> str:
        """As in the table."""
        return f"{self.codec}-{self.bits}" if self.bits else self.codec


@dataclass(frozen=True)
class Series:
    """An index searched in one way, at several points."""

    code: Code
    scan: str
    oversamples: tuple[int, ...]  # empty: nothing is refined

    @property
    def name(self) -> str:
        """As in the table."""
        return f"{self.code.name} {self.scan}"

    @property
    def is_optional(self) -> bool:
        """Whether a program or data may do without it."""
        return self.code.codec == "raw" or self.scan.startswith("progressive")


def list_series(is_integer: bool) -> list[Series]:
    """What is compared."""
    scans = ("auto", "matrix", "progressive-matrix")
    series = [Series(Code("saq", bits), scan, (1, 2, 5)) for bits in (2, 3) for scan in scans]
    series.append(Series(Code("sq8", 0), "auto", (1, 2, 5)))
    return series + ([Series(Code("raw", 0), "auto", ())] if is_integer else [])


class BitsweepEngine:
    """Encodes and searches with the program that the task names."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.encoded: dict[Code, tuple[dict[str, Any], float]] = {}  # figures and wall seconds
        self.skipped: list[str] = []

    def run(self, command: str, arguments: list[str], cpus: list[int]) -> dict[str, Any]:
        """Runs a command of the program; returns what it prints as JSON."""
        line = [self.task.bitsweep, command, *arguments, "--threads", str(len(cpus)), "--force",
                "--json"]
        ended = run_process(line, cpus, {"OPENBLAS_NUM_THREADS": "1"})
        if ended.returncode == USAGE_EXIT:
            raise Refused(last_line(ended.stderr))
        if ended.returncode:
            raise PeerError(f"bitsweep {command}: {last_line(ended.stderr)}")
        answer: dict[str, Any] = json.loads(ended.stdout)
        return answer

    def run_truth(self, cpus: list[int]) -> dict[str, Any]:
        """Makes the file of exact neighbours by `bitsweep groundtruth`; returns its figures."""
        task = self.task
        return self.run("groundtruth", [
            "--base", task.base, "--rows", f"{task.rows[0]}:{task.rows[1]}",
            *self.query_arguments(task.num_queries), "--metric", task.metric, "--k", str(task.k),
            "--out", str(task.work / "truth")], cpus)

    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """Exact neighbours: ids of the file and values."""
        self.run_truth(self.task.all_cpus)
        return read_result(self.task.work / "truth")

    def query_arguments(self, count: int) -> list[str]:
        """Options that name the first so many queries."""
        first = self.task.query_rows[0]
        return ["--queries", self.task.queries, "--query-rows", f"{first}:{first + count}"]

    def index_path(self, code: Code) -> Path:
        """Where an index lies."""
        return self.task.work / f"index.{code.name}"

    def encode(self, code: Code) -> tuple[dict[str, Any], float]:
        """Makes an index with all cores, once; returns its figures and the wall seconds."""
        if code in self.encoded:
            return self.encoded[code]
        task = self.task
        bits = ["--bits", str(code.bits)] if code.bits else []
        start = time.perf_counter()
        figures = self.run("encode", [
            "--base", task.base, "--rows", f"{task.rows[0]}:{task.rows[1]}", "--index",
            str(self.index_path(code)), "--codec", code.codec, *bits, "--metric", task.metric,
        ], task.all_cpus)
        self.encoded[code] = figures, time.perf_counter() - start
        return self.encoded[code]

    def search(self, series: Series, oversample: int, count: int, repeat: int,
               more: list[str]) -> tuple[dict[str, Any], np.ndarray]:
        """Figures and ids of a search with the first so many queries."""
        task = self.task
        path = task.work / "result"
        refine = ["--oversample", str(oversample)] if oversample else []
        figures = self.run("search", [
            "--index", str(self.index_path(series.code)), *self.query_arguments(count), "--k",
            str(task.k), "--scan", series.scan, *refine, "--out", str(path), "--warmup", "1",
            "--repeat", str(repeat), *more], task.cpus)
        return figures, read_result(path)[0]

    def make_row(self, series: Series, oversample: int) -> Row:
        """Searches at one point."""
        task = self.task
        made, wall = self.encode(series.code)
        figures, ids = self.search(series, oversample, task.num_queries, task.repeat, [])
        raw = task.type.itemsize * task.dims if oversample else 0
        return Row("bitsweep", series.name, f"oversample={oversample}" if oversample else "",
                   task.recall_of(ids), figures["queries_per_second"],
                   build_seconds=made["train_seconds"] + made["encode_seconds"],
                   build_wall_seconds=wall, code_bytes=made["bytes_per_vector"], raw_bytes=raw,
                   setting=figures["scan"], passes=task.repeat)

    def measure_singles(self, series: Series, rows: list[Row]) -> None:
        """One query at a time, at the fastest point that reaches the target (or the best one)."""
        row = best_point(rows)
        oversample = int(row.point.partition("=")[2] or 0)
        figures, _ = self.search(series, oversample, self.task.singles, 3, ["--batch", "1"])
        row.single_rate = figures["queries_per_second"]
        row.setting += f"; singly {figures['scan']}"

    def measure(self, series: Series) -> list[Row]:
        """A row for every point; none, and a line, where the program refuses the variant."""
        try:
            rows = [self.make_row(series, x) for x in series.oversamples or (0,)]
            self.measure_singles(series, rows)
        except Refused as refused:
            if not series.is_optional:
                raise
            self.skipped.append(f"bitsweep {series.name}: {refused}")
            say(f"  skipped: bitsweep {series.name}: {refused}")
            return []
        return rows

    def repeat_point(self, series: Series, oversample: int) -> float:
        """A point once more: queries a second."""
        figures, _ = self.search(series, oversample, self.task.num_queries, self.task.repeat, [])
        return float(figures["queries_per_second"])
