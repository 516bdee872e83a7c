# SPDX-License-Identifier: Apache-2.0
"""libbitsweep by ctypes, as header.py has it, and what a call needs around it.

ctypes releases the GIL during every call.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
from ctypes import Structure, byref, c_int, c_void_p, sizeof
from pathlib import Path
from typing import Any, Callable, Iterator, Union

from .arguments import settings_of
from .header import header

STOPPED = header.numbers["ERROR_STOPPED"]
USAGE = header.numbers["ERROR_USAGE"]
IO = header.numbers["ERROR_IO"]
NONE = header.numbers["NONE"]
SONAME = "libbitsweep.so.{VERSION_MAJOR}.{VERSION_MINOR}".format_map(header.numbers)
PROGRESS = header.callbacks["bitsweep_progress"]
Rows = header.structs["bitsweep_rows"]

ProgressFunction = Callable[[str, int, int], object]
Progress = Union[None, bool, ProgressFunction]


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
    for name, (result, arguments) in header.functions.items():
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


_CALLS = [n[len("bitsweep_") : -len("_settings")] for n in header.members if n.endswith("_settings")]
_SETTINGS = [setting for call in _CALLS for setting in settings_of(call).values()]
_FLAGS = {s.name.replace("_", "-") for s in _SETTINGS if s.kind == "bool"}
_WORDS = {(s.name, word) for s in _SETTINGS for word in re.findall(r'"([\w-]+)"', s.says)}

_FLAG = re.compile(rf"--({'|'.join(sorted(_FLAGS))})\b(?![:-])")
_COMMAND = re.compile(r"\bbitsweep (encode|search|calibrate|compact)\b")
_MOVED = re.compile(r"bitsweep info .* --set-source FILE, for one search --base FILE")
_OPTION_OF = re.compile(r"\b(encode|search) --([a-z]+(?:-[a-z]+)*)")
_OPTION = re.compile(r"(?<![\w/.-])--([a-z]+(?:-[a-z]+)*)(?: ([\w-]+))?")
_MEMORY = re.compile(r"\bmemory:(base|rows|queries|calibrate-queries)\b")


def _argument(option: str) -> str:
    return "x" if option == "base" else option.replace("-", "_")


def _keyword(found: re.Match[str]) -> str:
    """An option as it is written in a call; what a line begins with is the name alone."""
    name, value = _argument(found[1]), found[2] or ""
    before, after = found.string[: found.start()], found.string[found.end() : found.end() + 1]
    if (name, value) in _WORDS and before:
        return f'{name}="{value}"'
    if value.isupper() and before:
        return f"{name}={value}"
    is_bare = not value and after in tuple(",;:.)")
    is_bare |= not before or before.endswith(("unknown ", "more ", "larger ", "default "))
    return f"{name}{'' if is_bare else '='}{value and ' '}{value}"


def as_written(message: str) -> str:
    """A line of the library with the names of arguments in place of those of options.

    >>> as_written("--probe-ratio 0.001: must be 0.01 to 1000")
    'probe_ratio 0.001: must be 0.01 to 1000'
    >>> as_written("--probe: idx has no lists; encode --lists makes some")
    'probe: idx has no lists; encode(lists=) makes some'
    >>> as_written("--sample: --queries says what they are; leave --refine exact, or give --probe")
    'sample: queries= says what they are; leave refine="exact", or give probe='
    >>> as_written("unknown --axes 'x': use principal or random")
    "unknown axes 'x': use principal or random"
    >>> as_written("memory:base: row 7 has a NaN or Inf")
    'x: row 7 has a NaN or Inf'
    >>> as_written("idx: holds an index already; --force replaces it")
    'idx: holds an index already; force=True replaces it'
    >>> as_written("say where: bitsweep info a b --set-source FILE, for one search --base FILE; x")
    'say where: set_source(FILE), or for one handle Index(base=FILE); x'
    """
    message = _MOVED.sub("set_source(FILE), or for one handle Index(base=FILE)", message)
    message = _FLAG.sub(lambda m: f"{_argument(m[1])}=True", message)
    message = _COMMAND.sub(r"\1()", message)
    message = _OPTION_OF.sub(lambda m: f"{m[1]}({_argument(m[2])}=)", message)
    message = _OPTION.sub(_keyword, message)
    return _MEMORY.sub(lambda m: "x" if m[1] == "rows" else _argument(m[1]), message)


def new(struct: str, begin: str) -> Structure:
    """A struct as a function of the library begins it, which is told its size."""
    made = header.structs[struct]()
    getattr(lib, begin)(byref(made), sizeof(made))
    return made


def check(status: int, error: Structure) -> None:
    """Raises Error unless a call succeeded."""
    if status:
        raise Error(as_written(os.fsdecode(error.message)), status, error.rank)


def call(name: str, *arguments: Any) -> None:
    """Calls a function whose last argument is the error."""
    error = header.structs["bitsweep_error"]()
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
