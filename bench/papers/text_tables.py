#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Text retrieval by codes of 64 dims: CDSSM in floats, RBE trained with it, plain codes of the floats, word search.

usage: text_tables.py --pairs FILE [--out FOLDER] [--held-out N] [--epochs N] [--seeds 1,2,3] [--frozen]

Lines of FILE: query, tab, document and perhaps tab, group; pairs of a group (without one: of a document) are held out
together, N groups of them. A held-out query counts as found where its document is first (1-recall@1) or among ten,
of the held-out documents and of all documents there are. Needs bitsweep on the PATH, NumPy, and SQLite with FTS5.
"""

import argparse
import collections
import json
import os
import random
import re
import sqlite3
import statistics
import sys

import numpy as np

from paper_tables import run

DIMS = 64
# Name and bits of documents, options: 2 bits are the paper's rbe*, queries in floats its m_5.
RBE = (("RBE, 1 bit", 1, ("--query-planes", 1, "--document-planes", 1)),
       ("RBE, 2 bits (3 of queries)", 2, ("--query-planes", 3, "--document-planes", 2)),
       ("RBE, 2 bits, queries in floats", 2, ("--precision", "query-float", "--document-planes", 2)),
       ("RBE, 3 bits", 3, ("--query-planes", 3, "--document-planes", 3)))


def split(path, num_held_out, folder):
    """Files of pairs to train on, of held-out queries and their documents, of all documents; sizes."""
    groups = collections.defaultdict(list)
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            query, document, *rest = line.rstrip("\n").split("\t")
            groups[rest[0] if rest else document].append((query, document))
    names = sorted(groups)
    random.Random(7).shuffle(names)
    held_out, trained = names[:num_held_out], names[num_held_out:]
    first = [groups[name][0] for name in held_out]
    others = list(dict.fromkeys(d for name in trained for _, d in groups[name]))
    pairs = [f"{q}\t{d}" for name in trained for q, d in groups[name]]
    documents = [d for _, d in first]
    for name, rows in {"train.tsv": pairs, "queries.txt": [q for q, _ in first], "few.txt": documents,
                       "all.txt": documents + others}.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            out.write("\n".join(rows) + "\n")
    return len(pairs), len(first), len(documents) + len(others)


def read_lines(path):
    with open(path, encoding="utf-8") as lines:
        return lines.read().split("\n")[:-1]


def shares(ids):
    """Query i belongs to document i."""
    right = np.asarray(ids) == np.arange(len(ids))[:, None]
    return right[:, 0].mean(), right[:, :10].any(axis=1).mean()


def found(path):
    with open(path, "rb") as file:
        data = file.read()
    queries, k = np.frombuffer(data, "<u4", 2)
    return np.frombuffer(data, "<i4", queries * k, 8).reshape(queries, k)


# ---- words and trigrams ----


def by_words(queries, documents):
    table = sqlite3.connect(":memory:")
    table.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize = 'unicode61')")
    table.executemany("INSERT INTO t (rowid, text) VALUES (?, ?)", enumerate(documents))
    ids = []
    for query in queries:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query)) or '""'
        rows = table.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t), rowid LIMIT 10", (words,))
        ids.append(([row[0] for row in rows] + [-1] * 10)[:10])
    return ids


def trigrams(text):
    words = re.findall(r"[^\W_]+", text.casefold())
    return collections.Counter(f"#{w}#"[i:i + 3] for w in words for i in range(len(w)))


def by_trigrams(queries, documents):
    numbers, lists, norms = {}, collections.defaultdict(list), []
    for at, text in enumerate(documents):
        bag = trigrams(text)
        norms.append(sum(n * n for n in bag.values()) ** 0.5 or 1)
        for gram, count in bag.items():
            lists[numbers.setdefault(gram, len(numbers))].append((at, count))
    lists = {g: np.array(rows).T for g, rows in lists.items()}
    ids, norms = [], np.array(norms)
    for query in queries:
        scores = np.zeros(len(documents))
        for gram, count in trigrams(query).items():
            if gram in numbers:
                rows, counts = lists[numbers[gram]]
                scores[rows] += count * counts
        ids.append(np.argsort(-scores / norms, kind="stable")[:10])
    return ids


# ---- codes ----


def train(seed, name, options, epochs, batch):
    words = ["train", "--model", f"{name}.rbe", "--code-dims", DIMS, "--epochs", epochs, "--batch", batch, "--seed", seed,
             "--patience", 3, "--force", "--quiet", "--json", *options]
    return json.loads(run(*words))["train_seconds"]


def floats(name, out, *options):
    """Rows of texts by the model of floats."""
    run("convert", "--in", name, "--out", f"{out}.fbin", "--model", "float.rbe", "--force", "--quiet", *options)


def search(base, model, *encode, queries="queries.txt"):
    run("encode", "--base", base, "--model", model, "--index", "index", "--force", "--quiet", *encode)
    run("search", "--index", "index", "--queries", queries, "--k", 10, "--refine", "none", "--out", "result",
        "--force", "--quiet")
    return shares(found("result"))


def exact(corpus, model):
    run("groundtruth", "--base", f"{corpus}.txt", "--queries", "queries.txt", "--model", model, "--metric", "cosine",
        "--k", 10, "--out", "truth", "--force", "--quiet")
    return shares(found("truth"))


def measure_frozen(seed, note):
    """RBE on rows that the model of floats has made, from a quantizer on: the paper's Figure 5."""
    floats("train.tsv:1", "train_queries", "--as-queries")
    floats("train.tsv:2", "train_documents")
    floats("queries.txt", "queries", "--as-queries")
    for corpus in ("few", "all"):
        floats(f"{corpus}.txt", corpus)
    for name, bits, options in RBE:
        seconds = train(seed, "frozen", ["--queries", "train_queries.fbin", "--documents", "train_documents.fbin",
                                         "--start", "quantizer", *options], 5, 512)
        note(f"over the floats: {name}", DIMS * bits // 8, lambda corpus: search(
            f"{corpus}.fbin", "frozen.rbe", "--codec", "rbe", queries="queries.fbin"), seconds)


def measure_seed(seed, asked, note):
    text = ["--text", "train.tsv", "--trigrams", asked.trigrams]
    seconds = train(seed, "float", [*text, "--precision", "float"], asked.epochs, asked.batch)
    note("CDSSM, float", 4 * DIMS, lambda corpus: exact(corpus, "float.rbe"), seconds)
    if asked.frozen:
        measure_frozen(seed, note)
    for name, bits, options in RBE if not asked.frozen else ():
        seconds = train(seed, "codes", [*text, *options], asked.epochs, asked.batch)
        note(name, DIMS * bits // 8, lambda corpus: search(f"{corpus}.txt", "codes.rbe", "--codec", "rbe"), seconds)
    for bits in (1, 2, 3):
        for codec in ("xfbq", "saq"):
            note(f"{codec} of the floats, {bits} bits", DIMS * bits // 8, lambda corpus, codec=codec, bits=bits: search(
                f"{corpus}.txt", "float.rbe", "--codec", codec, "--metric", "cosine", "--bits", bits, "--check", "off"), 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", required=True)
    parser.add_argument("--out", default="text_tables")
    parser.add_argument("--held-out", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--trigrams", type=int, default=49292)
    parser.add_argument("--frozen", action="store_true", help="RBE on the rows of CDSSM, not trained as one with it")
    asked = parser.parse_args()
    os.makedirs(asked.out, exist_ok=True)
    sizes = split(asked.pairs, asked.held_out, asked.out)
    os.chdir(asked.out)
    queries, table = read_lines("queries.txt"), collections.defaultdict(list)

    def note(name, num_bytes, find, seconds):
        row = [value for corpus in ("few", "all") for value in find(corpus)]
        table[name, num_bytes].append((*row, seconds))
        print(name, " ".join(f"{value:.4f}" for value in row), f"{seconds:.0f} s", file=sys.stderr, flush=True)

    note("trigrams, cosine", "", lambda corpus: shares(by_trigrams(queries, read_lines(f"{corpus}.txt"))), 0)
    note("BM25 of words", "", lambda corpus: shares(by_words(queries, read_lines(f"{corpus}.txt"))), 0)
    for seed in asked.seeds.split(","):
        measure_seed(seed, asked, note)
    print(f"{sizes[0]} pairs, {sizes[1]} held-out queries, {sizes[2]} documents; means of seeds {asked.seeds}, largest "
          "deviation from them in brackets\n")
    print(f"| | bytes | @1 of {sizes[1]} | @10 | @1 of {sizes[2]} | @10 | s |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for (name, num_bytes), rows in table.items():
        columns = list(zip(*rows))
        figures = [f"{statistics.mean(c):.3f}" + (f" ({max(abs(x - statistics.mean(c)) for x in c):.3f})"
                                                  if len(c) > 1 else "") for c in columns[:4]]
        print(f"| {name} | {num_bytes} | {' | '.join(figures)} | {statistics.mean(columns[4]):.0f} |")


main()
