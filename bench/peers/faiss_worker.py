"""One FAISS job in a process of its own: OpenBLAS and OpenMP read their settings when loaded.

usage: faiss_worker.py JOB.json

The job names what to do (tune, build or search), the data, and the file that takes the answer.
Rows and queries reach FAISS as float32; times are those of index.search() alone, from queries in
memory to ids and distances in memory.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from typing import Any, Callable

import faiss
import numpy as np

from peer_vectors import open_vectors

TRIAL_SECONDS = 0.3  # for one trial of a setting; short passes are too noisy to choose by
METRICS = {"l2": faiss.METRIC_L2, "ip": faiss.METRIC_INNER_PRODUCT}


def read_floats(job: dict[str, Any], name: str) -> np.ndarray:
    """The job's rows or queries as float32."""
    first, last = job[name + "_rows"]
    return np.ascontiguousarray(open_vectors(job[name])[first:last], dtype=np.float32)


def apply_variables(variables: dict[str, int]) -> None:
    """Sets FAISS's global variables, such as distance_compute_blas_threshold."""
    for name, value in variables.items():
        setattr(faiss.cvar, name, value)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that work took, and what it returned."""
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer


def passes(work: Callable[[], Any], repeat: int, at_least: float = 0) -> tuple[list[float], Any]:
    """Seconds of every pass after one that is not timed, and the last answer.

    More than `repeat` passes where these take less than so many seconds together.
    """
    work()
    seconds: list[float] = []
    while len(seconds) < repeat or sum(seconds) < at_least:
        took, answer = timed(work)
        seconds.append(took)
    return seconds, answer


def tune(job: dict[str, Any]) -> dict[str, Any]:
    """Rates of a Flat index under several sets of variables, and CPU seconds of a pass."""
    queries = read_floats(job, "queries")
    base = read_floats(job, "base")
    index = faiss.IndexFlat(base.shape[1], METRICS[job["metric"]])
    index.add(base)
    rates, cpu_seconds = [], []
    for variables in job["candidates"]:
        apply_variables(variables)
        start = time.process_time()
        seconds, _ = passes(lambda: index.search(queries, job["k"]), job["repeat"], TRIAL_SECONDS)
        cpu_seconds.append((time.process_time() - start) / (len(seconds) + 1))
        rates.append(len(queries) / min(seconds))
    return {"rates": rates, "cpu_seconds": cpu_seconds}


def build(job: dict[str, Any]) -> dict[str, Any]:
    """Trains, fills and writes an index; the seconds are those of train and add."""
    base = read_floats(job, "base")
    index = faiss.index_factory(base.shape[1], job["factory"], METRICS[job["metric"]])
    train_seconds, _ = timed(lambda: index.train(base))
    add_seconds, _ = timed(lambda: index.add(base))
    faiss.write_index(index, job["index"])
    return {"seconds": train_seconds + add_seconds, "bytes": os.path.getsize(job["index"])}


def search_singly(index: faiss.Index, queries: np.ndarray, k: int, repeat: int) -> float:
    """Queries a second when each is a search of its own."""
    def work() -> None:
        for q in range(len(queries)):
            index.search(queries[q:q + 1], k)
    seconds, _ = passes(work, repeat)
    return len(queries) / statistics.median(seconds)


def search(job: dict[str, Any]) -> dict[str, Any]:
    """Seconds of every pass at every point, and the ids of each point in a file."""
    queries = read_floats(job, "queries")
    index = faiss.read_index(job["index"])
    space = faiss.ParameterSpace()
    points = []
    for number, point in enumerate(job["points"]):
        if point:
            space.set_index_parameters(index, point)
        answer: dict[str, Any] = {"point": point}
        if job["repeat"]:
            at_least = TRIAL_SECONDS if job["is_trial"] else 0
            seconds, found = passes(lambda: index.search(queries, job["k"]), job["repeat"],
                                    at_least)
            np.save(f"{job['ids']}.{number}.npy", found[1])
            answer["seconds"] = seconds
        if job["singles"]:
            answer["single_rate"] = search_singly(index, queries[:job["singles"]], job["k"], 3)
        points.append(answer)
    return {"points": points}


def main() -> None:
    """Does the job and writes its answer."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    apply_variables(job["variables"])
    answer = {"tune": tune, "build": build, "search": search}[job["do"]](job)
    answer["level"] = faiss.SIMDConfig.get_level_name()
    with open(job["answer"], "w", encoding="utf-8") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    main()
