# SPDX-License-Identifier: Apache-2.0
"""One job of one engine in a process of its own: libraries read their settings when loaded.

usage: peer_worker.py JOB.json

The job names the engine (a module ENGINE_peer.py beside this file), what to do (build, search, or
tune, which FAISS alone has), the data, and the file that takes the answer. A module has

    build(job, base)      trains, fills, writes job["index"]; returns the seconds of the first two
    Searcher(job)         opens job["index"]; set_point(values), search(queries, k) -> ids
    level()               what the library says it runs on, or nothing
    KEEPS_TYPE            whether it takes the file's own type; float32 if not

Times are those of search() alone, from queries in memory to ids in memory.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np

from peer_vectors import open_vectors

TRIAL_SECONDS = 0.3  # for one trial of a setting; short passes are too noisy to choose by


def read_vectors(job: dict[str, Any], name: str, keeps_type: bool) -> np.ndarray:
    """The job's rows or queries, as float32 or as the file has them."""
    first, last = job[name + "_rows"]
    rows = open_vectors(job[name])
    return np.array(rows[first:last], dtype=rows.dtype if keeps_type else np.float32, order="C")


def passes(work: Callable[[], Any], repeat: int,
           at_least: float = 0) -> tuple[list[float], list[float], Any]:
    """Seconds by the clock and of the CPU of every pass after one not timed, and the last answer.

    More than `repeat` passes where these take less than so many seconds together.
    """
    work()
    seconds: list[float] = []
    cpu_seconds: list[float] = []
    while len(seconds) < repeat or sum(seconds) < at_least:
        start, cpu_start = time.perf_counter(), time.process_time()
        answer = work()
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    return seconds, cpu_seconds, answer


def parse_point(text: str) -> dict[str, float]:
    """`nprobe=64,reorder=100` as numbers by name."""
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {name: float(value) for name, _, value in pairs}


def search_batches(searcher: Any, queries: np.ndarray, k: int, batch: int) -> np.ndarray:
    """Ids of all queries, asked so many at a time; 0: all at once."""
    if not 0 < batch < len(queries):
        return searcher.search(queries, k)
    return np.concatenate([searcher.search(queries[first:first + batch], k)
                           for first in range(0, len(queries), batch)])


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    files = [x for x in path.rglob("*") if x.is_file()] if path.is_dir() else [path]
    return sum(x.stat().st_size for x in files)


def build(engine: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Builds and writes an index."""
    base = read_vectors(job, "base", engine.KEEPS_TYPE)
    seconds = engine.build(job, base)
    return {"seconds": seconds, "bytes": size_of(Path(job["index"]))}


def search(engine: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Seconds of every pass at every point, and the ids of each point in a file."""
    queries = read_vectors(job, "queries", engine.KEEPS_TYPE)
    searcher = engine.Searcher(job)
    points = []
    for number, asked in enumerate(job["points"]):
        searcher.set_point(parse_point(asked["point"]))
        some = queries[:asked.get("count", len(queries))]
        at_least = TRIAL_SECONDS if job["is_trial"] else 0
        seconds, cpu_seconds, ids = passes(
            lambda: search_batches(searcher, some, job["k"], asked["batch"]), job["repeat"],
            at_least)
        np.save(f"{job['ids']}.{number}.npy", np.asarray(ids, dtype=np.int64))
        points.append({**asked, "count": len(some), "seconds": seconds,
                       "cpu_seconds": cpu_seconds})
    return {"points": points}


def main() -> None:
    """Does the job and writes its answer."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    engine = importlib.import_module(f"{job['engine']}_peer")
    if job["do"] == "tune":
        answer = engine.tune(job)
    else:
        answer = {"build": build, "search": search}[job["do"]](engine, job)
    answer["level"] = engine.level()
    with open(job["answer"], "w", encoding="utf-8") as file:
        json.dump(answer, file)
    sys.stdout.flush()
    os._exit(0)  # not through destructors: what a library does there is no part of the job


if __name__ == "__main__":
    main()
