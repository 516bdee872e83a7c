#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JUNO's figures 4 and 5, of an index: which entries the codes of the true 100 nearest use.

(a) the share of a subspace's entries that the codes of a query's true 100 use; (b) the share of
these codes that lie among the nearest entries of the query's projection, less the centroid of the
row's own list. Two tables in Markdown on stdout.

usage: entry_use.py INDEX BASE QUERIES TRUTH [QUERIES_USED]
of an index of encode --metric l2 --codec pq --entries radius --rotation none --lists N.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from peer_vectors import open_vectors, read_result  # noqa: E402
from radius_picture import read_index  # noqa: E402

K = 100
SHARES = (0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0)


class Codes:
    """What codes are a function of."""

    def __init__(self, folder: str):
        index = read_index(folder)
        self.num, self.parts = index["num"], index["parts"]
        self.centroids = np.array(index["centroids"], np.float32).reshape(index["lists"], -1)
        entries = np.array(index["entries"], np.float32).reshape(self.parts, 2, self.num)
        self.x, self.y = entries[:, 0], entries[:, 1]

    def squares(self, points: np.ndarray) -> np.ndarray:
        """Squared distances of points [n][dims] to all entries: [n][parts][entries]."""
        at = points.reshape(len(points), self.parts, 2)
        return (at[..., :1] - self.x) ** 2 + (at[..., 1:] - self.y) ** 2

    def lists(self, rows: np.ndarray) -> np.ndarray:
        """Each row's list."""
        norms = (self.centroids.astype(np.float64) ** 2).sum(1)
        return (norms - 2 * rows.astype(np.float64) @ self.centroids.T).argmin(1)


def of_query(codes: Codes, rows: np.ndarray, query: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many entries its rows' codes use, [parts]; and how many entries lie nearer to the query
    than each code does, [rows][parts]."""
    centroids = codes.centroids[codes.lists(rows)]
    used = codes.squares(rows - centroids).argmin(2)
    distinct = np.array([len(np.unique(part)) for part in used.T])
    squares = codes.squares(query - centroids)
    own = np.take_along_axis(squares, used[..., None], 2)
    return distinct, (squares < own).sum(2)


def main() -> int:
    """Both tables."""
    if len(sys.argv) < 5:
        print(f"usage: {__doc__.split('usage: ')[1].splitlines()[0]}", file=sys.stderr)
        return 2
    codes = Codes(sys.argv[1])
    base, queries = (open_vectors(path) for path in sys.argv[2:4])
    truth = read_result(Path(sys.argv[4]))[0][:, :K]
    num = min(int(sys.argv[5]) if len(sys.argv) > 5 else len(truth), len(truth))
    distinct, nearer = [], []
    for query, ids in zip(queries[:num], truth[:num]):
        found = of_query(codes, base[np.sort(ids)].astype(np.float32), query.astype(np.float32))
        distinct.append(found[0])
        nearer.append(found[1])
    used = np.array(distinct) / codes.num
    print("| entries used by the true 100 | least subspace | mean | largest subspace |")
    print("| --- | ---: | ---: | ---: |")
    for name, share in (("mean over queries", used.mean(0)), ("most of any query", used.max(0))):
        print(f"| {name} | {share.min():.3f} | {share.mean():.3f} | {share.max():.3f} |")
    places = np.array(nearer)  # [queries][rows][parts]
    print("\n| nearest entries |", " | ".join(f"{share:g}" for share in SHARES), "|")
    print("| --- |", " | ".join("---:" for _ in SHARES), "|")
    rows = [(places < share * codes.num).mean((0, 1)) for share in SHARES]
    for name, fold in (("mean", np.mean), ("least subspace", np.min), ("largest", np.max)):
        print(f"| codes among them, {name} |", " | ".join(f"{fold(row):.3f}" for row in rows), "|")
    return 0


if __name__ == "__main__":
    sys.exit(main())
