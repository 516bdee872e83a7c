#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cuVS (CAGRA, IVF-PQ with refinement, brute force), FAISS and torch on a GPU, as far as they are
installed, and bitsweep beside them: recall, queries/s by batch size, seconds to build, bytes.

Prints a table, writes a JSON line a measurement (--json) and a picture of recall against queries/s
of the largest batches (--plot, by gnuplot). Rows are generated as `synth:` with a spectrum has
them, or come from files. The true rows are those of the first brute force of float32 that agrees
with numpy on a few queries. One step of bench/gpu_check.sh; or by itself.

usage: gpu_peers.py [--rows N] [--dims D] [--base FILE --queries FILE] [--batches N,N,...] [--k K]
                    [--only PATTERN] [--bitsweep PROGRAM] [--json FILE] [--plot PATH]

Wants numpy, and torch, faiss-gpu-cu12, or cuvs-cu12 and cupy-cuda12x, from PyPI.
Exit codes: 0 done, 1 an engine failed or found other rows, 2 usage, 77 there is none.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # which python3 -I leaves out

# pylint: disable-next=wrong-import-position
from gpu_engines import Engine, Series, Wish, find_engines  # noqa: E402

CHECKED = 8  # queries whose true rows numpy finds
LEAST_FOUND = 0.98  # of the true rows: products of rounded floats change places now and then
CHUNK_ROWS = 1 << 18
LEAST_QUERIES = 100  # of a pass in small batches
SPECTRUM = 0.625  # of generated rows: SIFT's, about


def generate(numpy: Any, options: Any) -> tuple[Any, Any]:
    """Rows and queries whose dimensions' deviations fall as (i + 1)^-SPECTRUM."""
    random = numpy.random.default_rng(options.seed)
    weights = (numpy.arange(1, options.dims + 1)**-SPECTRUM).astype(numpy.float32)
    rows = random.standard_normal((options.rows, options.dims), numpy.float32)
    queries = random.standard_normal((max(options.batches), options.dims), numpy.float32)
    rows *= weights
    queries *= weights
    return rows, queries


def read(numpy: Any, path: str, most: int | None) -> Any:
    """The vectors of a .fbin or .u8bin file, or the first so many."""
    kind = {".fbin": numpy.float32, ".u8bin": numpy.uint8}.get(Path(path).suffix)
    if kind is None:
        raise ValueError(f"{path}: .fbin or .u8bin are read")
    count, dims = (int(x) for x in numpy.fromfile(path, numpy.uint32, 2))
    count = count if most is None else min(count, most)
    return numpy.fromfile(path, kind, count * dims, offset=8).reshape(count, dims)


def nearest(numpy: Any, rows: Any, queries: Any, k: int) -> Any:
    """Ids of the nearest k rows, from float32 values, a chunk of rows at a time."""
    asked = queries.astype(numpy.float32)
    values = []
    for first in range(0, len(rows), CHUNK_ROWS):
        some = rows[first:first + CHUNK_ROWS].astype(numpy.float32)
        values.append((some**2).sum(1)[:, None] - 2 * some @ asked.T)
    return numpy.argpartition(numpy.concatenate(values), k - 1, axis=0)[:k].T


def share_found(ids: Any, truth: Any) -> float:
    """The share of the true rows that were found."""
    return sum(len(set(a.tolist()) & set(t.tolist())) for a, t in zip(ids, truth)) / truth.size


def point_text(point: dict[str, Any]) -> str:
    """`itopk 64`"""
    return ", ".join(f"{key} {value}" for key, value in point.items())


class Comparison:
    """All measurements over the same rows, as they come."""

    def __init__(self, numpy: Any, options: Any) -> None:
        self.numpy, self.options = numpy, options
        if options.base:
            self.rows = read(numpy, options.base, None)
            self.queries = read(numpy, options.queries, max(options.batches))
        else:
            self.rows, self.queries = generate(numpy, options)
        self.few = nearest(numpy, self.rows, self.queries[:CHECKED], options.k)
        self.truth: Any = None
        self.lines: list[dict[str, Any]] = []
        self.num_failed = 0
        if options.json:
            Path(options.json).write_text("", encoding="utf-8")

    def wanted(self, engine: Engine) -> list[Series]:
        """Series of the engine that --only asks for."""
        return [x for x in engine.series if re.search(self.options.only, f"{engine.name} {x.name}")]

    def find_truth(self, engines: list[Engine]) -> None:
        """By the first engine that has it right where numpy has looked."""
        for engine in engines:
            for series in (x for x in engine.series if x.is_exact and x.name.endswith("float32")):
                try:
                    ids = engine.search(engine.build(self.rows, series), self.queries,
                                        self.options.k, {})
                except Exception as error:  # pylint: disable=broad-except  # of any library
                    print(f"# {engine.name}, {series.name}: {type(error).__name__}: {error}")
                    continue
                finally:
                    engine.forget()
                if share_found(ids[:CHECKED], self.few) >= LEAST_FOUND:
                    print(f"# true rows: {engine.name}, {series.name}")
                    self.truth = self.numpy.asarray(ids)
                    return
        print(f"# true rows: numpy, of {len(self.few)} queries alone")
        self.truth = self.few

    def put(self, line: dict[str, Any]) -> None:
        """A row of the table, and of the file."""
        self.lines.append(line)
        size = "-" if line["bytes_per_row"] is None else f"{line['bytes_per_row']:.0f}"
        print(f"| {line['engine']} | {line['series']} | {line['point']} | {line['batch']} | "
              f"{line['recall']:.4f} | {line['queries_per_second']:.0f} | "
              f"{line['seconds_a_batch'] * 1e3:.3f} | {line['build_seconds']:.1f} | {size} |",
              flush=True)
        if self.options.json:
            with open(self.options.json, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def measure_point(self, engine: Engine, series: Series, index: Any, point: dict[str, Any],
                      facts: dict[str, Any]) -> None:
        """All batch sizes, the largest first, whose recall is the point's."""
        options = self.options
        for batch in sorted(options.batches, reverse=True):
            some = self.queries[:max(batch, LEAST_QUERIES)]
            ids, seconds = engine.measure(
                index, some, point, Wish(batch, options.k, options.repeat, options.seconds))
            found = share_found(ids, self.truth[:len(some)])
            if series.is_exact and found < LEAST_FOUND:
                self.num_failed += 1
            passes = -(-len(some) // batch)
            self.put({"engine": engine.name, "series": series.name, "point": point_text(point),
                      "batch": batch, "queries": len(some), "k": options.k, "recall": found,
                      "queries_per_second": len(some) / seconds,
                      "seconds_a_batch": seconds / passes, "rows": len(self.rows),
                      "dims": self.rows.shape[1], **facts})

    def measure_series(self, engine: Engine, series: Series) -> None:
        """An index at all points that have room for k."""
        engine.forget()
        before, start = engine.used_bytes(), time.perf_counter()
        index = engine.build(self.rows, series)
        facts: dict[str, Any] = {"build_seconds": time.perf_counter() - start,
                                 "bytes_per_row": None}
        after = engine.used_bytes()
        if before is not None and after is not None:
            facts["bytes_per_row"] = (after - before) / len(self.rows)
        for point in series.points:
            if point.get("itopk", self.options.k) >= self.options.k:
                self.measure_point(engine, series, index, point, facts)

    def run(self, engines: list[Engine]) -> None:
        """One that fails does not keep the next from running."""
        self.find_truth(engines)
        print("| engine | index | search | batch | recall | queries/s | ms a batch | build s | "
              "bytes/row |")
        print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for engine in engines:
            for series in self.wanted(engine):
                try:
                    self.measure_series(engine, series)
                except Exception as error:  # pylint: disable=broad-except  # of any library
                    print(f"{engine.name}, {series.name}: {type(error).__name__}: {error}")
                    self.num_failed += 1

    def plot(self, path: str) -> str:
        """PATH.svg and PATH.png: a line a series, bitsweep's last; returns what went wrong."""
        most = max(self.options.batches)
        groups: dict[str, list[tuple[float, float]]] = {}
        for line in sorted(self.lines, key=lambda x: x["engine"].startswith("bitsweep")):
            if line["batch"] == most:
                groups.setdefault(f"{line['engine']} {line['series']}", []).append(
                    (line["recall"], line["queries_per_second"]))
        data = Path(f"{path}.dat")
        data.write_text("".join(
            f'"{name}"\n' + "".join(f"{x:.6f} {y:.3f}\n" for x, y in sorted(points)) + "\n\n"
            for name, points in groups.items()), encoding="utf-8")
        if not shutil.which("gnuplot"):
            return f"gnuplot is missing: {data} has what is to be drawn"
        num_peers = sum(not name.startswith("bitsweep") for name in groups)
        title = f"{len(self.rows)} rows, {self.rows.shape[1]} dims, l2, batch {most}"
        k = self.options.k
        command = ["gnuplot", "-e", f"data='{data}'; out='{path}'; title_text='{title}'", "-e",
                   f"recall_name='{k}-recall@{k}'; num_series={len(groups)}; "
                   f"num_peers={num_peers}", str(HERE / "peer_engines.gnuplot")]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        return ended.stderr.strip() if ended.returncode else ""


def parse(arguments: list[str] | None) -> Any:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dims", type=int, default=96)
    parser.add_argument("--base", help="a .fbin or .u8bin file in place of --rows and --dims")
    parser.add_argument("--queries", help="with --base: the same")
    parser.add_argument("--batches", default="1,10,100,1000,10000",
                        type=lambda text: [int(x) for x in text.split(",")])
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5,
                        help="no further pass of a measurement after these")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="part of 'engine series', as 'CAGRA|torch'")
    parser.add_argument("--bitsweep", help="the program, to be measured on the same rows")
    parser.add_argument("--device", default="cuda:0", help="of bitsweep")
    parser.add_argument("--json", help="a line for every measurement goes there")
    parser.add_argument("--plot", help="PATH.svg, PATH.png and their data")
    options = parser.parse_args(arguments)
    if min(options.rows, options.dims, options.k, options.repeat, *options.batches) < 1:
        parser.error("numbers from 1 on")
    if options.k > options.rows:
        parser.error("--k is more than --rows")
    if bool(options.base) != bool(options.queries):
        parser.error("--base and --queries go together")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Measures every engine that is here."""
    options = parse(arguments)
    engines, missing = find_engines(options.bitsweep, options.device)
    for why in missing:
        print(f"# without {why}")
    if not engines:
        print("gpu_peers.py: skipped: neither torch, FAISS nor cuVS can use a GPU here")
        return 77
    import numpy  # pylint: disable=import-outside-toplevel  # engines want it, too

    try:
        comparison = Comparison(numpy, options)
    except (OSError, ValueError) as error:
        print(f"gpu_peers.py: {error}", file=sys.stderr)
        return 2
    print(f"# {len(comparison.rows)} rows, {comparison.rows.shape[1]} dims, k {options.k}, "
          "metric l2\n")
    comparison.run(engines)
    for engine in engines:
        getattr(engine, "close", lambda: None)()
    why_not = comparison.plot(options.plot) if options.plot and comparison.lines else ""
    if why_not:
        print(f"# no picture: {why_not}")
    print(f"\ngpu_peers.py: {len(engines)} engines, {comparison.num_failed} failures")
    return 1 if comparison.num_failed else 0


if __name__ == "__main__":
    sys.exit(main())
