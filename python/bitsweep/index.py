# SPDX-License-Identifier: Apache-2.0
"""An index: a folder with codes of vectors."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
import weakref
from ctypes import Structure, byref, c_char_p, c_void_p, pointer, sizeof
from typing import Any, Iterator, Optional, Union

import numpy as np

from .library import (
    ALL,
    AUTO,
    NONE,
    CalibrateSettings,
    CalibrateStats,
    EncodeSettings,
    Error,
    IndexInfo,
    OpenSettings,
    Progress,
    Ranks,
    SearchSettings,
    SearchStats,
    call,
    lib,
    path_bytes,
    with_hints,
)
from .settings import fill, flag
from .vectors import TYPES, Answer, Asked, File, Source, Vectors, empty_answer
from .watch import Watch

LEAST_RECALL = 0.9  # of the check of codes; less is worth a warning

_WORDS = {
    "lists": {"auto": AUTO},
    "probe": {"all": ALL},
    "calibrate_rows": {"none": NONE},
    "stage_dims": {"none": NONE},
}


def _facts(struct: Structure) -> dict[str, Any]:
    """The members of a struct by name; texts are texts."""
    facts = {}
    for name, kind in (field[:2] for field in struct._fields_[1:]):
        value = getattr(struct, name)
        if kind is c_char_p:
            value = value.decode() if value is not None else None
        elif isinstance(value, bytes):
            value = value.decode()
        elif name.startswith(("is_", "has_")):
            value = bool(value)
        facts[name] = value
    return facts


class Index:
    """An index that was made before, by the program or by `Index.encode`.

    threads: of searches; None: OMP_NUM_THREADS or all cores. device: "auto" (default), "cpu",
    "cuda", "cuda:N". device_memory: bytes of a GPU to use at most. checked False: without checks
    of known answers. comm: a communicator of mpi4py; then all its ranks make the same calls, rank
    0 gives the queries and gets the answers, and every rank must close the index.

    Searches of one index from several threads are done one after the other. A copy of an index, and
    one that was pickled, is its folder opened again with the same settings.
    """

    @with_hints
    def __init__(
        self,
        folder: File,
        *,
        threads: Optional[int] = None,
        device: Optional[str] = None,
        device_memory: Optional[int] = None,
        checked: bool = True,
        check_seconds: Optional[float] = None,
        comm: Any = None,
    ) -> None:
        self._handle = c_void_p()
        self._renew()
        settings = OpenSettings()
        lib.bitsweep_open_defaults_of(byref(settings), sizeof(settings))
        self._ranks = Ranks(comm)
        settings.ranks = self._ranks.handle
        try:
            with self._ranks.preparing():
                # Absolute: it is looked into again, wherever the process is then.
                path = os.path.abspath(path_bytes(folder, "folder"))
                fill(
                    settings,
                    {},
                    threads=threads,
                    device=device,
                    device_memory=device_memory,
                    is_unchecked=not flag("checked", checked),
                    check_seconds=check_seconds,
                )
            call("bitsweep_open", path, byref(settings), byref(self._handle))
        except BaseException:
            self._ranks.close()
            raise
        self._info = self._ask_info()
        self.folder = folder
        self._opened = (
            os.path.abspath(os.fspath(folder)),
            {
                "threads": threads,
                "device": device,
                "device_memory": device_memory,
                "checked": checked,
                "check_seconds": check_seconds,
            },
        )
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
        info = IndexInfo()
        lib.bitsweep_index_info_init_of(byref(info), sizeof(info))
        lib.bitsweep_info(self._handle, byref(info))
        facts = _facts(info)
        facts["dtype"] = TYPES[facts.pop("type")]
        return facts

    @classmethod
    @with_hints
    def encode(
        cls,
        x: Vectors,
        folder: File,
        *,
        metric: Optional[str] = None,
        codec: Optional[str] = None,
        bits: Optional[float] = None,
        lists: Union[None, int, str] = None,
        segments: Optional[str] = None,
        axes: Optional[str] = None,
        subspaces: Optional[int] = None,
        rotation: Optional[str] = None,
        scale: Optional[float] = None,
        stage_dims: Union[None, int, str] = None,
        model: Optional[File] = None,
        seed: Optional[int] = None,
        shards: Optional[int] = None,
        residual: Optional[str] = None,
        calibrate_rows: Union[None, int, str] = None,
        calibrate_queries: Optional[Vectors] = None,
        first_row: Optional[int] = None,
        num_rows: Optional[int] = None,
        copy_vectors: bool = False,
        drop_bad_rows: bool = False,
        force: bool = False,
        resume: bool = False,
        skip_check: bool = False,
        threads: Optional[int] = None,
        device: Optional[str] = None,
        device_memory: Optional[int] = None,
        comm: Any = None,
        progress: Progress = None,
    ) -> Index:
        """Makes an index of vectors, an array or a file, in a new folder, and opens it.

        Settings are the options of `bitsweep encode`, and None is their default:

        metric: "l2", "ip" or "cosine"; needed unless the file or the codec says it.
        codec: "saq" (default), "pq", "sq8", "raw", "xfbq", "rbe". bits: 1 to 8 a dimension,
        default 3; pq: 4 or 8 a subspace. lists: a number or "auto": a search looks at some lists
        only, as many as the recall needs that it asks for. copy_vectors: keeps the vectors in
        the folder, where searches refine by them; those of an array always are. force: replaces
        an index that is there. resume: goes on where a call with the same vectors and settings was
        stopped or killed, without force; if there was none, it begins. An index that is whole is
        an error all the same.
        stage_dims and calibrate_rows may be "none". Before the index is made rows of a sample are
        searched by their codes (info: check_recall); a RuntimeWarning says why they find little,
        and names rows that lie far from all others. skip_check leaves that out.
        rotation: of pq "opq" (default), "random" or
        "none"; of xfbq "random" or "none", by default whichever codes a sample better.

        progress: a function of (phase, done, total), which may return True to stop the call with
        Error 8; or True: a bar of tqdm if it is installed. Ctrl-C stops it, too.
        """
        settings = EncodeSettings()
        lib.bitsweep_encode_defaults_of(byref(settings), sizeof(settings))
        with Ranks(comm) as ranks:
            settings.ranks = ranks.handle
            with ranks.preparing():
                source, path = Source(x, "x"), path_bytes(folder, "folder")
                fill(
                    settings,
                    _WORDS,
                    metric=metric,
                    codec=codec,
                    bits=bits,
                    lists=lists,
                    segments=segments,
                    axes=axes,
                    subspaces=subspaces,
                    rotation=rotation,
                    scale=scale,
                    stage_dims=stage_dims,
                    model=model,
                    seed=seed,
                    shards=shards,
                    residual=residual,
                    calibrate_rows=calibrate_rows,
                    first_row=first_row,
                    num_rows=num_rows,
                    copy_vectors=copy_vectors,
                    drop_bad_rows=drop_bad_rows,
                    force=force,
                    resume=resume,
                    skip_check=skip_check,
                    threads=threads,
                    device=device,
                    device_memory=device_memory,
                )
                if calibrate_queries is not None:
                    queries = Source(calibrate_queries, "calibrate_queries")
                    settings.calibrate_queries = pointer(queries.rows)
                watch = Watch(settings, progress)
            with watch:
                call("bitsweep_encode", path, byref(source.rows), byref(settings), None)
        ix = cls(folder, threads=threads, device=device, device_memory=device_memory, comm=comm)
        ix._warn()
        return ix

    def _warn(self) -> None:
        """Says what the check of the codes has found, where it is worth a warning."""
        recall, cause = self._info["check_recall"], self._info["check_cause"]
        if cause and recall < LEAST_RECALL:
            cause = f"10-recall@50 of the sample {recall:.4f}: {cause}"
        if cause:
            warnings.warn(cause, RuntimeWarning, stacklevel=3)

    @with_hints
    def search(
        self,
        queries: Optional[Vectors],
        k: int = 10,
        *,
        recall: Optional[float] = None,
        probe: Union[None, int, str] = None,
        probe_ratio: Optional[float] = None,
        oversample: Optional[float] = None,
        refine: Optional[str] = None,
        scan_dims: Optional[int] = None,
        scan: Optional[str] = None,
        table: Optional[str] = None,
        query_bits: Optional[int] = None,
        exclude_self: bool = False,
        batch: Optional[int] = None,
        progress: Progress = None,
    ) -> Answer:
        """The k nearest rows of each query, best first, as FAISS gives them.

        Returns values float32 [queries, k], squared distances (l2) or similarities (ip, cosine),
        and ids int64 [queries, k]; a place without a neighbour has id -1. C-ordered queries of
        float32, float16, uint8 or int8 are not copied.

        Settings are the options of `bitsweep search`. With lists: recall (0.5 to 1), or probe (a
        number of lists, or "all"), or probe_ratio. oversample: k times this many candidates get
        exact values, default 5. refine "none": by code alone. exclude_self: row i is left out of
        the answer of query i. progress: as in `encode`.

        With comm, ranks other than 0 give None and get no rows.
        """
        settings = SearchSettings()
        lib.bitsweep_search_defaults_of(byref(settings), sizeof(settings))
        with self._alone():
            with self._ranks.preparing():
                asked = Asked(queries, self._ranks)
                fill(
                    settings,
                    _WORDS,
                    k=k,
                    recall=recall,
                    probe=probe,
                    probe_ratio=probe_ratio,
                    oversample=oversample,
                    refine=refine,
                    scan_dims=scan_dims,
                    scan=scan,
                    table=table,
                    query_bits=query_bits,
                    exclude_self=exclude_self,
                    batch=batch,
                )
                values, ids = empty_answer(asked.num_rows, k, 10_000)
                watch = Watch(settings, progress)
            with watch:
                call(
                    "bitsweep_search",
                    self._handle,
                    asked.pointer,
                    byref(settings),
                    values.ctypes.data,
                    ids.ctypes.data,
                )
        return values, ids

    @with_hints
    def calibrate(
        self,
        queries: Optional[Vectors] = None,
        *,
        sample: Optional[int] = None,
        progress: Progress = None,
    ) -> dict[str, Any]:
        """Measures what searches of some lists find, for `search(recall=)`, and keeps it in the
        folder in place of what was there.

        queries: vectors like those to come, with comm the same on all ranks; None: rows of the
        index, `sample` of them, default 1000 or a tenth. Returns seconds, num_queries, k,
        num_searches, num_entries (0: too few rows, and nothing was changed), least_recall and
        best_recall, which is the most that `recall` of a search can promise.
        """
        settings, stats = CalibrateSettings(), CalibrateStats()
        lib.bitsweep_calibrate_defaults_of(byref(settings), sizeof(settings))
        lib.bitsweep_calibrate_stats_init_of(byref(stats), sizeof(stats))
        with self._alone():
            with self._ranks.preparing():
                fill(settings, {}, sample=sample)
                if queries is not None:
                    source = Source(queries, "queries")
                    settings.queries = pointer(source.rows)
                watch = Watch(settings, progress)
            with watch:
                call("bitsweep_calibrate", self._handle, byref(settings), byref(stats))
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
        lists_per_query, rows_per_query, resident_bytes, scan, device."""
        stats = SearchStats()
        lib.bitsweep_search_stats_init_of(byref(stats), sizeof(stats))
        with self._lock:
            self._check()
            lib.bitsweep_last_search(self._handle, byref(stats))
        return _facts(stats)

    @property
    def info(self) -> dict[str, Any]:
        """What the index is: num_rows, dropped_rows, first_row, dims, dtype, codec, metric, bits,
        bytes_per_vector, shards, lists, is_residual, has_vectors, has_calibration, check_recall,
        check_cause."""
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

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        # Ranks close together, which is not when each of them happens to collect its garbage.
        if getattr(self, "_handle", None) and not self._ranks.are_several:
            self.close()


def _reopen(folder: File, settings: dict[str, Any]) -> Index:
    return Index(folder, **settings)


_open: weakref.WeakSet[Index] = weakref.WeakSet()


def _renew_all() -> None:
    for ix in list(_open):
        ix._renew()


os.register_at_fork(after_in_child=_renew_all)
