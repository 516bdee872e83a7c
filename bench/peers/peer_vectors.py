# SPDX-License-Identifier: Apache-2.0
"""Vector and result files, exact values and recall: what both sides are judged by.

Files are big-ann's: uint32 rows, uint32 dims (or both uint64), then the rows. Recall is defined as
by `bitsweep eval`, written a second time so that it does not judge itself.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

TYPES = {".u8bin": np.uint8, ".i8bin": np.int8, ".fbin": np.float32}
TOLERANCE = 1e-6  # relative, of float32 values against float64
SUFFIXES = {"K": 10**3, "M": 10**6, "G": 10**9}


def parse_count(text: str) -> int:
    """A number with an optional K, M or G (powers of 1000)."""
    factor = SUFFIXES.get(text[-1:].upper(), 1)
    return int(text if factor == 1 else text[:-1]) * factor


def parse_rows(text: str, rows: int) -> tuple[int, int]:
    """A:B, half open, either end may be left out; cut to the rows there are."""
    first, colon, last = text.partition(":")
    if not colon:
        raise ValueError(f"{text}: not of the form A:B")
    begin = parse_count(first) if first else 0
    end = min(parse_count(last), rows) if last else rows
    if not 0 <= begin < end:
        raise ValueError(f"{text}: no rows, the file has {rows}")
    return begin, end


def open_npy(path: str) -> np.ndarray:
    """The same of a .npy file, which bitsweep must be able to read, too."""
    rows = np.load(path, mmap_mode="r")
    if rows.ndim != 2 or rows.dtype not in TYPES.values() or not rows.flags.c_contiguous:
        raise ValueError(f"{path}: {rows.ndim} axes of {rows.dtype}: rows of float32, uint8 or int8 "
                         "are needed; bitsweep convert makes them")
    return rows


def write_unit(vectors: np.ndarray, path: Path) -> str:
    """Rows of unit length as float32 in a .fbin; returns its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        np.array(vectors.shape, "<u4").tofile(file)
        for first in range(0, len(vectors), 65536):
            rows = np.asarray(vectors[first:first + 65536], np.float64)
            norms = np.linalg.norm(rows, axis=1, keepdims=True)
            if not norms.all():
                row = first + int(np.argmin(norms))
                raise ValueError(f"row {row} is zero, which has no direction for --metric cosine")
            (rows / norms).astype("<f4").tofile(file)
    return str(path)


def open_vectors(path: str) -> np.ndarray:
    """A file's rows, mapped: [rows][dims] of the file's own type."""
    suffix = Path(path).suffix
    if suffix == ".npy":
        return open_npy(path)
    if suffix not in TYPES:
        raise ValueError(f"{path}: neither .u8bin, .i8bin, .fbin nor .npy")
    dtype = np.dtype(TYPES[suffix])
    size = Path(path).stat().st_size
    for header in (np.uint32, np.uint64):
        head = 2 * np.dtype(header).itemsize
        if size < head:
            break
        rows, dims = (int(x) for x in np.fromfile(path, header, 2))
        if rows and dims and size == head + rows * dims * dtype.itemsize:
            return np.memmap(path, dtype, "r", head, (rows, dims))
    raise ValueError(f"{path}: size and header do not agree")


def read_result(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """A result file of bitsweep (32-bit form): ids and values, [queries][k]."""
    queries, k = (int(x) for x in np.fromfile(path, np.uint32, 2))
    count = queries * k
    if path.stat().st_size != 8 + 8 * count:
        raise ValueError(f"{path}: not a result file with 32-bit ids")
    ids = np.fromfile(path, np.int32, count, offset=8).astype(np.int64)
    values = np.fromfile(path, np.float32, count, offset=8 + 4 * count)
    return ids.reshape(queries, k), values.reshape(queries, k)


def exact_values(base: np.ndarray, queries: np.ndarray, ids: np.ndarray, metric: str) -> np.ndarray:
    """Values of ids [queries][k] (row numbers of base) in float64; NaN where an id is negative."""
    values = np.full(ids.shape, np.nan)
    for q, row in enumerate(ids):
        is_valid = row >= 0
        x = base[row[is_valid]].astype(np.float64)
        y = queries[q].astype(np.float64)
        values[q, is_valid] = (((x - y) ** 2) if metric == "l2" else x * y).sum(axis=1)
    return values


def recall(base: np.ndarray, queries: np.ndarray, ids: np.ndarray, true_ids: np.ndarray,
           metric: str) -> float:
    """k-recall@k: the share of the true k among the k returned.

    An id that is not among the true k also counts when its exact value equals that of the k-th true
    one; an id returned twice counts once. true_ids: best first.
    """
    values = exact_values(base, queries, ids, metric)
    last = exact_values(base, queries, true_ids[:, -1:], metric)
    found = 0
    for q, row in enumerate(ids):
        unique, at = np.unique(row, return_index=True)
        is_true = np.isin(unique, true_ids[q])
        tied = (values[q, at] == last[q]) & ~is_true & (unique >= 0)
        found += min(int(is_true.sum() + tied.sum()), true_ids.shape[1])
    return found / true_ids.size


def check_truth(base: np.ndarray, queries: np.ndarray, truth: tuple[np.ndarray, np.ndarray],
                other_ids: np.ndarray, metric: str) -> float:
    """Checks a ground truth against values computed here and another exact search's ids.

    Returns the other search's recall. Raises if a value of the truth is wrong or if the other
    search found something nearer than the truth's last.
    """
    true_ids, true_values = truth
    own = exact_values(base, queries, true_ids, metric)
    scale = np.maximum(np.abs(own), 1e-30)
    if not np.all(np.abs(own - true_values) <= TOLERANCE * scale):
        raise ValueError("the ground truth's values are not those of its rows")
    values = exact_values(base, queries, other_ids, metric)
    sign = 1.0 if metric == "l2" else -1.0
    last = true_values[:, -1:].astype(np.float64)
    is_better = sign * (values - last) < -TOLERANCE * np.abs(last)
    is_known = (other_ids[:, :, None] == true_ids[:, None, :]).any(axis=2)
    if np.any(is_better & ~is_known):
        raise ValueError("FAISS Flat found a nearer row than the ground truth has")
    return recall(base, queries, other_ids, true_ids, metric)
