# SPDX-License-Identifier: Apache-2.0
"""bitsweep's side: indexes, scans and the program's own figures (search --json)."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from peer_task import (PeerError, Row, Task, best_point, children_seconds, last_line, run_process,
                       say)
from peer_vectors import read_result

USAGE_EXIT = 2  # what the program ends with when it does not know or take an option's value
# Figures of encode that add up to the making of an index; the table of recalls is not in them.
BUILD_SECONDS = ("train_seconds", "lists_seconds", "encode_seconds")


class Refused(PeerError):
    """The program does not have or take what was asked for."""


@dataclass(frozen=True)
class Series:
    """An index, and the points at which it is searched: options of the program, as they are."""

    name: str
    encode: tuple[str, ...]  # options of encode
    search: tuple[str, ...]  # options of search that all points have
    points: tuple[tuple[str, ...], ...]  # options of search, of each point
    is_optional: bool = False  # whether a program or data may do without it


def point_name(options: tuple[str, ...]) -> str:
    """`--oversample 5` as `oversample=5`, pairs joined with commas."""
    words = " ".join(options).replace("--", ",").strip(",").split(",")
    return ",".join(word.strip().replace(" ", "=") for word in words)


def parse_series(text: str) -> Series:
    """`ENCODE OPTIONS | SEARCH OPTIONS | ...`: a series with a point for every search."""
    encode, *points = (tuple(shlex.split(part)) for part in text.split("|"))
    if not points:
        raise PeerError(f"{text}: not of the form 'options of encode | options of search | ...'")
    return Series(point_name(encode), encode, (), tuple(points), is_optional=True)


def list_series(is_integer: bool) -> list[Series]:
    """What is compared."""
    refined = tuple(("--oversample", str(x)) for x in (1, 2, 5))
    series = [Series(f"saq-{bits} {scan}", ("--codec", "saq", "--bits", str(bits)),
                     ("--scan", scan), refined, scan.startswith("progressive"))
              for bits in (2, 3) for scan in ("auto", "matrix", "progressive-matrix")]
    series.append(Series("sq8 auto", ("--codec", "sq8"), ("--scan", "auto"), refined))
    raw = Series("raw auto", ("--codec", "raw"), ("--scan", "auto"), ((),), True)
    return series + ([raw] if is_integer else [])


class BitsweepEngine:
    """Encodes and searches with the program that the task names."""

    name = "bitsweep"

    def __init__(self, task: Task) -> None:
        self.task = task
        self.encoded: dict[tuple[str, ...], tuple[dict[str, Any], float, Path]] = {}
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
            *self.query_arguments(task.num_queries), "--metric", task.own_metric,
            "--k", str(task.k), "--out", str(task.work / "truth")], cpus)

    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """Exact neighbours: ids of the file and values."""
        self.run_truth(self.task.all_cpus)
        return read_result(self.task.work / "truth")

    def query_arguments(self, count: int) -> list[str]:
        """Options that name the first so many queries."""
        first = self.task.query_rows[0]
        return ["--queries", self.task.queries, "--query-rows", f"{first}:{first + count}"]

    def encode(self, series: Series) -> tuple[dict[str, Any], float, Path]:
        """Makes an index with all cores, once; returns its figures, wall seconds and folder."""
        task = self.task
        if series.encode not in self.encoded:
            path = task.work / f"index.{len(self.encoded)}"
            start = time.perf_counter()
            figures = self.run("encode", [
                "--base", task.base, "--rows", f"{task.rows[0]}:{task.rows[1]}", "--index",
                str(path), *series.encode, "--metric", task.own_metric], task.all_cpus)
            self.encoded[series.encode] = figures, time.perf_counter() - start, path
        return self.encoded[series.encode]

    def batch_options(self) -> list[str]:
        """The task's batch; none: the program's own."""
        batch = self.task.batch
        return [] if batch is None else ["--batch", str(batch or self.task.num_queries)]

    def search(self, series: Series, point: tuple[str, ...], count: int, repeat: int,
               more: list[str]) -> tuple[dict[str, Any], np.ndarray]:
        """Figures and ids of a search with the first so many queries."""
        task = self.task
        path = task.work / "result"
        figures = self.run("search", [
            "--index", str(self.encode(series)[2]), *self.query_arguments(count), "--k",
            str(task.k), *series.search, *point, "--out", str(path), "--warmup", "1",
            "--repeat", str(repeat), *more], task.cpus)
        return figures, read_result(path)[0]

    def cpu_rate(self, series: Series, point: tuple[str, ...]) -> float:
        """Queries a CPU second: of a run of many passes less one of few, which loads as much."""
        task, seconds = self.task, []
        for repeat in (1, 1 + task.repeat):
            before = children_seconds()
            self.search(series, point, task.num_queries, repeat, self.batch_options())
            seconds.append(children_seconds() - before)
        return task.num_queries * task.repeat / max(seconds[1] - seconds[0], 1e-9)

    def make_row(self, series: Series, point: tuple[str, ...]) -> Row:
        """Searches at one point."""
        task = self.task
        made, wall, _ = self.encode(series)
        figures, ids = self.search(series, point, task.num_queries, task.repeat,
                                   self.batch_options())
        is_refined = "raw" not in series.encode and "none" not in (*series.search, *point)
        raw = task.type.itemsize * task.dims if is_refined else 0
        return Row("bitsweep", series.name, point_name(point), task.recall_of(ids),
                   figures["queries_per_second"],
                   build_seconds=sum(made.get(x, 0.0) for x in BUILD_SECONDS),
                   build_wall_seconds=wall, code_bytes=made["bytes_per_vector"], raw_bytes=raw,
                   setting=figures["scan"], passes=task.repeat, batch=figures["batch"],
                   build_threads=len(task.all_cpus),
                   cpu_rate=self.cpu_rate(series, point) if task.takes_cpu_time else None)

    def measure_singles(self, series: Series, rows: list[Row]) -> None:
        """One query at a time, at the fastest point that reaches the target (or the best one)."""
        row = best_point(rows)
        point = series.points[rows.index(row)]
        figures, _ = self.search(series, point, self.task.singles, 3, ["--batch", "1"])
        row.single_rate = figures["queries_per_second"]
        row.setting += f"; singly {figures['scan']}"

    def measure(self, series: Series) -> list[Row]:
        """A row for every point; none, and a line, where the program refuses the variant."""
        try:
            rows = [self.make_row(series, x) for x in series.points]
            if self.task.batch != 1:
                self.measure_singles(series, rows)
        except Refused as refused:
            if not series.is_optional:
                raise
            self.skipped.append(f"bitsweep {series.name}: {refused}")
            say(f"  skipped: bitsweep {series.name}: {refused}")
            return []
        return rows

    def repeat_point(self, series: Series, number: int) -> float:
        """A point once more: queries a second."""
        figures, _ = self.search(series, series.points[number], self.task.num_queries,
                                 self.task.repeat, self.batch_options())
        return float(figures["queries_per_second"])
