# SPDX-License-Identifier: Apache-2.0
"""Tables, ratios and the plot of a comparison."""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from faiss_engine import FaissEngine
from peer_series import PACKAGES
from peer_targets import TARGETS, best_points, by_cpu_time, engine_rows, reach
from peer_task import TARGET_RECALL, PeerError, Row, Task, last_line, size_text

HERE = Path(__file__).parent
COLUMNS = ["engine", "series", "point", "recall", "queries_per_second", "single_queries_per_second",
           "build_seconds", "build_wall_seconds", "code_bytes_per_vector", "raw_bytes_per_vector",
           "setting", "passes", "batch", "cpu_queries_per_second", "build_threads"]


def cpu_model() -> str:
    """The CPU's name, as the kernel has it."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return " ".join(line.split(":", 1)[1].split())
    return platform.machine()


def batch_text(task: Task) -> str:
    """What the task says of batches."""
    return "each the best" if task.batch is None else size_text(task.batch)


def packages() -> str:
    """The peers' versions."""
    found = []
    for package in PACKAGES.values():
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            pass
    return ", ".join(found)


def facts(task: Task, faiss: FaissEngine) -> list[str]:
    """Lines on machine, versions, data and settings."""
    program = subprocess.run([task.bitsweep, "--version"], capture_output=True, text=True,
                             check=False).stdout.strip()
    arguments = " ".join(map(shlex.quote, sys.argv[1:]))
    return [
        f"machine   {cpu_model()}, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.release()}",
        f"versions  {program}; {packages()} (FAISS's level {faiss.level}), "
        f"numpy {version('numpy')}, Python {platform.python_version()}",
        f"command   bench/peers/run_peers.sh {arguments}".rstrip(),
        f"data      {Path(task.base).name} rows {task.rows[0]}:{task.rows[1]}, "
        f"{Path(task.queries).name} rows {task.query_rows[0]}:{task.query_rows[1]}, "
        f"{task.dims} dims, {task.metric}, k {task.k}",
        f"threads   {task.threads} for searches (cores {','.join(map(str, task.cpus))}), "
        f"{len(task.all_cpus)} for building",
        f"batch     {batch_text(task)} of {task.num_queries} queries",
        f"tuned     {faiss.tuned}",
    ]


def cells(row: Row) -> list[str]:
    """A row of the CSV file."""
    single = "" if row.single_rate is None else f"{row.single_rate:.2f}"
    return [row.engine, row.series, row.point, f"{row.recall:.5f}", f"{row.rate:.2f}", single,
            f"{row.build_seconds:.3f}", f"{row.build_wall_seconds:.3f}", f"{row.code_bytes:.2f}",
            f"{row.raw_bytes:.2f}", row.setting, str(row.passes), str(row.batch),
            "" if row.cpu_rate is None else f"{row.cpu_rate:.2f}", str(row.build_threads)]


def write_csv(path: Path, rows: list[Row], lines: list[str]) -> None:
    """All rows, after `#` lines with the facts."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.writelines(f"# {line}\n" for line in lines)
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(map(cells, rows))


def align(table: list[list[str]], num_left: int) -> list[str]:
    """Lines of a Markdown table, aligned; the first columns to the left, the others right."""
    widths = [max(3, *(len(row[i]) for row in table)) for i in range(len(table[0]))]
    rule = ["-" * w if i < num_left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    padded = [[cell.ljust(w) if i < num_left else cell.rjust(w)
               for i, (cell, w) in enumerate(zip(row, widths))] for row in table]
    return ["| " + " | ".join(row) + " |" for row in [padded[0], rule, *padded[1:]]]


def bytes_text(row: Row) -> str:
    """Bytes a vector: code + raw rows for refinement."""
    raw = f"+{row.raw_bytes:.0f}" if row.raw_bytes else ""
    return f"{row.code_bytes:.0f}{raw}"


def table_of(task: Task, rows: list[Row]) -> list[str]:
    """The table in Markdown."""
    head = ["engine", "series", "point", "setting", "batch", task.recall_name, "queries/s",
            "of CPU time", "one at a time q/s", "building s", "B/vector"]
    body = [[row.engine, row.series, row.point, row.setting, size_text(row.batch),
             f"{row.recall:.4f}", f"{row.rate:.0f}",
             "" if row.cpu_rate is None else f"{row.cpu_rate:.0f}",
             "" if row.single_rate is None else f"{row.single_rate:.0f}",
             f"{row.build_seconds:.1f}", bytes_text(row)] for row in rows]
    return align([head, *body], 4)


def fastest(rows: list[Row], pattern: str) -> Row | None:
    """The fastest row of series whose name begins so, among those that reach the target."""
    good = [x for x in rows if re.match(pattern, x.name) and x.recall >= TARGET_RECALL]
    return max(good, key=lambda x: x.rate, default=None)


def ratios_of(rows: list[Row]) -> list[str]:
    """bitsweep's rates over those of peers, all at the target recall or above; in Markdown."""
    peers = {"Flat": "faiss Flat$", "RaBitQfs4": "faiss .*RaBitQfs4", "HNSW32": "faiss HNSW32",
             "hnswlib": "hnswlib ", "SVS": "svs ", "ScaNN": "scann "}
    found = [fastest(rows, pattern) for pattern in peers.values()]
    head = ["bitsweep series", "point", "queries/s"]
    for peer, row in zip(peers, found):
        name = f"{row.series} {row.point}".rstrip() if row else peer
        head.append(f"/ {name} ({row.rate:.0f})" if row else f"/ {name}")
    table = [head]
    for name in dict.fromkeys(x.name for x in rows if x.engine == "bitsweep"):
        own = fastest(rows, re.escape(name) + "$")
        if own is None:
            table.append([name[9:], f"none at {TARGET_RECALL}", ""] + [""] * len(peers))
            continue
        table.append([own.series, own.point, f"{own.rate:.0f}"] +
                     [f"{own.rate / row.rate:.2f}" if row else "none" for row in found])
    return align(table, 2) if len(table) > 1 else []


def targets_of(rows: list[Row]) -> list[str]:
    """Every engine's rate at each target, best first, by the clock and of CPU time; in Markdown."""
    table = [["recall", "engine", "series", "point", "how", "queries/s", "of CPU time"]]
    for target in TARGETS:
        found = [(name, reach(own, target), reach(by_cpu_time(own), target))
                 for name, own in engine_rows(rows).items()]
        for name, at, cpu in sorted(found, key=lambda x: -(x[1].rate if x[1] else 0)):
            place = [at.series, at.point, at.how, f"{at.rate:.0f}"] if at else ["none", "", "", ""]
            table.append([f"{target}", name, *place, f"{cpu.rate:.0f}" if cpu else ""])
    return align(table, 5)


def reached(rows: list[Row]) -> dict[str, dict[str, dict[str, object] | None]]:
    """Every engine's rate at each target, as a document."""
    return {name: {str(x): at and asdict(at) for x in TARGETS for at in [reach(own, x)]}
            for name, own in engine_rows(rows).items()}


def write_json(task: Task, rows: list[Row], lines: list[str]) -> None:
    """All rows, the rates at the targets, and the facts."""
    data = {"facts": lines, "rows": [asdict(x) for x in rows], "targets": reached(rows),
            "targets_of_cpu_time": reached(by_cpu_time(rows))}
    (task.out / "results.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def write_plot(task: Task, groups: dict[str, list[Row]], script: str, out: str) -> None:
    """OUT.svg and OUT.png: the best points of every group, a data block each."""
    path = task.out / f"{out}.dat"
    with open(path, "w", encoding="utf-8") as file:
        for name, rows in groups.items():
            file.write(f'"{name}"\n')
            file.writelines(f"{x.recall:.6f} {x.rate:.3f}\n" for x in best_points(rows))
            file.write("\n\n")
    num_peers = sum(not name.startswith("bitsweep") for name in groups)
    title = (f"{Path(task.base).name}: {task.num_rows} rows, {task.dims} dims, {task.metric}, "
             f"threads {task.threads}, batch {batch_text(task)}"
             + (", of CPU time" if task.takes_cpu_time and out == "engines" else ""))
    values = {"data": str(path), "out": str(task.out / out), "title_text": title,
              "recall_name": task.recall_name}
    command = ["gnuplot"]
    for key, value in values.items():
        command += ["-e", f"{key}='{value}'"]
    command += ["-e", f"num_series={len(groups)}; num_peers={num_peers}", str(HERE / script)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise PeerError(f"gnuplot: {last_line(ended.stderr)}")


def series_rows(rows: list[Row]) -> dict[str, list[Row]]:
    """Rows by engine and series, in the table's order."""
    return {name: [x for x in rows if x.name == name]
            for name in dict.fromkeys(x.name for x in rows)}


def write_report(task: Task, faiss: FaissEngine, rows: list[Row], notes: list[str]) -> str:
    """Writes all files; returns the text of results.md."""
    lines = facts(task, faiss)
    write_csv(task.out / "results.csv", rows, lines + notes)
    write_json(task, rows, lines + notes)
    text = ["# bitsweep beside its peers", "", "```", *lines, *notes, "```", "",
            f"Every engine at given {task.recall_name}: between two neighbouring points of one "
            "series (rates in logarithms), or the first point where a series begins above:", "",
            *targets_of(rows), "", *table_of(task, rows), ""]
    ratios = ratios_of(rows)
    if ratios:
        text += [f"Ratios of queries/s, each the fastest point with {task.recall_name} >= "
                 f"{TARGET_RECALL}:", "", *ratios, ""]
    if faiss.trials:
        text += ["Trials of FAISS Flat (queries/s, setting):", "", "```", *faiss.trials, "```"]
    (task.out / "results.md").write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    write_plot(task, series_rows(rows), "peer_recall.gnuplot", "recall")
    timed = by_cpu_time(rows) if task.takes_cpu_time else rows
    write_plot(task, engine_rows(timed), "peer_engines.gnuplot", "engines")
    return "\n".join(text)
