# SPDX-License-Identifier: Apache-2.0
"""bitsweep beside FAISS, hnswlib, Intel SVS and ScaNN: the same data, threads and k.

Started by run_peers.sh, which has the packages; --help tells more.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import bitsweep_engine
from faiss_engine import FaissEngine
from groundtruth_pairs import compare
from peer_engine import PeerEngine
from peer_options import ROOT, parser
from peer_report import write_report
from peer_series import PACKAGES, PEERS
from peer_task import PeerError, Row, Task, say
from peer_vectors import check_truth, open_vectors, parse_rows, write_unit

DRIFT_SERIES = "bitsweep saq-3 matrix"
DRIFT_POINT = "oversample=5"
WHOLE_CORE = 0.95  # of CPU time over time by the clock: below it other programs ran


def parse_batch(text: str) -> int | None:
    """--batch: None for best, 0 for all."""
    if text in ("best", "all"):
        return None if text == "best" else 0
    if not text.isdigit() or int(text) < 1:
        raise PeerError(f"--batch {text}: neither a number nor all nor best")
    return int(text)


def make_task(options: argparse.Namespace) -> Task:
    """Checks the options and the files they name."""
    if bool(options.base) != bool(options.queries):
        raise PeerError("--base and --queries go together")
    base = options.base or str(ROOT / "tests/data/sift20k_base.u8bin")
    queries = options.queries or str(ROOT / "tests/data/sift20k_query.u8bin")
    vectors, asked = open_vectors(base), open_vectors(queries)
    if vectors.shape[1] != asked.shape[1]:
        raise PeerError(f"{base} has {vectors.shape[1]} dims, {queries} {asked.shape[1]}")
    all_cpus = sorted(os.sched_getaffinity(0))
    threads = options.threads or len(all_cpus)
    if not 0 < threads <= len(all_cpus):
        raise PeerError(f"--threads {threads}: this process may use {len(all_cpus)} cores")
    rows = parse_rows(options.rows, len(vectors))
    query_rows = parse_rows(options.query_rows, len(asked))
    if not 0 < options.k <= rows[1] - rows[0] or options.repeat < 1:
        raise PeerError("--k is 1 to the number of rows, --repeat 1 or more")
    re.compile(options.only)
    out = Path(options.out)
    indexes = Path(options.indexes or out / "indexes")
    for folder in (out, indexes):
        folder.mkdir(parents=True, exist_ok=True)
    metric = options.metric
    if metric == "cosine":
        say(f"== rows of unit length, in {out}/unit")
        base, queries = (write_unit(x, out / "unit" / f"{name}.fbin")
                         for x, name in ((vectors, "base"), (asked, "queries")))
        metric = "ip"
    return Task(base, queries, rows, query_rows, metric, options.k, threads,
                options.repeat, min(200, query_rows[1] - query_rows[0]), out,
                Path(tempfile.mkdtemp(prefix="work.", dir=out)), indexes,
                os.environ.get("BITSWEEP", str(ROOT / "build/release/bitsweep")), options.only,
                parse_batch(options.batch), options.cpu_time, all_cpus[-threads:], all_cpus,
                own_metric=options.metric)


def is_wanted(task: Task, name: str) -> bool:
    """Whether --only takes a series."""
    return re.search(task.only, name) is not None


def show(rows: list[Row]) -> None:
    """A line of progress for every row."""
    for row in rows:
        say(f"  {row.name:36} {row.point:28} {row.recall:.4f} {row.rate:10.0f} queries/s")


def prepare(task: Task, faiss: FaissEngine,
            bitsweep: bitsweep_engine.BitsweepEngine) -> list[str]:
    """Settings and ground truth; returns notes for the report."""
    say("== settings of FAISS, tried with Flat")
    faiss.tune()
    say(f"  {faiss.tuned}")
    say("== ground truth")
    task.truth = bitsweep.truth()
    base = open_vectors(task.base)
    queries = open_vectors(task.queries)[task.query_rows[0]:task.query_rows[1]]
    found = check_truth(base, queries, task.truth, faiss.flat_ids(), task.metric)
    is_exact = base.dtype != np.float32
    if found < (1 if is_exact else 0.999):
        raise PeerError(f"FAISS Flat and bitsweep groundtruth differ: recall {found:.5f}")
    note = (f"truth     bitsweep groundtruth; FAISS Flat has {task.recall_name} {found:.5f} of it, "
            "ties of exact values counted as hits")
    say(f"  {note[10:]}")
    return [note]


def make_peers(task: Task, faiss: FaissEngine) -> list[PeerEngine]:
    """Every engine whose package is here (run_peers.sh says what it could not install)."""
    here = [x for x in PEERS if importlib.util.find_spec(x)]
    return [faiss if x == "faiss" else PeerEngine(task, x) for x in here]


def time_left(seconds: float, done: int, total: int) -> str:
    """What is said of the series to come, from those that are done."""
    if done == 0:
        return ""
    left = seconds / done * (total - done)
    return f", some {left:.0f} s left" if left < 90 else f", some {left / 60:.0f} min left"


def measure(task: Task, peers: list[PeerEngine], bitsweep: bitsweep_engine.BitsweepEngine,
            more: list[str]) -> list[Row]:
    """All series, those of all engines in turn as far as their numbers allow."""
    ours = bitsweep_engine.list_series(task.type != np.float32)
    ours += [bitsweep_engine.parse_series(x) for x in more]
    queues = [(x, PEERS[x.name](task.num_rows, task.dims, task.k, task.type)) for x in peers]
    wanted = [[(engine, x) for x in listed if is_wanted(task, f"{engine.name} {x.name}")]
              for engine, listed in queues]
    wanted.append([(bitsweep, x) for x in ours if is_wanted(task, f"bitsweep {x.name}")])
    rows: list[Row] = []
    total, done, start = sum(map(len, wanted)), 0, time.perf_counter()
    for turn in itertools.zip_longest(*wanted):
        for engine, series in filter(None, turn):
            say(f"== series {done + 1} of {total}: {engine.name} {series.name}"
                f"{time_left(time.perf_counter() - start, done, total)}")
            found = engine.measure(series)
            done += 1
            show(found)
            rows += found
    order = [*PEERS, "bitsweep"]
    return sorted(rows, key=lambda x: order.index(x.engine))  # stable: series stay together


def repeat_first(faiss: FaissEngine, bitsweep: bitsweep_engine.BitsweepEngine,
                 rows: list[Row]) -> list[str]:
    """One point of each side again at the end: its rate is the mean of both; notes on the drift."""
    listed = {f"bitsweep {x.name}": x for x in bitsweep_engine.list_series(True)}
    notes = []
    for row in rows:
        if row.name == "faiss Flat":
            again = faiss.repeat_flat(row.batch)
        elif row.name == DRIFT_SERIES and row.point == DRIFT_POINT:
            again = bitsweep.repeat_point(listed[DRIFT_SERIES], 2)
        else:
            continue
        name = f"{row.name} {row.point}".rstrip()
        notes.append(f"drift     {name}: {row.rate:.0f} queries/s at first, {again:.0f} at the "
                     "end; the table has the mean")
        row.rate, row.passes = (row.rate + again) / 2, 2 * row.passes
        say(f"  {notes[-1][10:]}")
    return notes


def disturbed(task: Task, rows: list[Row]) -> list[str]:
    """A note on points whose one thread did not have its core for itself."""
    known = [x for x in rows if x.cpu_rate is not None]
    late = sum(x.rate < WHOLE_CORE * x.cpu_rate for x in known if x.cpu_rate is not None)
    if task.threads > 1 or not late:
        return []
    return [f"disturbed {late} of {len(known)} points of peers had less than "
            f"{100 * WHOLE_CORE:.0f} % of their core: other programs ran; take rates of CPU time"]


def run(options: argparse.Namespace) -> None:
    """The whole comparison."""
    start = time.perf_counter()
    task = make_task(options)
    try:
        if options.groundtruth_turns > 0:
            say(compare(task, options.groundtruth_turns))
            return
        faiss = FaissEngine(task)
        peers = make_peers(task, faiss)
        bitsweep = bitsweep_engine.BitsweepEngine(task)
        notes = prepare(task, faiss, bitsweep)
        rows = measure(task, peers, bitsweep, options.bitsweep_series)
        if not rows:
            raise PeerError(f"--only {task.only}: no series matches")
        notes += repeat_first(faiss, bitsweep, rows)
        notes += disturbed(task, rows)
        missing = [x for x in PEERS if not importlib.util.find_spec(x)]
        notes += [f"skipped   {x}: {PACKAGES[x]} is not installed" for x in missing]
        notes += [f"skipped   {x}" for engine in (*peers, bitsweep) for x in engine.skipped]
        notes.append(f"seconds   {time.perf_counter() - start:.0f} for the whole run")
        say("\n" + write_report(task, faiss, rows, notes))
        say(f"files: {task.out}/results.csv .json .md, engines and recall .svg .png")
    finally:
        shutil.rmtree(task.work)


def main() -> int:
    """Runs; prints one line on an error. Exit codes: 0, 1 failed, 2 usage (argparse)."""
    try:
        run(parser().parse_args())
    except (PeerError, ValueError, OSError, re.error) as error:
        print(f"run_peers.sh: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
