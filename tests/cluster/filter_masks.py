# SPDX-License-Identifier: Apache-2.0
"""Masks of rows for check_filters.sh, and what a filtered search is to find.

usage: filter_masks.py make FOLDER ROWS QUERIES     files in every format that --allow reads
       filter_masks.py filter ALL MASK.npy K OUT    a result of all rows, its first K that the mask has
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np


def make(folder: Path, rows: int, queries: int) -> None:
    random = np.random.default_rng(5)
    some = random.random(rows) < 0.1
    few = np.zeros(rows, bool)
    few[[3, rows // 2, rows - 1]] = True
    each = random.random((queries, rows)) < 0.05
    each[::3] = each[0]  # a third of the queries have the same, others their own, one has none
    each[1] = False
    stretch = np.arange(rows) // (rows // 5) == 2
    for name, mask in {"some": some, "few": few, "each": each, "stretch": stretch}.items():
        np.save(folder / f"{name}.npy", mask)
    ids = random.permutation(np.flatnonzero(some))
    ids = np.concatenate([ids, ids[:7]])  # twice is once
    for kind in ("int32", "int64", "uint32", "uint64"):
        np.save(folder / f"ids_{kind}.npy", ids.astype(kind))
    np.save(folder / "ids_column.npy", ids[:, None])
    np.array([1, len(ids), *ids], "<u4").tofile(folder / "ids.u32bin")
    np.array([len(ids), *ids], "<i4").tofile(folder / "ids.ivecs")
    np.array([(1, i) for i in ids], "<i4").tofile(folder / "column.ivecs")
    # What is wrong.
    np.save(folder / "bad_high.npy", np.array([3, rows]))
    np.save(folder / "bad_negative.npy", np.array([3, -1]))
    np.save(folder / "bad_huge.npy", np.array([2**64 - 1], "uint64"))
    np.save(folder / "bad_rows.npy", some[:-1])
    np.save(folder / "bad_masks.npy", each[:-1])
    np.save(folder / "bad_type.npy", np.zeros(rows, "float32"))
    np.save(folder / "bad_ids.npy", np.zeros((2, 3), int))
    np.save(folder / "bad_order.npy", np.asfortranarray(each))
    (folder / "bad_short.npy").write_bytes((folder / "some.npy").read_bytes()[:-1])
    (folder / "bad.u32bin").write_bytes(np.array([1, 5, 1, 2], "<u4").tobytes())
    (folder / "bad.ivecs").write_bytes(np.array([3, 1, 2], "<i4").tobytes())
    (folder / "bad.txt").write_text("1 2 3\n")


def read(path: str) -> tuple[np.ndarray, np.ndarray]:
    data = Path(path).read_bytes()
    queries, k = np.frombuffer(data, "<u4", 2)
    ids = np.frombuffer(data, "<i4", queries * k, 8).reshape(queries, k)
    values = np.frombuffer(data, "<f4", queries * k, 8 + ids.nbytes).reshape(queries, k)
    return ids, values


def keep(path: str, mask_file: str, k: int, out: str) -> None:
    ids, values = read(path)
    masks = np.load(mask_file)
    is_distance = values[0, 0] <= values[0, -1]
    found = np.full((len(ids), k), -1, "<i4")
    kept = np.full((len(ids), k), np.inf if is_distance else -np.inf, "<f4")
    for query, row in enumerate(ids):
        mask = masks if masks.ndim == 1 else masks[query]
        own = np.flatnonzero((row >= 0) & mask[row])[:k]
        found[query, : len(own)] = row[own]
        kept[query, : len(own)] = values[query, own]
    Path(out).write_bytes(np.array(found.shape, "<u4").tobytes() + found.tobytes() + kept.tobytes())


def main() -> None:
    what, *rest = sys.argv[1:]
    if what == "make":
        make(Path(rest[0]), int(rest[1]), int(rest[2]))
    else:
        keep(rest[0], rest[1], int(rest[2]), rest[3])


main()
