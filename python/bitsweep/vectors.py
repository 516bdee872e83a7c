# SPDX-License-Identifier: Apache-2.0
"""Vectors as arrays and files, exact neighbours, recall."""

from __future__ import annotations

import os
from ctypes import byref, c_double, c_int, c_uint64
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from .arguments import takes
from .library import Error, Progress, Ranks, Rows, call, path_bytes
from .settings import count, defaults, fill, flag
from .watch import Watch

File = Union[str, bytes, "os.PathLike[str]"]
Vectors = Union[npt.ArrayLike, File]
MOST_K = 1_000_000  # more than any function of the library finds
K = int(defaults("knn").k)
Answer = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]

TYPES = [np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.uint8), np.dtype(np.int8)]


def _any_array(x: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise Error(f"{name}: some numbers are masked: fill or leave out what is not there")
    try:
        return np.asarray(x)
    except (TypeError, ValueError) as error:
        raise Error(f"{name}: no array of rows: {' '.join(str(error).split())}") from None


def as_array(x: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """x with rows without gaps and numbers that the library has: itself, or one copy."""
    array = _any_array(x, name)
    if array.ndim != 2:
        hint = f": {name}[None] makes one row of it" if array.ndim == 1 and array.size else ""
        raise Error(
            f"{name}: an array of 2 axes is needed, rows and dims, not of {array.ndim}{hint}"
        )
    if array.dtype in TYPES:
        return np.ascontiguousarray(array)
    kind = array.dtype.newbyteorder("=")
    if kind not in TYPES:
        if kind.kind == "b":
            kind = np.dtype(np.uint8)
        elif kind.kind in "iuf":
            kind = np.dtype(np.float32)
        else:
            raise Error(f"{name}: an array of real numbers is needed, not of {array.dtype}")
    with np.errstate(over="ignore"):  # a number too large for float32 is the library's to refuse
        return np.ascontiguousarray(array, dtype=kind)


class Source:
    """What the library reads: an array, which lives as long as this does, or a file."""

    def __init__(self, x: Vectors, name: str) -> None:
        self.rows = Rows()
        self.array: Optional[npt.NDArray[Any]] = None
        if isinstance(x, (str, bytes, os.PathLike)):
            self.file = path_bytes(x, name)
            self.rows.file = self.file
        else:
            self.array = as_array(x, name)
            self.rows.data = self.array.ctypes.data
            self.rows.num_rows, dims = self.array.shape
            if dims >= 2**32:
                raise Error(f"{name}: {dims} dims are too many", 2)
            self.rows.dims = dims
            self.rows.type = TYPES.index(self.array.dtype)

    @property
    def num_rows(self) -> int:
        if self.array is not None:
            return int(self.array.shape[0])
        shape = Rows()
        call("bitsweep_shape", self.file, byref(shape))
        return int(shape.num_rows)


class Asked:
    """Queries, which rank 0 gives."""

    def __init__(self, queries: Optional[Vectors], ranks: Ranks) -> None:
        self.pointer: Any = None
        self.num_rows = 0
        if ranks.rank:
            return
        if queries is None:
            raise Error("queries: there are none")
        self._source = Source(queries, "queries")
        self.num_rows = self._source.num_rows
        self.pointer = byref(self._source.rows)


def empty_answer(num_queries: int, k: int, most: int) -> Answer:
    """Places for values and ids; for no query where k is too large, which the library refuses."""
    if k > most:
        num_queries, k = 0, 1
    return np.empty((num_queries, k), np.float32), np.empty((num_queries, k), np.int64)


def shape(file: File) -> tuple[int, int, np.dtype[Any]]:
    """Rows, dims and type of a file of vectors.

    >>> shape("synth:count=1000,dims=16")
    (1000, 16, dtype('float32'))
    """
    rows = Rows()
    call("bitsweep_shape", path_bytes(file, "file"), byref(rows))
    return int(rows.num_rows), int(rows.dims), TYPES[rows.type]


def read(file: File, first_row: int = 0, num_rows: Optional[int] = None) -> npt.NDArray[Any]:
    """Reads vectors: .fvecs .bvecs .fbin .u8bin .i8bin .npy, F.hdf5:DATASET, synth:...

    The array has the type of the file: float32, float16, uint8 or int8. first_row, num_rows: a
    part of the rows; None: all from there on.

    >>> read("synth:count=1000,dims=16", 990).shape
    (10, 16)
    """
    total, dims, kind = shape(file)
    first_row = count("first_row", first_row)
    num_rows = max(total - first_row, 0) if num_rows is None else count("num_rows", num_rows)
    # What reaches beyond the file is the library's to refuse, before memory is taken for it.
    out = np.empty((min(num_rows, total), dims), kind)
    call("bitsweep_read", path_bytes(file, "file"), first_row, num_rows, out.ctypes.data)
    return out


def write(file: File, x: Vectors, *, force: bool = False) -> None:
    """Writes vectors to .fvecs .bvecs .fbin .u8bin .i8bin or .npy: an array, or those of a file.

    A number that the file's type does not have is an error, so nothing is rounded. An existing
    file is an error unless force.
    """
    source = Source(x, "x")
    call("bitsweep_write", path_bytes(file, "file"), byref(source.rows), flag("force", force))


def read_neighbours(
    file: File,
) -> tuple[Optional[npt.NDArray[np.float32]], npt.NDArray[np.int64]]:
    """Reads values and ids of a result or of ground truth: big-ann's layout, .npz, .ivecs, .ibin, HDF5.

    Values are None if the file has ids alone.
    """
    num_queries, k, has_values = c_uint64(), c_uint64(), c_int()
    path = path_bytes(file, "file")
    call("bitsweep_neighbours_shape", path, byref(num_queries), byref(k), byref(has_values))
    values, ids = empty_answer(num_queries.value, k.value, k.value)
    filled = values.ctypes.data if has_values.value else None
    call("bitsweep_read_neighbours", path, filled, ids.ctypes.data)
    return (values if has_values.value else None), ids


def write_neighbours(
    file: File, values: Optional[npt.ArrayLike], ids: npt.ArrayLike, *, force: bool = False
) -> None:
    """Writes values and ids in big-ann's layout or to .npz, or ids alone to .ivecs and .ibin."""
    kept = _as_answers(ids, "ids")
    kept_values = None
    if values is not None:
        kept_values = as_array(values, "values").astype(np.float32, copy=False)
    if kept_values is not None and kept_values.shape != kept.shape:
        raise Error(f"values have the shape {kept_values.shape}, ids {kept.shape}")
    call(
        "bitsweep_write_neighbours",
        path_bytes(file, "file"),
        *kept.shape,
        None if kept_values is None else kept_values.ctypes.data,
        kept.ctypes.data,
        flag("force", force),
    )


def as_ids(ids: npt.ArrayLike, name: str) -> npt.NDArray[np.int64]:
    array = _any_array(ids, name)
    if array.dtype.kind not in "iu":
        raise Error(f"{name}: an array of integers is needed, not of {array.dtype}")
    return np.asarray(array, np.int64, order="C")


def _as_answers(ids: npt.ArrayLike, name: str) -> npt.NDArray[np.int64]:
    array = as_ids(ids, name)
    if array.ndim != 2:
        raise Error(f"{name}: an array of 2 axes is needed, queries and places")
    return array


def recall(ids: npt.ArrayLike, truth: npt.ArrayLike, k: Optional[int] = None) -> float:
    """The share of the k true neighbours of a query that is among its ids, over all queries.

    ids [queries, width], truth [queries, at least k]. k None: the smaller of both widths.

    >>> recall([[3, 1, 2]], [[1, 2, 9]])
    0.6666666666666666
    """
    found, true = _as_answers(ids, "ids"), _as_answers(truth, "truth")
    if len(found) != len(true):
        raise Error(f"ids are of {len(found)} queries, truth of {len(true)}")
    if len(found) == 0:
        raise Error("ids: there are no queries, and so no share of them")
    k = min(found.shape[1], true.shape[1]) if k is None else count("k", k, 1)
    share = c_double()
    call(
        "bitsweep_recall",
        found.ctypes.data,
        found.shape[1],
        true.ctypes.data,
        true.shape[1],
        len(true),
        k,
        byref(share),
    )
    return share.value


@takes("knn")
def knn(
    x: Vectors,
    queries: Optional[Vectors],
    k: int = K,
    metric: Optional[str] = None,
    *,
    comm: Any = None,
    progress: Progress = None,
    **settings: Any,
) -> Answer:
    """The exact k nearest rows of x of each query, by looking at all of them.

    x, queries: arrays or files. metric: "l2", "ip" or "cosine"; None: what a file says. Returns
    values float32 and ids int64, both [queries, k], best first: squared distances (l2) or
    similarities. With comm all ranks call it; others than rank 0 give None as queries and get no
    rows. progress: as in `Index.encode`.

    >>> x = np.eye(4, dtype=np.float32)
    >>> values, ids = knn(x, x[:1] * 2, k=2, metric="l2")
    >>> values.tolist(), ids.tolist()
    ([[1.0, 5.0]], [[0, 1]])

    Settings are the options of `bitsweep groundtruth`, and None is their default:
    """
    asked_for = defaults("knn")
    with Ranks(comm) as ranks:
        asked_for.ranks = ranks.handle
        with ranks.preparing():
            base = Source(x, "x")
            fill(asked_for, "knn", {"k": k, "metric": metric, **settings})
            asked = Asked(queries, ranks)
            values, ids = empty_answer(asked.num_rows, k, MOST_K)
            watch = Watch(asked_for, progress)
        with watch:
            call(
                "bitsweep_knn",
                byref(base.rows),
                asked.pointer,
                byref(asked_for),
                values.ctypes.data,
                ids.ctypes.data,
            )
    return values, ids
