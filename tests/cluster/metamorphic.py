# SPDX-License-Identifier: Apache-2.0
"""Changes of the data that change no neighbour must cost no recall.

A case is drawn from its number: a code, a metric, lists or none, a kind of data (hard_data.py) and
a change. Both sides are encoded and searched; answers of the changed side are led back to the rows
that they were made of, and judged by the exact neighbours of the unchanged ones.

usage: metamorphic.py FIRST_CASE CASES MINUTES; at least so many cases ("all": each code with each
change once), and so long. Exit code 1 if a claim fails. check_metamorphic.sh calls it.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterator

import bitsweep
import numpy as np
from hard_data import KINDS, Random, Truth, as_bytes, make

K = 10
MAY_FALL = 0.02
ERRORS = 3  # standard errors of the mean fall that may be chance
OTHER_SEEDS = (2, 3, 4, 5, 6)
QUERIES = 200
SCALED = ("times 10^-20", "times 10^15")  # squares near the ends of float32: no smaller, no longer
# A table of recalls is measured with rows as queries, and promises nothing for others.
QUERIES_UNLIKE_ROWS = ("far queries", "short queries", "95 % copies")


@dataclass(frozen=True)
class Data:
    """Rows and queries. origin: the row that each was made of, -1: none. k: answers to ask for.
    settings: of the index, in place of the case's."""

    x: np.ndarray
    q: np.ndarray
    origin: np.ndarray
    k: int = K
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Code:
    """What an index is made with, and how it is searched."""

    codec: str
    metric: str
    lists: int = 0
    probe: str = ""  # "all", or "": as a search does by itself


@dataclass(frozen=True)
class Change:
    """One that keeps neighbours. rounds: float32 does not hold the changed numbers exactly, whose
    neighbours are computed anew. is_same: every answer has the same ids. unfit: kinds of data that
    it may cost recall."""

    name: str
    make: Callable[[Random, Data, str], Data]
    metrics: tuple[str, ...] = ("l2", "ip", "cosine")
    codecs: tuple[str, ...] = ("saq", "sq8", "pq", "xfbq", "raw")
    rounds: bool = False
    is_same: bool = False
    scales: bool = False
    unfit: tuple[str, ...] = ()


FLOATS = ("saq", "sq8", "pq", "xfbq")
QUICK = ("saq", "sq8")  # to make


def power(random: Random) -> np.float32:
    """A power of two other than 1, of up to a million, or one over it."""
    return np.float32(2.0 ** (int(random.integers(1, 21)) * random.choice((-1, 1))))


def decimal(random: Random) -> np.float32:
    """1e-3 or 1e3."""
    return np.float32(random.choice((1e-3, 1e3)))


def queries_times(factor: Callable[[Random], np.float32]) -> Callable[[Random, Data, str], Data]:
    return lambda random, data, _: replace(data, q=data.q * factor(random))


def all_times(factor: Callable[[Random], np.float32]) -> Callable[[Random, Data, str], Data]:
    def change(random: Random, data: Data, _: str) -> Data:
        f = factor(random)
        return replace(data, x=data.x * f, q=data.q * f)

    return change


def spread(x: np.ndarray) -> float:
    """The median distance of the numbers from the middles of their dimensions."""
    return float(np.median(np.abs(x - np.median(x, axis=0)))) or 1.0


def translated(random: Random, data: Data, _: str) -> Data:
    step = random.choice((1, 10, 1000)) * spread(data.x) * random.standard_normal(data.x.shape[1])
    return replace(data, x=moved(data.x, step), q=moved(data.q, step))


def moved(y: np.ndarray, step: np.ndarray) -> np.ndarray:
    return (y.astype(np.float64) + step).astype(np.float32)


def turned(random: Random, data: Data, _: str) -> Data:
    dims = data.x.shape[1]
    turn = np.linalg.qr(random.standard_normal((dims, dims)))[0]
    return replace(
        data,
        x=(data.x.astype(np.float64) @ turn).astype(np.float32),
        q=(data.q.astype(np.float64) @ turn).astype(np.float32),
    )


def rows_permuted(random: Random, data: Data, _: str) -> Data:
    order = random.permutation(len(data.x))
    return replace(data, x=data.x[order], origin=data.origin[order])


def dims_permuted(random: Random, data: Data, _: str) -> Data:
    order = random.permutation(data.x.shape[1])
    return replace(data, x=data.x[:, order], q=data.q[:, order])


def padded(random: Random, data: Data, _: str) -> Data:
    more = ((0, 0), (0, int(random.integers(1, 33))))
    return replace(data, x=np.pad(data.x, more), q=np.pad(data.q, more))


def duplicated(_: Random, data: Data, __: str) -> Data:
    return replace(
        data, x=np.repeat(data.x, 2, axis=0), origin=np.repeat(data.origin, 2), k=2 * data.k
    )


def with_outlier(random: Random, data: Data, metric: str) -> Data:
    """10 to 10^6 times as long as rows are. It is an answer of some queries, under l2 of those that
    are as far out."""
    row = random.standard_normal(data.x.shape[1])
    row *= (
        np.median(np.linalg.norm(data.x, axis=1)) / np.linalg.norm(row) * 10 ** random.uniform(1, 6)
    )
    longest = np.linalg.norm(data.q.astype(np.float64), axis=1).max()
    may_be_found = metric != "l2" or 3 * longest > np.linalg.norm(row)
    return replace(
        data,
        x=np.vstack((data.x, row.astype(np.float32))),
        origin=np.append(data.origin, -1),
        k=data.k + may_be_found,
    )


CHANGES = (
    Change(
        "queries times 2^n",
        queries_times(power),
        ("ip", "cosine"),
        FLOATS,
        is_same=True,
        scales=True,
    ),
    Change(
        "queries times 10^+-3",
        queries_times(decimal),
        ("ip", "cosine"),
        FLOATS,
        rounds=True,
        scales=True,
    ),
    Change("all times 2^n", all_times(power), codecs=FLOATS, is_same=True, scales=True),
    Change("all times 10^+-3", all_times(decimal), codecs=FLOATS, rounds=True, scales=True),
    Change("translated", translated, ("l2",), FLOATS, rounds=True, scales=True),
    Change("turned", turned, codecs=("saq",), rounds=True),
    # A cube is what codebooks of its dims make best; turned it is none.
    Change("turned", turned, codecs=("pq",), rounds=True, unfit=("integers > 2^24",)),
    # A turn mixes the scales that sq8 has for each dimension; only l2 centers queries. Heavy tails are
    # a few long numbers of a row, which it clips; once turned they are all of its numbers.
    Change("turned", turned, ("l2",), ("sq8",), rounds=True, unfit=("heavy tails",)),
    Change("rows permuted", rows_permuted),
    Change("dims permuted", dims_permuted),
    # xfbq's one scale, as its paper has it, is also that of the zeros.
    Change("dims padded", padded, codecs=("saq", "sq8", "pq", "raw")),
    Change("rows twice", duplicated),
    Change("an outlier", with_outlier, codecs=("saq", "pq", "xfbq"), scales=True),
    # A cluster that lies within one step is coded as its place to the steps happens to be.
    Change("an outlier", with_outlier, codecs=("sq8",), scales=True, unfit=("two clusters",)),
)


def rows_translated(random: Random, data: Data, _: str) -> Data:
    return replace(data, x=translated(random, data, _).x)


def led_astray(random: Random, data: Data, _: str) -> Data:
    return replace(data, origin=random.permutation(data.origin))


def one_dim_stretched(_: Random, data: Data, __: str) -> Data:
    stretch = np.where(np.arange(data.x.shape[1]) == 0, 1000, 1).astype(np.float32)
    return replace(data, x=data.x * stretch, q=data.q * stretch)


def fewer_asked(_: Random, data: Data, __: str) -> Data:
    return replace(data, k=data.k - 1)


def fewer_bits(_: Random, data: Data, __: str) -> Data:
    """The neighbours stay, the codes get worse."""
    return replace(data, settings={"bits": 1, "residual": "no"})


# Wrong on purpose, each of which must be noticed.
WRONG = (
    Change("rows translated, queries not", rows_translated, ("l2",), QUICK),
    Change("ids led back to other rows", led_astray, codecs=(*QUICK, "raw")),
    Change("one dim stretched", one_dim_stretched, codecs=QUICK),
    Change("one answer less", fewer_asked, codecs=(*QUICK, "raw")),
    Change("codes of 1 bit", fewer_bits, ("l2", "cosine"), ("saq",)),
)


def codes() -> Iterator[Code]:
    """Codes of every codec and metric, without lists, with all of them looked at, and by default."""
    for codec, metrics in (
        ("saq", ("l2", "ip", "cosine")),
        ("sq8", ("l2", "ip", "cosine")),
        ("pq", ("l2", "ip", "cosine")),
        ("xfbq", ("cosine",)),
        ("raw", ("l2", "ip")),
    ):
        for metric in metrics:
            yield Code(codec, metric)
            yield Code(codec, metric, 16, "all")
            yield Code(codec, metric, 16)


@dataclass
class Case:
    """What one number stands for."""

    number: int
    code: Code
    change: Change
    kind: str
    settings: dict[str, Any]
    data: Data
    random: Random

    def title(self) -> str:
        c = self.code
        lists = f", {c.lists} lists{' (all)' if c.probe else ''}" if c.lists else ""
        return (
            f"case {self.number}: {c.codec} {self.settings}, {c.metric}{lists}; {self.kind}, "
            f"{self.data.x.shape[0]} x {self.data.x.shape[1]}; {self.change.name}"
        )


def pairs_of(changes: tuple[Change, ...]) -> list[tuple[Code, Change]]:
    pairs = [
        (code, change)
        for code in codes()
        for change in changes
        if code.metric in change.metrics and code.codec in change.codecs
    ]
    return [pairs[i] for i in np.random.default_rng(0).permutation(len(pairs))]


def draw(number: int, pairs: list[tuple[Code, Change]], kinds: tuple[str, ...]) -> Case:
    """Neighbouring numbers have other codes and changes; all are met once in len(pairs) cases."""
    random = np.random.default_rng(number)
    code, change = pairs[number % len(pairs)]
    unfit = change.unfit + (SCALED if change.scales else ())
    if code.lists and not code.probe:
        unfit += QUERIES_UNLIKE_ROWS
    kind = str(random.choice([k for k in kinds if k not in unfit]))
    settings: dict[str, Any] = {}
    if code.codec in ("saq", "xfbq"):
        settings["bits"] = int(random.integers(2, 5)) + (code.codec == "xfbq")
    if code.codec == "pq":
        settings["rotation"] = str(random.choice(("opq", "random"), p=(0.2, 0.8)))
    dims = 4 * int(random.integers(8, 26))
    x, q = make(kind, number, int(random.integers(800, 2001)), QUERIES, dims)
    if code.codec == "raw":
        x, q = as_bytes(x, q)
    return Case(number, code, change, kind, settings, Data(x, q, np.arange(len(x))), random)


@dataclass
class Side:
    """Answers of one side, led back to the rows of the unchanged one."""

    exact: np.ndarray
    refined_all: np.ndarray
    answers: dict[str, np.ndarray]  # by default, and by code alone


def search(case: Case, data: Data, folder: str) -> Side:
    code = case.code
    more = {"probe": code.probe} if code.probe else {}
    everything: dict[str, Any] = {"probe": "all"} if code.lists else {}
    if code.codec != "raw":
        everything["oversample"] = len(data.x) / data.k
    with bitsweep.Index.encode(
        data.x,
        folder,
        metric=code.metric,
        codec=code.codec,
        lists=code.lists,
        force=True,
        **{**case.settings, **data.settings},
    ) as ix:
        answers = {"refined": ix.search(data.q, data.k, **more)[1]}
        if not code.lists or code.probe:  # a table of recalls is of refined answers
            answers["by code"] = ix.search(data.q, data.k, refine="none", **more)[1]
        refined_all = ix.search(data.q, data.k, **everything)[1]
    exact = bitsweep.knn(data.x, data.q, data.k, code.metric)[1]

    def lead_back(ids: np.ndarray) -> np.ndarray:
        return np.where(ids < 0, -1, data.origin[ids])

    return Side(
        lead_back(exact), lead_back(refined_all), {n: lead_back(a) for n, a in answers.items()}
    )


def falls(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether recall has fallen, of the same queries."""
    fall = before - after
    return bool(fall.mean() > MAY_FALL + ERRORS * fall.std() / len(fall) ** 0.5)


def falls_by_luck(
    case: Case, name: str, sides: tuple[Data, Data], truths: tuple[Truth, Truth], folder: str
) -> bool:
    """Whether seeds of training and rotations bring such a fall: queries that have all the same
    neighbours are one trial, not many. Means of other seeds are compared by how these vary."""

    def recall(data: Data, truth: Truth, seed: int) -> float:
        other = replace(case, settings={**case.settings, "seed": seed})
        return float(truth.found(search(other, data, folder).answers[name]).mean())

    recalls = np.array([[recall(*side, seed) for seed in OTHER_SEEDS] for side in zip(sides, truths)])
    chance = float(np.sqrt(recalls.var(axis=1, ddof=1).sum() / len(OTHER_SEEDS)))
    return bool(recalls[0].mean() - recalls[1].mean() <= MAY_FALL + ERRORS * chance)


def faults(case: Case, folder: str) -> list[str]:
    """The claims that do not hold. Data whose squares leave float32 may be refused unchanged."""
    code, change = case.code, case.change
    try:
        before = search(case, case.data, folder)
    except bitsweep.Error as error:
        return [] if case.kind in SCALED else [f"refused unchanged: {error}"]
    changed = change.make(case.random, case.data, code.metric)
    try:
        after = search(case, changed, folder)
    except bitsweep.Error as error:
        return [f"refused changed: {error}"]
    truth = Truth(case.data.x, case.data.q, K, code.metric)
    truth_after = Truth(changed.x, changed.q, K, code.metric) if change.rounds else truth
    found = []
    for side, name, its in ((before, "knn before", truth), (after, "knn", truth_after)):
        if its.found(side.exact).mean() < 1:
            found.append(f"{name}: recall {its.found(side.exact).mean():.4f}")
    if not np.array_equal(after.refined_all, after.exact):
        found.append("all rows refined, but not the ids of knn")
    for name, ids in after.answers.items():
        num_other = int((ids != before.answers[name]).any(axis=1).sum()) if change.is_same else 0
        if num_other:
            found.append(f"{name}: {num_other} of {len(ids)} answers have other ids")
        was, is_now = truth.found(before.answers[name]), truth_after.found(ids)
        sides, truths = (case.data, changed), (truth, truth_after)
        if falls(was, is_now) and not falls_by_luck(case, name, sides, truths, folder):
            found.append(f"{name}: recall {was.mean():.3f}, changed {is_now.mean():.3f}")
    return found


def say(case: Case, found: list[str]) -> None:
    print(f"FAILED: {case.title()}")
    for line in found:
        print(f"    {line}")
    print(
        f"    BITSWEEP_METAMORPHIC_SEED={case.number} BITSWEEP_METAMORPHIC_CASES=1 "
        "tests/cluster/check_metamorphic.sh build/release/bitsweep .",
        flush=True,
    )


def prove(first: int, folder: str) -> int:
    """How many wrong changes go unnoticed, of each one with every codec that it is for."""
    missed = 0
    for change in WRONG:
        for codec in change.codecs:
            # By default few lists are looked at, whose rows are nearly all refined.
            pairs = [
                (code, change)
                for code, change in pairs_of((change,))
                if code.codec == codec and (not code.lists or code.probe)
            ]
            case = draw(first, pairs, ("clusters",))
            if not faults(case, folder):
                missed += 1
                print(f"FAILED: not noticed: {case.title()}")
    return missed


def main() -> int:
    pairs = pairs_of(CHANGES)
    first, minutes = int(sys.argv[1]), float(sys.argv[3])
    cases = len(pairs) if sys.argv[2] == "all" else int(sys.argv[2])
    end = time.monotonic() + 60 * minutes
    number = first
    warnings.simplefilter("ignore")  # poor codes are compared with poor codes
    with tempfile.TemporaryDirectory() as folder:
        num_failed = prove(first, folder + "/index")
        while number < first + cases or time.monotonic() < end:
            case = draw(number, pairs, tuple(KINDS))
            found = faults(case, folder + "/index")
            if found:
                num_failed += 1
                say(case, found)
            number += 1
    print(f"cases {first} to {number - 1}, and {len(WRONG)} wrong changes: {num_failed} failed")
    return int(num_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
