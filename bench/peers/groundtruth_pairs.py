#!/usr/bin/env python3
"""Exact neighbours by `bitsweep groundtruth` and by FAISS IndexFlat, in turns, on the same cores.

usage: build/peers-venv/bin/python bench/peers/groundtruth_pairs.py --base F --queries F [options]

Both have the same rows, queries, metric, k and cores. FAISS is timed from vectors in memory to
answers in memory; bitsweep from the opened file to the last answer written, reading included.
FAISS runs with OpenBLAS as it comes and with the kernels of each OPENBLAS_CORETYPE tried, and each
run has the better of two block sizes. Ratios are medians over the turns, of each turn's own pair.
Beside seconds of the clock there are those of the CPU, which a loaded machine disturbs less: of
FAISS those of the search, of bitsweep those of the whole process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from peer_task import PeerError, last_line, run_process, say
from peer_vectors import open_vectors, parse_rows

CORES = ("", "SkylakeX", "Haswell")
METRICS = ("l2", "ip")
BLOCKS = ((4096, 1024), (4096, 256))  # FAISS's own, and what was better where it was tried


def work_as_faiss(arguments: list[str]) -> None:
    """The worker: prints seconds of clock and CPU of a search, the faster of two block sizes."""
    import faiss  # pylint: disable=import-outside-toplevel

    base, rows, queries, asked, metric, k = arguments
    first, last = json.loads(rows)
    vectors = np.ascontiguousarray(open_vectors(base)[first:last], dtype=np.float32)
    first, last = json.loads(asked)
    batch = np.ascontiguousarray(open_vectors(queries)[first:last], dtype=np.float32)
    flat = {"l2": faiss.IndexFlatL2, "ip": faiss.IndexFlatIP}[metric]
    index = flat(vectors.shape[1])
    index.add(vectors)
    index.search(batch[:100], int(k))
    runs = []
    for queries_at_once, rows_at_once in BLOCKS:
        faiss.cvar.distance_compute_blas_query_bs = queries_at_once
        faiss.cvar.distance_compute_blas_database_bs = rows_at_once
        clock, cpu = time.perf_counter(), time.process_time()
        index.search(batch, int(k))
        runs.append((time.process_time() - cpu, time.perf_counter() - clock))
    print(min(run[1] for run in runs), min(run[0] for run in runs))


def faiss_seconds(options: argparse.Namespace, core: str, cpus: list[int]) -> tuple[float, float]:
    """Clock and CPU seconds of one search in a process of its own."""
    environment = {"OPENBLAS_NUM_THREADS": "1"} if len(cpus) == 1 else {}
    if core:
        environment["OPENBLAS_CORETYPE"] = core
    ended = run_process([sys.executable, __file__, "worker", options.base, json.dumps(options.rows),
                         options.queries, json.dumps(options.query_rows), options.metric,
                         str(options.k)], cpus, environment)
    if ended.returncode:
        raise PeerError(f"FAISS: {last_line(ended.stderr)}")
    clock, cpu = ended.stdout.split()
    return float(clock), float(cpu)


def bitsweep_seconds(options: argparse.Namespace, out: Path, cpus: list[int]) -> tuple[float, float]:
    """Clock seconds as the program says, CPU seconds of the whole process."""
    before = os.times()
    ended = run_process([options.bitsweep, "groundtruth", "--base", options.base, "--rows",
                         "{}:{}".format(*options.rows), "--queries", options.queries,
                         "--query-rows", "{}:{}".format(*options.query_rows), "--metric",
                         options.metric, "--k", str(options.k), "--out", str(out), "--threads",
                         str(len(cpus)), "--force", "--json", "--quiet"], cpus)
    if ended.returncode:
        raise PeerError(f"bitsweep: {last_line(ended.stderr)}")
    after = os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    return float(json.loads(ended.stdout)["seconds"]), cpu


def measure(options: argparse.Namespace, cpus: list[int]) -> None:
    """All turns, and a line for each program."""
    taken: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.turns):
            mine = bitsweep_seconds(options, Path(folder) / "truth", cpus)
            taken.setdefault("bitsweep groundtruth", []).append(mine)
            for core in CORES:
                name = f"FAISS Flat {'OPENBLAS_CORETYPE=' + core if core else 'as it comes'}"
                taken.setdefault(name, []).append(faiss_seconds(options, core, cpus))
    mine = taken["bitsweep groundtruth"]
    queries = options.query_rows[1] - options.query_rows[0]
    print(f"# {options.base} rows {options.rows[0]}:{options.rows[1]}, {queries} queries, "
          f"{options.metric}, k {options.k}, {len(cpus)} threads, medians of {options.turns} turns")
    print(f"# {'':42} {'queries/s':>10} {'CPU s':>8} {'clock ratio':>12} {'CPU ratio':>10}")
    for name, runs in taken.items():
        clocks = statistics.median(a[0] / b[0] for a, b in zip(runs, mine))
        cpus_ratio = statistics.median(a[1] / b[1] for a, b in zip(runs, mine))
        clock, cpu = (statistics.median(x[i] for x in runs) for i in range(2))
        print(f"  {name:42} {queries / clock:10.0f} {cpu:8.2f} {clocks:12.2f} {cpus_ratio:10.2f}")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--rows", default=":", help="A:B of the base")
    parser.add_argument("--query-rows", default=":1000", help="A:B of the queries")
    parser.add_argument("--metric", choices=METRICS, default="l2")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--bitsweep", default=os.environ.get("BITSWEEP", "build/release/bitsweep"))
    options = parser.parse_args(arguments)
    options.rows = parse_rows(options.rows, len(open_vectors(options.base)))
    options.query_rows = parse_rows(options.query_rows, len(open_vectors(options.queries)))
    return options


def main() -> int:
    """Measures, or is the worker."""
    if sys.argv[1:2] == ["worker"]:
        work_as_faiss(sys.argv[2:])
        return 0
    options = parse(sys.argv[1:])
    cpus = sorted(os.sched_getaffinity(0))[-options.threads:]
    try:
        measure(options, cpus)
    except PeerError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
