# SPDX-License-Identifier: Apache-2.0
"""--groundtruth-turns: exact neighbours by `bitsweep groundtruth` and by FAISS Flat, in turns.

FAISS is timed from vectors in memory to answers in memory; bitsweep from the opened file to the
last answer written, reading included. FAISS runs with OpenBLAS as it comes and with each kernel
tried, with the best of several block sizes. Ratios are medians over the turns, of each turn's own
pair. Beside seconds of the clock there are those of the CPU, which a loaded machine disturbs less:
of FAISS those of the search, of bitsweep those of the whole process.
"""

from __future__ import annotations

import os
import statistics

from bitsweep_engine import BitsweepEngine
from faiss_engine import FaissEngine, Setting, candidate_settings, candidate_variables
from peer_task import Task


def faiss_seconds(engine: FaissEngine, setting: Setting) -> tuple[float, float]:
    """Clock and CPU seconds of one search, the best of the block sizes."""
    answer = engine.run({"do": "tune", "candidates": candidate_variables(), "repeat": 1}, setting,
                        engine.task.cpus)
    return engine.task.num_queries / max(answer["rates"]), min(answer["cpu_seconds"])


def bitsweep_seconds(engine: BitsweepEngine) -> tuple[float, float]:
    """Clock seconds as the program says, CPU seconds of the whole process."""
    before = os.times()
    figures = engine.run_truth(engine.task.cpus)
    after = os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    return float(figures["seconds"]), cpu


def compare(task: Task, turns: int) -> str:
    """All turns: a heading, and a line for each program."""
    faiss, bitsweep = FaissEngine(task), BitsweepEngine(task)
    own: list[tuple[float, float]] = []
    taken = {"bitsweep groundtruth": own}
    for _ in range(turns):
        own.append(bitsweep_seconds(bitsweep))
        for setting in candidate_settings(task.threads):
            taken.setdefault(f"FAISS Flat {setting}", []).append(faiss_seconds(faiss, setting))
    lines = [f"# {task.base} rows {task.rows[0]}:{task.rows[1]}, {task.num_queries} queries, "
             f"{task.metric}, k {task.k}, {task.threads} threads, medians of {turns} turns",
             f"# {'':42} {'queries/s':>10} {'CPU s':>8} {'clock ratio':>12} {'CPU ratio':>10}"]
    for name, runs in taken.items():
        clock, cpu = (statistics.median(x[i] for x in runs) for i in range(2))
        ratios = (statistics.median(a[i] / b[i] for a, b in zip(runs, own)) for i in range(2))
        lines.append("  {:42} {:10.0f} {:8.2f} {:12.2f} {:10.2f}".format(
            name, task.num_queries / clock, cpu, *ratios))
    return "\n".join(lines)
