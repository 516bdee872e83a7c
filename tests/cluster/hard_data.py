# SPDX-License-Identifier: Apache-2.0
"""Kinds of data that a code may find hard, their exact neighbours, and the recall of an answer.

For metamorphic.py beside it and bench/peers/hard_data_table.py. Each kind is a function of a random
generator, rows, queries and dims; KINDS has them by name, in the order of a table.
"""

from __future__ import annotations

from typing import Callable

import numpy as np

Random = np.random.Generator
Pair = tuple[np.ndarray, np.ndarray]
TIE = 2.0**-40  # values nearer than this share differ by roundings of float64
MOST_CANDIDATES = 400


def clusters(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """Ordinary: some blobs off the origin, queries as the rows."""
    centers = 2 * random.standard_normal((20, dims)) + 1
    x = centers[random.integers(20, size=rows)] + random.standard_normal((rows, dims))
    q = centers[random.integers(20, size=queries)] + random.standard_normal((queries, dims))
    return x, q


def normal(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """No structure at all."""
    return random.standard_normal((rows, dims)), random.standard_normal((queries, dims))


def far_queries(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """Queries 20 times as far out as the rows."""
    x, q = normal(random, rows, queries, dims)
    return x, 20 * q


def short_queries(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """Queries of length 1 beside rows some 25 long that have a direction in common."""
    x, q = normal(random, rows, queries, dims)
    return x + 3 * random.standard_normal(dims), q / np.linalg.norm(q, axis=1, keepdims=True)


def outlier(factor: float) -> Callable[[Random, int, int, int], Pair]:
    """One row that many times as long."""

    def kind(random: Random, rows: int, queries: int, dims: int) -> Pair:
        x, q = clusters(random, rows, queries, dims)
        x[rows // 3] *= factor
        return x, q

    return kind


def unequal_lengths(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """Log-normal lengths of rows, from a twentieth to twenty times the median."""
    x, q = normal(random, rows, queries, dims)
    return x * np.exp(random.standard_normal((rows, 1))), q


def heavy_tails(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """Cauchy: every dimension has numbers thousands of times the median."""
    return random.standard_cauchy((rows, dims)), random.standard_cauchy((queries, dims))


def constant_dims(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """A third of the dimensions is constant, a third nearly so, at large numbers."""
    x, q = normal(random, rows, queries, dims)
    third = dims // 3
    for y in (x, q):
        y[:, :third] = 7
        y[:, third : 2 * third] = 100 + 0.01 * y[:, third : 2 * third]
    return x, q


def two_clusters(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """Two clouds some thousand times their spread apart."""
    x, q = normal(random, rows, queries, dims)
    step = random.standard_normal(dims) * 1000
    x[: rows // 2] += step
    q[: queries // 2] += step
    return x[random.permutation(rows)], q


def sparse(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """A number in twelve is not 0; no vector is 0."""
    pair = []
    for count in (rows, queries):
        y = random.exponential(size=(count, dims)) * (random.random((count, dims)) < 1 / 12)
        y[np.arange(count), random.integers(dims, size=count)] = 1 + random.random(count)
        pair.append(y)
    return pair[0], pair[1]


def large_integers(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """Whole numbers beyond 2^24, of which float32 has every second."""
    return (
        random.integers(2**24, 2**25, (rows, dims)).astype(np.float64),
        random.integers(2**24, 2**25, (queries, dims)).astype(np.float64),
    )


def copies(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """95 % of the rows are copies of five of them."""
    x, q = clusters(random, rows, queries, dims)
    copied = random.random(rows) < 0.95
    copied[:5] = False
    x[copied] = x[random.integers(5, size=int(copied.sum()))]
    return x, q


def walks(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """Random walks: a few axes have all of the spread."""
    x, q = normal(random, rows, queries, dims)
    return np.cumsum(x, axis=1), np.cumsum(q, axis=1)


def far_from_origin(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """All vectors in one cloud, some thousand times its spread from the origin."""
    x, q = normal(random, rows, queries, dims)
    away = 1000 * (1 + random.random(dims))
    return x + away, q + away


def times(factor: float) -> Callable[[Random, int, int, int], Pair]:
    """Clusters in another unit."""

    def kind(random: Random, rows: int, queries: int, dims: int) -> Pair:
        x, q = clusters(random, rows, queries, dims)
        return x * factor, q * factor

    return kind


def positive(random: Random, rows: int, queries: int, dims: int) -> Pair:
    """As descriptors of pictures: whole numbers of 0 to 255, many of them small."""
    scales = 5 + 40 * random.random((20, dims)) ** 2
    pair = []
    for count in (rows, queries):
        y = random.exponential(size=(count, dims)) * scales[random.integers(20, size=count)]
        pair.append(np.minimum(np.floor(y), 255))
    return pair[0], pair[1]


KINDS: dict[str, Callable[[Random, int, int, int], Pair]] = {
    "clusters": clusters,
    "normal": normal,
    "far queries": far_queries,
    "short queries": short_queries,
    "outlier x50": outlier(50),
    "outlier x10^6": outlier(1e6),
    "unequal lengths": unequal_lengths,
    "heavy tails": heavy_tails,
    "constant dims": constant_dims,
    "two clusters": two_clusters,
    "sparse": sparse,
    "integers > 2^24": large_integers,
    "95 % copies": copies,
    "random walks": walks,
    "far from origin": far_from_origin,
    "times 10^-20": times(1e-20),
    "times 10^15": times(1e15),
    "positive": positive,
}


def make(kind: str, seed: int, rows: int, queries: int, dims: int) -> Pair:
    """Rows and queries of a kind, float32."""
    x, q = KINDS[kind](np.random.default_rng(seed), rows, queries, dims)
    return x.astype(np.float32), q.astype(np.float32)


def as_bytes(x: np.ndarray, q: np.ndarray) -> Pair:
    """The same as uint8: beside the middle of each dimension, and what few rows reach cut off."""
    middle = np.median(x, axis=0).astype(np.float64)
    most = np.quantile(np.abs(x - middle), 0.99) or 1.0
    pair = [np.clip(128 + (y - middle) * (127 / most), 0, 255).astype(np.uint8) for y in (x, q)]
    return pair[0], pair[1]


def _losses(x: np.ndarray, q: np.ndarray, metric: str) -> np.ndarray:
    """[queries][rows] in float64, smaller is nearer; roundings of products apart."""
    if metric == "l2":
        middle = np.median(x, axis=0)
        x, q = x - middle, q - middle
        return (x * x).sum(1) - 2 * (q @ x.T)
    return -(q @ x.T)


def _scaled(y: np.ndarray, metric: str) -> np.ndarray:
    """float64; under cosine of length 1."""
    y = y.astype(np.float64)
    if metric == "cosine":
        y /= np.abs(y).max(axis=1, keepdims=True)
        y /= np.linalg.norm(y, axis=1, keepdims=True)
    return y


class Truth:
    """The exact neighbours of queries among rows, and how many of them an answer has."""

    def __init__(self, x: np.ndarray, q: np.ndarray, k: int, metric: str) -> None:
        self.x, self.q, self.k, self.metric = _scaled(x, metric), _scaled(q, metric), k, metric
        losses = _losses(self.x, self.q, metric)
        most = min(MOST_CANDIDATES, len(x))
        near = np.argpartition(losses, most - 1, axis=1)[:, :most]
        values = self.values(near)
        self.last = np.partition(values, k - 1, axis=1)[:, k - 1 : k]
        if metric == "l2":
            self.slack = TIE * self.last
        else:
            lengths = np.linalg.norm(self.q, axis=1, keepdims=True)
            self.slack = TIE * (np.abs(self.last) + lengths * np.linalg.norm(self.x, axis=1).max())

    def values(self, ids: np.ndarray) -> np.ndarray:
        """Values of ids [queries][any], small is near: differences first, then squares."""
        values = np.empty(ids.shape)
        for i, row in enumerate(ids):
            near = self.x[row]
            if self.metric == "l2":
                values[i] = ((near - self.q[i]) ** 2).sum(axis=1)
            else:
                values[i] = -(near @ self.q[i])
        values[ids < 0] = np.inf
        return values

    def found(self, ids: np.ndarray) -> np.ndarray:
        """For each query the share of its k that is among ids; what ties with the last counts."""
        ordered = np.sort(ids, axis=1)
        is_found = self.values(ordered) <= self.last + self.slack
        is_found[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
        return np.minimum(is_found.sum(axis=1), self.k) / self.k
