# SPDX-License-Identifier: Apache-2.0
"""Results of range searches for check_range.sh.

usage: range_results.py choose ALL SHARE             a value that this share of a search of all rows is within
       range_results.py cut ALL WITHIN OUT [MASK]    what a search of all rows has within a value
       range_results.py count RANGE ROWS             whether it has so many rows
       range_results.py judge RANGE TRUTH TOLD       whether eval told what NumPy computes
       range_results.py widen RANGE OUT              the form of 64 bits
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np


def read(path: str) -> tuple[np.ndarray, np.ndarray]:
    data = Path(path).read_bytes()
    queries, k = (int(number) for number in np.frombuffer(data, "<u4", 2))
    ids = np.frombuffer(data, "<i4", queries * k, 8).reshape(queries, k)
    return ids, np.frombuffer(data, "<f4", queries * k, 8 + ids.nbytes).reshape(queries, k)


def read_range(path: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = Path(path).read_bytes()
    queries, total = (int(number) for number in np.frombuffer(data, "<u4", 2))
    counts = np.frombuffer(data, "<u4", queries, 8).astype(int)
    ids = np.frombuffer(data, "<i4", total, 8 + 4 * queries)
    assert len(data) == 8 + 4 * queries + 8 * total == 8 + 4 * queries + 8 * counts.sum()
    return counts, ids, np.frombuffer(data, "<f4", total, 8 + 4 * queries + 4 * total)


def cut(path: str, within: float, out: str, mask_file: str | None = None) -> None:
    ids, values = read(path)
    is_distance = values[0, 0] <= values[0, -1]
    is_in = (values <= np.float32(within)) if is_distance else (values >= np.float32(within))
    is_in &= ids >= 0
    if mask_file:
        mask = np.load(mask_file)
        is_in &= mask[ids] if mask.ndim == 1 else np.take_along_axis(mask, ids, 1)
    head = np.array([len(ids), is_in.sum(), *is_in.sum(1)], "<u4")
    Path(out).write_bytes(head.tobytes() + ids[is_in].tobytes() + values[is_in].tobytes())


def parts(ranges: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    return np.split(ranges[1], np.cumsum(ranges[0])[:-1])


def judge(result: str, truth: str, told_file: str) -> None:
    told = json.loads(Path(told_file).read_text())
    found, true = read_range(result), read_range(truth)
    precisions, common = [], 0
    for own, wanted in zip(parts(found), parts(true)):
        is_hit = np.isin(own, wanted)
        common += is_hit.sum()
        precision = np.cumsum(is_hit) / np.arange(1, len(own) + 1)
        if len(wanted):
            precisions.append(precision[is_hit].sum() / len(wanted))
    expected = {
        "average_precision": np.mean(precisions),
        "recall": common / len(true[1]),
        "precision": common / len(found[1]),
    }
    for name, value in expected.items():
        assert abs(told[name] - value) < 1e-9, (name, told[name], value)


def main() -> None:
    what, *rest = sys.argv[1:]
    if what == "choose":
        values = read(rest[0])[1]
        best = np.sort(values, axis=None)
        best = best if values[0, 0] <= values[0, -1] else best[::-1]
        print(float(best[int(float(rest[1]) * best.size)]))  # of some row: within is inclusive
    elif what == "cut":
        cut(rest[0], float(rest[1]), *rest[2:])
    elif what == "count":
        assert len(read_range(rest[0])[1]) == int(rest[1]), len(read_range(rest[0])[1])
    elif what == "judge":
        judge(*rest)
    else:
        counts, ids, values = read_range(rest[0])
        numbers = np.array([len(counts), len(ids), *counts, *ids], "<i8")
        Path(rest[1]).write_bytes(numbers.tobytes() + values.tobytes())


main()
