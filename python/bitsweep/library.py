# SPDX-License-Identifier: Apache-2.0
"""libbitsweep by ctypes: its structs, its functions, and what a call needs around it.

The structs are those of coordinator/bitsweep.h; a test compares them with the compiled header.
ctypes releases the GIL during every call.
"""

from __future__ import annotations

import contextlib
import ctypes
import difflib
import errno
import functools
import inspect
import os
import re
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any, Callable, Iterator, TypeVar, Union

STOPPED = 8
USAGE = 1

ProgressFunction = Callable[[str, int, int], object]
Progress = Union[None, bool, ProgressFunction]

# Words for numbers, as in the header.
AUTO = ALL = 2**64 - 1
NONE = 2**64 - 2


class Error(Exception):
    """A call failed. The text is the library's, one line.

    It is also a ValueError where an argument or data cannot be, a FileNotFoundError, a
    FileExistsError or another OSError where files are at fault, and a MemoryError.

    code: number of the header's `enum bitsweep_status`: 1 usage, 2 too large, 3 bad data, 4 input
    or output, 5 out of memory, 6 timeout, 7 peer, 8 stopped, 9 self-check. rank: with several
    ranks the one that found it, else -1.
    """

    def __new__(cls, message: str, code: int = USAGE, rank: int = -1) -> Error:
        kind = _kind_of(message, code) if cls is Error else cls
        maker = OSError if issubclass(kind, OSError) else Exception  # whose memory it has
        return maker.__new__(kind, message)

    def __init__(self, message: str, code: int = USAGE, rank: int = -1) -> None:
        super().__init__(message)
        self.args = (message, code, rank)
        self.code = code
        self.rank = rank

    def __str__(self) -> str:
        return str(self.args[0])


class BadValue(Error, ValueError):
    pass


class NoMemory(Error, MemoryError):
    pass


class SystemFault(Error, OSError):
    pass


class NoFile(Error, FileNotFoundError):
    pass


class FileThere(Error, FileExistsError):
    pass


_THERE = re.compile(r": (exists|holds an index already|has an? (un)?finished )")


def _kind_of(message: str, code: int) -> type[Error]:
    if code == 1 and _THERE.search(message):
        return FileThere
    if code == 4:
        return NoFile if os.strerror(errno.ENOENT) in message else SystemFault
    return {1: BadValue, 2: BadValue, 3: BadValue, 5: NoMemory}.get(code, Error)


class ErrorStruct(Structure):
    c_name = "bitsweep_error"
    _fields_ = [("status", c_int32), ("rank", c_int32), ("message", c_char * 512)]


class Rows(Structure):
    c_name = "bitsweep_rows"
    _fields_ = [
        ("data", c_void_p),
        ("num_rows", c_uint64),
        ("dims", c_uint32),
        ("type", c_int32),
        ("file", c_char_p),
    ]


PROGRESS = CFUNCTYPE(c_int, c_void_p, c_char_p, c_uint64, c_uint64)


class EncodeSettings(Structure):
    c_name = "bitsweep_encode_settings"
    _fields_ = [
        ("size", c_size_t),
        ("codec", c_char_p),
        ("metric", c_char_p),
        ("bits", c_double),
        ("segments", c_char_p),
        ("axes", c_char_p),
        ("subspaces", c_uint64),
        ("rotation", c_char_p),
        ("scale", c_double),
        ("stage_dims", c_uint64),
        ("model", c_char_p),
        ("seed", c_uint64),
        ("shards", c_uint64),
        ("lists", c_uint64),
        ("residual", c_char_p),
        ("calibrate_rows", c_uint64),
        ("calibrate_queries", POINTER(Rows)),
        ("first_row", c_uint64),
        ("num_rows", c_uint64),
        ("copy_vectors", c_int),
        ("drop_bad_rows", c_int),
        ("force", c_int),
        ("resume", c_int),
        ("threads", c_int),
        ("device", c_char_p),
        ("device_memory", c_uint64),
        ("ranks", c_void_p),
        ("progress", PROGRESS),
        ("progress_context", c_void_p),
        ("skip_check", c_int),
    ]


class IndexInfo(Structure):
    c_name = "bitsweep_index_info"
    _fields_ = [
        ("size", c_size_t),
        ("num_rows", c_uint64),
        ("dropped_rows", c_uint64),
        ("first_row", c_uint64),
        ("dims", c_uint32),
        ("type", c_int32),
        ("codec", c_char_p),
        ("metric", c_char_p),
        ("bits", c_double),
        ("bytes_per_vector", c_double),
        ("shards", c_uint32),
        ("lists", c_uint32),
        ("is_residual", c_int),
        ("has_vectors", c_int),
        ("has_calibration", c_int),
        ("check_recall", c_double),
        ("check_cause", c_char * 192),
    ]


class OpenSettings(Structure):
    c_name = "bitsweep_open_settings"
    _fields_ = [
        ("size", c_size_t),
        ("threads", c_int),
        ("device", c_char_p),
        ("device_memory", c_uint64),
        ("is_unchecked", c_int),
        ("check_seconds", c_double),
        ("ranks", c_void_p),
    ]


class SearchSettings(Structure):
    c_name = "bitsweep_search_settings"
    _fields_ = [
        ("size", c_size_t),
        ("k", c_uint64),
        ("oversample", c_double),
        ("refine", c_char_p),
        ("recall", c_double),
        ("probe", c_uint64),
        ("probe_ratio", c_double),
        ("scan_dims", c_uint64),
        ("scan", c_char_p),
        ("table", c_char_p),
        ("query_bits", c_uint64),
        ("exclude_self", c_int),
        ("batch", c_uint64),
        ("progress", PROGRESS),
        ("progress_context", c_void_p),
    ]


class SearchStats(Structure):
    c_name = "bitsweep_search_stats"
    _fields_ = [
        ("size", c_size_t),
        ("seconds", c_double),
        ("load_seconds", c_double),
        ("oversample", c_double),
        ("calibrated_recall", c_double),
        ("lists_per_query", c_double),
        ("rows_per_query", c_double),
        ("resident_bytes", c_uint64),
        ("scan", c_char_p),
        ("device", c_char_p),
    ]


class CalibrateSettings(Structure):
    c_name = "bitsweep_calibrate_settings"
    _fields_ = [
        ("size", c_size_t),
        ("sample", c_uint64),
        ("queries", POINTER(Rows)),
        ("progress", PROGRESS),
        ("progress_context", c_void_p),
    ]


class CalibrateStats(Structure):
    c_name = "bitsweep_calibrate_stats"
    _fields_ = [
        ("size", c_size_t),
        ("seconds", c_double),
        ("num_queries", c_uint64),
        ("k", c_uint64),
        ("num_searches", c_uint64),
        ("num_entries", c_uint64),
        ("least_recall", c_double),
        ("best_recall", c_double),
    ]


class KnnSettings(Structure):
    c_name = "bitsweep_knn_settings"
    _fields_ = [
        ("size", c_size_t),
        ("k", c_uint64),
        ("metric", c_char_p),
        ("exclude_self", c_int),
        ("drop_bad_rows", c_int),
        ("threads", c_int),
        ("device", c_char_p),
        ("device_memory", c_uint64),
        ("ranks", c_void_p),
        ("progress", PROGRESS),
        ("progress_context", c_void_p),
    ]


_ERROR = POINTER(ErrorStruct)
_ROWS = POINTER(Rows)
_PATH = c_char_p
_HANDLE = POINTER(c_void_p)

# What each function returns and takes.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "bitsweep_status_name": (c_char_p, [c_int]),
    "bitsweep_version": (c_char_p, []),
    "bitsweep_version_number": (c_int, []),
    "bitsweep_has": (c_int, [c_char_p]),
    "bitsweep_ranks_open": (c_int, [c_int, c_double, _HANDLE, _ERROR]),
    "bitsweep_ranks_close": (None, [_HANDLE]),
    "bitsweep_ranks_refuse": (c_int, [c_void_p, c_char_p, _ERROR]),
    "bitsweep_encode_defaults_of": (None, [POINTER(EncodeSettings), c_size_t]),
    "bitsweep_index_info_init_of": (None, [POINTER(IndexInfo), c_size_t]),
    "bitsweep_encode": (
        c_int,
        [_PATH, _ROWS, POINTER(EncodeSettings), POINTER(IndexInfo), _ERROR],
    ),
    "bitsweep_open_defaults_of": (None, [POINTER(OpenSettings), c_size_t]),
    "bitsweep_open": (c_int, [_PATH, POINTER(OpenSettings), _HANDLE, _ERROR]),
    "bitsweep_close": (None, [_HANDLE]),
    "bitsweep_info": (None, [c_void_p, POINTER(IndexInfo)]),
    "bitsweep_search_defaults_of": (None, [POINTER(SearchSettings), c_size_t]),
    "bitsweep_search": (
        c_int,
        [c_void_p, _ROWS, POINTER(SearchSettings), c_void_p, c_void_p, _ERROR],
    ),
    "bitsweep_search_stats_init_of": (None, [POINTER(SearchStats), c_size_t]),
    "bitsweep_last_search": (None, [c_void_p, POINTER(SearchStats)]),
    "bitsweep_calibrate_defaults_of": (None, [POINTER(CalibrateSettings), c_size_t]),
    "bitsweep_calibrate_stats_init_of": (None, [POINTER(CalibrateStats), c_size_t]),
    "bitsweep_calibrate": (
        c_int,
        [c_void_p, POINTER(CalibrateSettings), POINTER(CalibrateStats), _ERROR],
    ),
    "bitsweep_knn_defaults_of": (None, [POINTER(KnnSettings), c_size_t]),
    "bitsweep_knn": (c_int, [_ROWS, _ROWS, POINTER(KnnSettings), c_void_p, c_void_p, _ERROR]),
    "bitsweep_recall": (
        c_int,
        [c_void_p, c_uint64, c_void_p, c_uint64, c_uint64, c_uint64, POINTER(c_double), _ERROR],
    ),
    "bitsweep_shape": (c_int, [_PATH, _ROWS, _ERROR]),
    "bitsweep_read": (c_int, [_PATH, c_uint64, c_uint64, c_void_p, _ERROR]),
    "bitsweep_write": (c_int, [_PATH, _ROWS, c_int, _ERROR]),
    "bitsweep_neighbours_shape": (
        c_int,
        [_PATH, POINTER(c_uint64), POINTER(c_uint64), POINTER(c_int), _ERROR],
    ),
    "bitsweep_read_neighbours": (c_int, [_PATH, c_void_p, c_void_p, _ERROR]),
    "bitsweep_write_neighbours": (
        c_int,
        [_PATH, c_uint64, c_uint64, c_void_p, c_void_p, c_int, _ERROR],
    ),
}

SONAME = "libbitsweep.so.0.2"  # of the header that the structs are of


def _find_library() -> str:
    """BITSWEEP_LIBRARY, or the one that was installed with this package, or the system's."""
    named = os.environ.get("BITSWEEP_LIBRARY")
    if named:
        return named
    for file in sorted(Path(__file__).parent.glob("libbitsweep.so*")):
        return str(file)
    return SONAME


@contextlib.contextmanager
def _short_spins() -> Iterator[None]:
    """For libgomp, which reads its variables when it is loaded.

    By itself it lets a thread that waits for others spin for some 10 ms, in which it may keep the
    one it waits for from running. As the program has it (coordinator/job/program.c).
    """
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "10000"
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _load() -> ctypes.CDLL:
    path = _find_library()
    try:
        with _short_spins():
            loaded = ctypes.CDLL(path)
    except OSError as error:
        missing = str(error).split(":")[0]
        what = (
            "install it, or set BITSWEEP_LIBRARY to it"
            if missing == path
            else "which it needs of the system; docs/python.md names the packages"
        )
        raise ImportError(f"libbitsweep cannot be loaded: {error}; {what}") from error
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(loaded, name)
        except AttributeError:
            raise ImportError(f"{path} has no {name}: it is of another version") from None
        function.restype = result
        function.argtypes = arguments
    return loaded


lib = _load()


def path_bytes(path: Any, name: str) -> bytes:
    """The bytes of a file name, for the library. name: of the argument."""
    try:
        encoded = os.fsencode(path)
    except TypeError:
        raise TypeError(f"{name} must be the name of a file, not {shown(path)}") from None
    if b"\0" in encoded:
        raise ValueError(f"{name}: embedded null byte")
    return encoded


def shown(value: Any) -> str:
    """A wrong value, for one line of text."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


# What an option, or rows in memory, are called here where the name is not the same.
_ARGUMENTS = {
    "base": "x",
    "rows": "x",
    "calibrate": "calibrate_rows",
    "check-every": "check_seconds",
    "stage": "stage_dims",
}
_FLAG = re.compile(
    r"--(force|resume|copy-vectors|drop-bad-rows|exclude-self|skip-check)\b(?![:-])"
)
_RANGE = re.compile(r"^--rows\b")
_OPTION_OF = re.compile(r"\b(encode|search) --([a-z]+(?:-[a-z]+)*)")
_OPTION = re.compile(r"(?<![\w/.-])--([a-z]+(?:-[a-z]+)*)")
_MEMORY = re.compile(r"\bmemory:(base|rows|queries|calibrate-queries)\b")


def _argument(option: str) -> str:
    return _ARGUMENTS.get(option, option.replace("-", "_"))


def as_written(message: str) -> str:
    """A line of the library with the names of arguments in place of those of options.

    >>> as_written("--probe-ratio 0.001: must be 0.01 to 1000")
    'probe_ratio 0.001: must be 0.01 to 1000'
    >>> as_written("--probe: idx has no lists; encode --lists makes some")
    'probe: idx has no lists; encode(lists=) makes some'
    >>> as_written("memory:base: row 7 has a NaN or Inf")
    'x: row 7 has a NaN or Inf'
    >>> as_written("idx: holds an index already; --force replaces it")
    'idx: holds an index already; force=True replaces it'
    """
    message = _RANGE.sub("first_row, num_rows", message)
    message = _FLAG.sub(lambda m: f"{_argument(m[1])}=True", message)
    message = _OPTION_OF.sub(lambda m: f"{m[1]}({_argument(m[2])}=)", message)
    message = _OPTION.sub(lambda m: _argument(m[1]), message)
    return _MEMORY.sub(lambda m: _argument(m[1]), message)


# What others call an argument.
_KNOWN_AS = {
    "nprobe": "probe",
    "n_probe": "probe",
    "n_probes": "probe",
    "nlist": "lists",
    "n_lists": "lists",
    "nbits": "bits",
    "n_bits": "bits",
    "topk": "k",
    "top_k": "k",
    "n_neighbors": "k",
    "num_neighbors": "k",
    "space": "metric",
    "metric_type": "metric",
    "num_threads": "threads",
    "n_jobs": "threads",
    "k_factor": "oversample",
}

_Function = TypeVar("_Function", bound=Callable[..., Any])


def with_hints(function: _Function) -> _Function:
    """An argument that there is not is a TypeError that names the one that was meant."""
    known = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]

    @functools.wraps(function)
    def wrapped(*arguments: Any, **more: Any) -> Any:
        for name in more:
            if name in known:
                continue
            close = difflib.get_close_matches(name, known, 1)
            meant = _KNOWN_AS.get(name.lower(), "")
            if meant in known or close:
                hint = f": did you mean {meant if meant in known else close[0]}?"
            else:
                hint = f"; there are {', '.join(known)}"
            raise TypeError(f"{function.__name__} has no argument {name}{hint}")
        return function(*arguments, **more)

    return wrapped  # type: ignore[return-value]


def check(status: int, error: ErrorStruct) -> None:
    """Raises Error unless a call succeeded."""
    if status:
        raise Error(as_written(os.fsdecode(error.message)), status, error.rank)


def call(name: str, *arguments: Any) -> None:
    """Calls a function whose last argument is the error."""
    error = ErrorStruct()
    check(getattr(lib, name)(*arguments, byref(error)), error)


class Ranks:
    """The processes of a communicator of mpi4py, or this process alone."""

    def __init__(self, comm: Any, timeout: float = 0) -> None:
        self.handle = c_void_p()
        self.rank = 0
        if comm is not None:
            if not hasattr(comm, "py2f"):
                raise TypeError(f"comm must be a communicator of mpi4py, not {shown(comm)}")
            self.rank = comm.Get_rank()
            call("bitsweep_ranks_open", comm.py2f(), timeout, byref(self.handle))

    @property
    def are_several(self) -> bool:
        return bool(self.handle)

    @contextlib.contextmanager
    def preparing(self) -> Iterator[None]:
        """Around what is checked here before a call of the library.

        The other ranks make that call. What is wrong on this one is an error on all of them.
        """
        try:
            yield
        except BaseException as error:  # an interrupt, too
            if self.are_several:
                why = " ".join(str(error).split()) or type(error).__name__
                with contextlib.suppress(Error):  # which it always is
                    call("bitsweep_ranks_refuse", self.handle, os.fsencode(why))
            raise

    def close(self) -> None:
        lib.bitsweep_ranks_close(byref(self.handle))

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
