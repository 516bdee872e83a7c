# SPDX-License-Identifier: Apache-2.0
"""Tags with frequencies of Zipf for check_tags.sh, and the masks that NumPy makes of them.

usage: tag_files.py make FOLDER ROWS QUERIES    base.spmat, query.spmat, masks.npy, live.npy and wrong files
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

TAGS = 60


def write(path: Path, matrix: np.ndarray) -> None:
    """big-ann's sparse matrix of a dense one; entries of a row in any order."""
    rows = [np.flatnonzero(row)[::-1] for row in matrix]
    starts = np.cumsum([0, *(len(row) for row in rows)])
    head = np.array([*matrix.shape, starts[-1]], "<i8")
    indices = np.concatenate([*rows, []]).astype("<i4")
    values = np.ones(len(indices), "<f4")
    path.write_bytes(head.tobytes() + starts.astype("<i8").tobytes() + indices.tobytes() + values.tobytes())


def make(folder: Path, rows: int, queries: int) -> None:
    random = np.random.default_rng(7)
    share = 0.7 / np.arange(1, TAGS + 1)  # of rows that have a tag: the rarest few
    base = random.random((rows, TAGS)) < share
    base[:, -1] = False  # no row has it
    wanted = np.zeros((queries, TAGS), bool)
    for query in range(queries):
        tags = random.choice(TAGS - 1, query % 3, p=share[:-1] / share[:-1].sum(), replace=False)
        wanted[query, tags] = True
    wanted[5, -1] = True
    masks = np.array([base[:, row].all(1) for row in wanted])
    write(folder / "base.spmat", base)
    write(folder / "query.spmat", wanted)
    write(folder / "first.spmat", base[: rows // 2])
    write(folder / "second.spmat", base[rows // 2 :])
    np.save(folder / "masks.npy", masks)
    np.save(folder / "live.npy", masks[:, ::2])  # where every other row is left
    # What is wrong.
    good = (folder / "query.spmat").read_bytes()
    (folder / "short.spmat").write_bytes(good[:-1])
    (folder / "empty.spmat").write_bytes(b"")
    write(folder / "few_tags.spmat", wanted[:, :-1])
    write(folder / "few_queries.spmat", wanted[:-1])
    numbers = np.frombuffer(good, "<i8", 3 + queries + 1).copy()
    numbers[5], numbers[6] = numbers[6] + 1, numbers[5]
    (folder / "falls.spmat").write_bytes(numbers.tobytes() + good[numbers.nbytes :])
    numbers = np.frombuffer(good, "<i4").copy()
    numbers[2 * (3 + queries + 1)] = TAGS
    (folder / "high.spmat").write_bytes(numbers.tobytes())


make(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
