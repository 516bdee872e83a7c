# SPDX-License-Identifier: Apache-2.0
"""An index: a folder with codes of vectors."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import warnings
import weakref
from ctypes import Structure, byref, c_char_p, c_uint64, c_void_p, memmove
from typing import Any, Iterator, Optional, Union

import numpy as np
import numpy.typing as npt

from .arguments import settings_of, takes
from .header import header
from .library import Error, Progress, Ranks, as_written, call, lib, new, path_bytes
from .settings import defaults, fill, integers, number
from .text import TextModel, Texts
from .vectors import TYPES, Answer, Asked, File, Source, Vectors, as_ids, empty_answer
from .watch import Watch

LEAST_RECALL = 0.9  # of the check of codes; less is worth a warning

K = int(defaults("search").k)


def _facts(struct: Structure) -> dict[str, Any]:
    """The members of a struct by name; texts are texts."""
    facts = {}
    for name, kind, _ in header.members[type(struct).__name__][1:]:
        value = getattr(struct, name)
        if kind is c_char_p:
            value = value.decode() if value is not None else None
        elif isinstance(value, bytes):
            value = value.decode()
        elif name.startswith(("is_", "has_")):
            value = bool(value)
        facts[name] = value
    return facts


def _ranges(
    found: c_void_p,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Copies of what a range search found; nothing on ranks other than 0."""
    if not found:
        return np.zeros(1, np.int64), np.empty(0, np.float32), np.empty(0, np.int64)
    num = lib.bitsweep_range_num_queries(found)
    lims = _copy(lib.bitsweep_range_lims(found), num + 1, np.int64)
    values = _copy(lib.bitsweep_range_values(found), int(lims[-1]), np.float32)
    return lims, values, _copy(lib.bitsweep_range_ids(found), int(lims[-1]), np.int64)


def _copy(address: Optional[int], count: int, dtype: Any) -> npt.NDArray[Any]:
    out = np.empty(count, dtype)
    if count:
        memmove(out.ctypes.data, address, out.nbytes)
    return out


class Index:
    """An index that was made before, by the program or by `Index.encode`.

    comm: a communicator of mpi4py; then all its ranks make the same calls, rank 0 gives the queries
    and gets the answers, and every rank must close the index. Its settings are those of __init__.

    Searches of one index from several threads are done one after the other. A copy of an index, and
    one that was pickled, is its folder opened again with the same settings.
    """

    folder: File
    _text: Optional[TextModel] = None  # that the index keeps, once it was asked by text
    _remove: Any = None  # removes a temporary folder

    @takes("open")
    def __init__(self, folder: File, *, comm: Any = None, **settings: Any) -> None:
        """Opens the index in a folder. Settings, None being the default:"""
        self._handle = c_void_p()
        self._renew()
        opened = defaults("open")
        self._ranks = Ranks(comm)
        opened.ranks = self._ranks.handle
        try:
            with self._ranks.preparing():
                # Absolute: it is looked into again, wherever the process is then.
                path = os.path.abspath(path_bytes(folder, "folder"))
                fill(opened, "open", settings)
            call("bitsweep_open", path, byref(opened), byref(self._handle))
        except BaseException:
            self._ranks.close()
            raise
        self._info = self._ask_info()
        self.folder = folder
        self._opened = (os.path.abspath(os.fspath(folder)), settings)
        _open.add(self)

    def _renew(self) -> None:
        """As it begins, and in a child: a thread that has the lock is not there."""
        self._lock = threading.RLock()
        self._is_busy = False

    def __reduce__(self) -> tuple[Any, ...]:
        self._check()
        folder, settings = self._opened
        if self._ranks.are_several:
            raise Error("an index with comm is neither copied nor pickled: each rank opens it")
        if not os.path.isdir(folder):
            raise Error(
                f"{os.fsdecode(folder)} is gone: an index is copied and pickled as its folder"
            )
        return _reopen, (folder, settings)

    def _ask_info(self) -> dict[str, Any]:
        info = new("bitsweep_index_info", "bitsweep_index_info_init_of")
        lib.bitsweep_info(self._handle, byref(info))
        facts = _facts(info)
        facts["dtype"] = TYPES[facts.pop("type")]
        return facts

    @classmethod
    @takes("encode")
    def encode(
        cls,
        x: Vectors,
        folder: Optional[File] = None,
        *,
        comm: Any = None,
        progress: Progress = None,
        **settings: Any,
    ) -> Index:
        """Makes an index of vectors, an array or a file, in a new folder, and opens it.

        Without a folder it is a temporary one, which goes when the index is closed. Before the
        index is made rows of a sample are searched by their codes (info: check_recall); a
        RuntimeWarning says why they find little, and names rows that lie far from all others.

        progress: a function of (phase, done, total), which may return True to stop the call with
        Error 8; or True: a bar of tqdm if it is installed. Ctrl-C stops it, too.

        Settings are the options of `bitsweep encode`, and None is their default:
        """
        if folder is not None:
            return cls._encode(x, folder, comm, progress, settings)
        if comm is not None:
            raise Error("folder: with comm all ranks need the same one")
        folder = tempfile.mkdtemp(prefix="bitsweep-")
        try:
            ix = cls._encode(x, os.path.join(folder, "index"), comm, progress, settings)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        ix._remove = weakref.finalize(ix, _remove_own, folder, os.getpid())
        return ix

    @classmethod
    def _encode(
        cls, x: Vectors, folder: File, comm: Any, progress: Progress, settings: dict[str, Any]
    ) -> Index:
        asked = defaults("encode")
        with Ranks(comm) as ranks:
            asked.ranks = ranks.handle
            with ranks.preparing():
                source, path = Source(x, "x"), path_bytes(folder, "folder")
                fill(asked, "encode", settings, Source)
                watch = Watch(asked, progress)
            with watch:
                call("bitsweep_encode", path, byref(source.rows), byref(asked), None)
        both = settings.keys() & settings_of("open").keys()
        ix = cls(folder, comm=comm, **{name: settings[name] for name in both})
        ix._warn()
        return ix

    def _warn(self) -> None:
        """Says what the check of the codes has found, where it is worth a warning."""
        recall, cause = self._info["check_recall"], self._info["check_cause"]
        if cause and recall < LEAST_RECALL:
            cause = f"10-recall@50 of the sample {recall:.4f}: {cause}"
        if cause:
            warnings.warn(as_written(cause), RuntimeWarning, stacklevel=5)

    @takes("search", without=("margin", "max_candidates"))
    def search(
        self,
        queries: Optional[Vectors] = None,
        k: int = K,
        *,
        text: Optional[Texts] = None,
        progress: Progress = None,
        **settings: Any,
    ) -> Answer:
        """The k nearest rows of each query, best first, as FAISS gives them.

        Returns values float32 [queries, k], squared distances (l2) or similarities (ip, cosine),
        and ids int64 [queries, k]; a place without a neighbour has id -1. C-ordered queries of
        float32, float16, uint8 or int8 are not copied. progress: as in `encode`. With comm, ranks
        other than 0 give None and get no rows.

        text: in place of queries, of an index of texts: one or several questions.

        Settings are the options of `bitsweep search`. Of an index with lists recall, probe or
        probe_ratio say how many are looked at; without them it is as recall 0.99, or the most that
        the table of the index has.
        """
        asked_for = defaults("search")
        with self._alone():
            with self._ranks.preparing():
                asked = Asked(queries if text is None else self._embed(queries, text), self._ranks)
                fill(asked_for, "search", {"k": k, **settings})
                values, ids = empty_answer(asked.num_rows, k, 10_000)
                watch = Watch(asked_for, progress)
            with watch:
                call(
                    "bitsweep_search",
                    self._handle,
                    asked.pointer,
                    byref(asked_for),
                    values.ctypes.data,
                    ids.ctypes.data,
                )
        return values, ids

    def _embed(self, queries: Optional[Vectors], text: Texts) -> npt.NDArray[np.float32]:
        if queries is not None:
            raise ValueError("text stands in place of queries: give one of them")
        if self._text is None:
            self._text = TextModel(self._opened[0])
        return self._text.embed(text)

    @takes("search", without=("k", "oversample", "recall", "scan_dims"))
    def range_search(
        self,
        queries: Optional[Vectors],
        within: float,
        *,
        progress: Progress = None,
        **settings: Any,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """All rows of each query within a value: squared distances (l2) of at most that,
        similarities of at least that.

        Returns lims int64 [queries + 1], values float32 and ids int64, as FAISS gives them: those
        of query q are values[lims[q] : lims[q + 1]], best first. Rows are compared by exact values
        among candidates that estimates choose (margin), or by estimates alone with refine="none".
        Of an index with lists all are looked at, unless probe or probe_ratio say fewer. With comm,
        ranks other than 0 give None and get no rows. progress: as in `encode`.

        Settings are the options of `bitsweep search --within`:
        """
        asked_for, found = defaults("search"), c_void_p()
        with self._alone():
            with self._ranks.preparing():
                asked = Asked(queries, self._ranks)
                limit = number("within", within)
                fill(asked_for, "search", settings)
                watch = Watch(asked_for, progress)
            with watch:
                call(
                    "bitsweep_range_search",
                    self._handle,
                    asked.pointer,
                    limit,
                    byref(asked_for),
                    byref(found),
                )
        try:
            return _ranges(found)
        finally:
            lib.bitsweep_range_free(byref(found))

    def reconstruct(self, ids: npt.ArrayLike) -> npt.NDArray[Any]:
        """The rows with these ids, exact and of the index's dtype: [..., dims] for ids [...].

        They are those of the folder, or of the file that the index refers to. An id that is none
        of the index, as the -1 of a place without a neighbour, is an error.
        """
        wanted = as_ids(ids, "ids")
        rows = np.empty((*wanted.shape, self.dims), self.dtype)
        with self._alone():
            call(
                "bitsweep_reconstruct",
                self._handle,
                wanted.ctypes.data,
                wanted.size,
                rows.ctypes.data,
            )
        return rows

    @takes("change")
    def append(
        self,
        x: Vectors,
        *,
        progress: Progress = None,
        **settings: Any,
    ) -> None:
        """Adds vectors, an array or a file, coded as the others are; their numbers follow the last
        row's. progress: as in `encode`.

        This and `delete`, `compact` and `set_source` make a new generation of the index in its folder. Whoever
        has opened the one before goes on with that; one process at a time changes an index. With
        comm all ranks give the same vectors, and rank 0 the ids.
        """
        asked = defaults("change")
        with self._alone():
            with self._ranks.preparing():
                source = Source(x, "x")
                fill(asked, "change", settings)
                watch = Watch(asked, progress)
            with watch:
                call("bitsweep_append", self._handle, byref(source.rows), byref(asked))
            self._info = self._ask_info()

    def delete(
        self, rows: Optional[npt.ArrayLike] = None, *, ids: Optional[npt.ArrayLike] = None
    ) -> int:
        """Takes rows out, by their numbers or their ids, and returns how many were there.

        A row that was deleted before counts as none, one that never was is an error, and nothing is
        deleted.
        """
        count = c_uint64()
        with self._alone():
            with self._ranks.preparing():
                if (rows is None) == (ids is None):
                    raise TypeError("delete needs either rows or ids")
                numbers = integers("rows" if ids is None else "ids", rows if ids is None else ids)
            call(
                "bitsweep_delete",
                self._handle,
                numbers.ctypes.data,
                numbers.size,
                ids is not None,
                byref(count),
            )
            self._info = self._ask_info()
        return count.value

    def compact(self, *, shards: Optional[int] = None, progress: Progress = None) -> None:
        """Makes the index anew without its deleted rows, with the same codes. Rows are then
        numbered from 0 on; ids stay. Raw rows are in the folder afterwards."""
        asked = defaults("change")
        with self._alone():
            with self._ranks.preparing():
                fill(asked, "change", {"shards": shards})
                watch = Watch(asked, progress)
            with watch:
                call("bitsweep_compact", self._handle, byref(asked))
            self._info = self._ask_info()

    def set_source(self, file: File) -> None:
        """The file of vectors that the index refers to is this one now: it has moved.

        Its rows must be the same. An index that has its rows in its folder refers to no file.
        """
        with self._alone():
            with self._ranks.preparing():
                path = os.path.abspath(path_bytes(file, "file"))
            call("bitsweep_set_source", self._handle, path)
            self._info = self._ask_info()

    @takes("calibrate")
    def calibrate(
        self,
        queries: Optional[Vectors] = None,
        *,
        progress: Progress = None,
        **settings: Any,
    ) -> dict[str, Any]:
        """Measures what searches of some lists find, for `search(recall=)`, and keeps it in the
        folder in place of what was there.

        queries: vectors like those to come, with comm the same on all ranks; None: rows of the
        index, `sample` of them. Returns seconds, num_queries, k, num_searches, num_entries (0: too
        few rows, and nothing was changed), least_recall and best_recall, which is the most that
        `recall` of a search can promise.
        """
        asked = defaults("calibrate")
        stats = new("bitsweep_calibrate_stats", "bitsweep_calibrate_stats_init_of")
        with self._alone():
            with self._ranks.preparing():
                fill(asked, "calibrate", {"queries": queries, **settings}, Source)
                watch = Watch(asked, progress)
            with watch:
                call("bitsweep_calibrate", self._handle, byref(asked), byref(stats))
            self._info = self._ask_info()
        return _facts(stats)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Around a call: after those of other threads, and not inside one of this thread."""
        with self._lock:
            self._check()
            self._is_busy = True
            try:
                yield
            finally:
                self._is_busy = False

    def _check(self) -> None:
        if not self._handle:
            raise Error("the index is closed")
        if self._is_busy:
            raise Error("a progress function may not use the index that it is called for")

    @property
    def last_search(self) -> dict[str, Any]:
        """What the last search did: seconds, load_seconds, oversample, calibrated_recall,
        lists_per_query, rows_per_query, resident_bytes, scan, device, coverage (below 1 where
        allow_partial did without missing_shards)."""
        stats = new("bitsweep_search_stats", "bitsweep_search_stats_init_of")
        with self._lock:
            self._check()
            lib.bitsweep_last_search(self._handle, byref(stats))
        return _facts(stats)

    @property
    def info(self) -> dict[str, Any]:
        """What the index is: num_rows, dropped_rows, first_row, dims, dtype, codec, metric, bits,
        bytes_per_vector, shards, lists, is_residual, has_vectors, has_calibration, check_recall,
        check_cause, deleted_rows, generation, has_ids, has_tags."""
        return dict(self._info)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and dims."""
        return self._info["num_rows"], self._info["dims"]

    @property
    def dims(self) -> int:
        return int(self._info["dims"])

    @property
    def ntotal(self) -> int:
        """Rows, as FAISS calls them."""
        return len(self)

    @property
    def d(self) -> int:
        """Dims, as FAISS calls them."""
        return self.dims

    @property
    def metric(self) -> str:
        return str(self._info["metric"])

    @property
    def codec(self) -> str:
        return str(self._info["codec"])

    @property
    def bits(self) -> float:
        """A dimension."""
        return float(self._info["bits"])

    @property
    def lists(self) -> int:
        """0: none."""
        return int(self._info["lists"])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the vectors that were encoded."""
        dtype: np.dtype[Any] = self._info["dtype"]
        return dtype

    def __len__(self) -> int:
        return int(self._info["num_rows"])

    def __repr__(self) -> str:
        rows, dims = self.shape
        name = os.fsdecode(self.folder)
        return f"<bitsweep.Index {name!r}: {rows} x {dims}, {self.codec}, {self.metric}>"

    def close(self) -> None:
        """Frees its memory. With comm: all ranks."""
        with self._lock:
            if self._is_busy:
                self._check()
            lib.bitsweep_close(byref(self._handle))
            self._ranks.close()
            if self._remove:
                self._remove()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        # Ranks close together, which is not when each of them happens to collect its garbage.
        if getattr(self, "_handle", None) and not self._ranks.are_several:
            self.close()


def _remove_own(folder: str, process: int) -> None:
    """A child that was forked leaves it to its parent."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _reopen(folder: File, settings: dict[str, Any]) -> Index:
    return Index(folder, **settings)


_open: weakref.WeakSet[Index] = weakref.WeakSet()


def _renew_all() -> None:
    for ix in list(_open):
        ix._renew()


os.register_at_fork(after_in_child=_renew_all)
