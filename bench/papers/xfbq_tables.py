#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the paper on XFBQ measures, for rows of a file: errors, precision, scale, extra distance, lists, other engines.

usage: xfbq_tables.py --base FILE --queries FILE [--out FOLDER] [--rows N] [--num-queries N] [--peers]

Tables in Markdown on stdout. Precision@k is the share of the true k among the first k by code alone, or refined: among
the first 5 k, which exact values then put in order. Needs bitsweep on the PATH and NumPy; --peers needs faiss and the
library (BITSWEEP_LIBRARY): one thread, CPU seconds of this process, the least of five turns, an engine after the other.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "peers"), str(ROOT / "python")]
from paper_tables import line, run, table  # noqa: E402
from peer_vectors import open_vectors, read_result  # noqa: E402

KS = (1, 10, 100, 1000)
LISTS, PROBES = 256, (4, 16, 64, 256)
SHARES = (0, 0.01, 0.02, 0.05, 0.08, 0.1)  # of the range of distances
TURNS = 5


class Corpus:
    """Base and queries as files, with the true neighbours under cosine."""

    def __init__(self, asked):
        self.base, self.queries = "base.fbin", "queries.fbin"
        for name, out, rows in ((asked.base, self.base, asked.rows), (asked.queries, self.queries, asked.num_queries)):
            run("convert", "--in", name, "--out", out, "--type", "float32", "--rows", f":{rows}", "--force", "--quiet")
        self.rows = open_vectors(self.base).astype(np.float32)
        self.asked = open_vectors(self.queries).astype(np.float32)
        self.ks = [k for k in KS if 5 * k <= len(self.rows)]
        run("groundtruth", "--base", self.base, "--queries", self.queries, "--metric", "cosine", "--k", self.ks[-1],
            "--out", "truth", "--force", "--quiet")
        self.truth = read_result(Path("truth"))[0]

    def encode(self, *options):
        run("encode", "--base", self.base, "--metric", "cosine", "--codec", "xfbq", "--index", "index", "--check", "off",
            "--force", "--quiet", *options)

    def scale(self):
        return float(next(x for x in run("info", "index").replace("scale ", "scale=").split() if x.startswith("scale="))
                     .strip("scale=,"))

    def search(self, k, *options):
        said = run("search", "--index", "index", "--queries", self.queries, "--k", k, "--out", "result", "--force",
                   "--quiet", "--json", *options)
        return read_result(Path("result"))[0], json.loads(said)

    def precision(self, ids, k, width):
        return np.mean([len(np.intersect1d(t[:k], found[:width])) / k for t, found in zip(self.truth, ids)])

    def precisions(self, *options):
        ids, _ = self.search(5 * self.ks[-1], "--refine", "none", *options)
        return [self.precision(ids, k, times * k) for times in (1, 5) for k in self.ks]


# ---- section 3.5: lengths and angles ----


def quantize(x, scale, bits):
    """The odd multiples of 2^-bits that the greedy rule gives, over the scale."""
    half = 2.0 ** (bits - 1)
    return (2 * np.clip(np.floor(x * scale * half), -half, half - 1) + 1) / (2 * half) / scale


def angles(a, b):
    dots = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return np.degrees(np.arccos(np.clip(dots, -1, 1)))


def errors(corpus):
    sample = corpus.rows[:: max(1, len(corpus.rows) // 4000)].astype(np.float64)
    unit = sample / np.linalg.norm(sample, axis=1, keepdims=True)
    near = corpus.rows[corpus.truth[:, :2].ravel()].astype(np.float64)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((unit.shape[1],) * 2))[0]
    table("errors of codes", "scale", "length", "spread of it", "angle to the row", "change of a near pair's angle")
    for name, frame in (("as they are", np.eye(len(turn))), ("rotated", turn)):
        x, pairs = unit @ frame, near @ frame
        sizes = np.abs(x)
        for kind, scale in (("1", 1.0), ("1 / 0.98 quantile", 1 / np.quantile(sizes, 0.98)), ("1 / largest", 1 / sizes.max())):
            for bits in (3, 4):
                codes = quantize(x, scale, bits)
                lengths = np.linalg.norm(codes, axis=1)
                turned = angles(*(quantize(pairs[i::2], scale, bits) for i in (0, 1)))
                line(f"{bits} bits, {name}, scale {kind}", f"{scale:.2f}", f"{lengths.mean():.3f}",
                     f"{lengths.std() / lengths.mean():.3f}", f"{angles(x, codes).mean():.1f}",
                     f"{np.abs(turned - angles(pairs[::2], pairs[1::2])).mean():.1f}")


# ---- section 5: bits, scales; 3.6: extra distance ----


def bits_and_scales(corpus):
    columns = [f"@{k}" for k in corpus.ks] + [f"@{k}, refined" for k in corpus.ks]
    table("document bits x query bits, rotation", *columns)
    for rotation in ("random", "none"):
        for bits in (1, 2, 3, 4):
            corpus.encode("--bits", bits, "--rotation", rotation)
            for query_bits in (2, 3, 4, 6) if rotation == "random" else (4,):
                line(f"{bits} x {query_bits}, {rotation}", *corpus.precisions("--query-bits", query_bits))
    corpus.encode("--bits", 3)
    own, name = corpus.scale(), run("info", "index").split("rotation ")[1].split()[0]
    table(f"scale, 3 x 4 bits, rotation {name}", *columns)
    for share in (0.4, 0.6, 0.8, 1, 1.5, 2.5):
        corpus.encode("--bits", 3, "--scale", own * share)
        line(f"{own * share:.2f}{', the default' if share == 1 else ''}", *corpus.precisions("--query-bits", 4))


def extra_distances(corpus):
    corpus.encode("--bits", 3)
    scale, k = corpus.scale(), 10
    reach = 2 ** (3 + 4) * scale**2  # of similarities from -1 to 1
    table(f"E, of a range of {reach:.0f} (scale {scale:.2f})", "share of it", "precision@10", "candidates a query")
    for share in SHARES:
        ids, facts = corpus.search(k, "--query-bits", 4, "--extra-distance", f"{100 * share:g}%")
        line(facts["extra_distance"], f"{100 * share:g} %", corpus.precision(ids, k, k), f"{facts['survivors'] / len(ids):.0f}")


def lists(corpus):
    table(f"{LISTS} lists, 3 x 4 bits, lists looked at", *[f"@{k}, refined" for k in corpus.ks[:3]], "rows a query")
    corpus.encode("--bits", 3, "--lists", LISTS, "--calibrate", "off")
    for probe in PROBES:
        figures = []
        for k in corpus.ks[:3]:
            ids, facts = corpus.search(k, "--query-bits", 4, "--probe", probe)
            figures.append(corpus.precision(ids, k, k))
        line(probe, *figures, f"{facts['rows_a_query']:.0f}")


# ---- figures 5 and 6: other engines ----


def engines(corpus):
    """Name, bytes a row, search of all queries."""
    import bitsweep
    import faiss

    faiss.omp_set_num_threads(1)
    base, queries = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (corpus.rows, corpus.asked))
    dims, ip = base.shape[1], faiss.METRIC_INNER_PRODUCT
    flat = faiss.IndexFlatIP(dims)
    flat.add(base)
    yield "brute force (FAISS Flat)", 4 * dims, lambda: flat.search(queries, 10)[1]
    for kind, options in (("3 x 4 bits", {}), (f"3 x 4 bits, {LISTS} lists", {"lists": LISTS, "calibrate": "off"})):
        folder = f"engine{len(options)}"
        run("encode", "--base", corpus.base, "--metric", "cosine", "--codec", "xfbq", "--bits", 3, "--index", folder,
            "--check", "off", "--force", "--quiet", *(x for name in options for x in (f"--{name}", options[name])))
        index = bitsweep.Index(folder, threads=1)
        for probe in (16, 64) if options else (None,):
            name = f"xfbq, {kind}, 50 refined" + (f", {probe} looked at" if probe else "")
            yield name, index.info["bytes_per_vector"], lambda index=index, probe=probe: index.search(
                corpus.asked, k=10, query_bits=4, probe=probe)[1]
    for text in (f"IVF{LISTS},Flat", f"IVF{LISTS},PQ{dims // 4}", "HNSW32"):
        index = faiss.index_factory(dims, text, ip)
        index.train(base)
        index.add(base)
        for effort in (16, 64):
            name = "efSearch" if text.startswith("HNSW") else "nprobe"

            def search(index=index, name=name, effort=effort):
                faiss.ParameterSpace().set_index_parameter(index, name, effort)
                return index.search(queries, 10)[1]

            size = {"F": 4 * dims + 8, "P": dims // 4 + 8}.get(text.split(",")[-1][0], 4 * dims + 4 * 64 + 16)
            yield f"FAISS {text}, {name} {effort}", size, search


def peers(corpus):
    found = [(*engine, []) for engine in engines(corpus)]
    for _ in range(TURNS):
        for *_, search, seconds in found:
            start = time.process_time()
            search()
            seconds.append(time.process_time() - start)
    table("engine", "bytes a row of code", "precision@10", "rate over brute force")
    for name, size, search, seconds in found:
        line(name, f"{size:g}", corpus.precision(search(), 10, 10), f"{min(found[0][-1]) / min(seconds):.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default=ROOT / "tests" / "data" / "sift20k_base.u8bin", type=os.path.abspath)
    parser.add_argument("--queries", default=ROOT / "tests" / "data" / "sift20k_query.u8bin", type=os.path.abspath)
    parser.add_argument("--out", default="xfbq_tables")
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--num-queries", type=int, default=200)
    parser.add_argument("--peers", action="store_true")
    asked = parser.parse_args()
    os.makedirs(asked.out, exist_ok=True)
    os.chdir(asked.out)
    corpus = Corpus(asked)
    print(f"{Path(asked.base).name}: {len(corpus.rows)} rows x {corpus.rows.shape[1]} dims, {len(corpus.asked)} queries, cosine")
    errors(corpus)
    bits_and_scales(corpus)
    extra_distances(corpus)
    lists(corpus)
    if asked.peers:
        peers(corpus)


main()
