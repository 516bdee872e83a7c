# SPDX-License-Identifier: Apache-2.0
"""Settings of a call: from keyword arguments to the structs of the library.

What there is, what it may be and what help() says of it is what bitsweep.h says of a struct's
members. None is the default. What is no setting at all is a TypeError, what is out of range an
Error; each names the argument. Where the library would take 0 as the default, here it is refused,
as the program does. The upper limits are the library's to know.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import operator
import re
import textwrap
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_uint32, c_uint64, pointer
from typing import Any, Callable, Iterable, NamedTuple, Optional, TypeVar

import numpy as np

from .header import Member, header
from .library import ALIASES, NONE, Error, Progress, argument_of, new, path_bytes, shown

_MOST = {c_int: 2**31 - 1, c_uint32: 2**32 - 1, c_uint64: NONE - 1}
_MAY_BE_0 = {"lists", "threads", "device_memory"}  # where 0 is not the default, or says so
_NO_SETTINGS = {"size", "ranks", "progress", "progress_context"}
_ROWS = POINTER(header.structs["bitsweep_rows"])


class Setting(NamedTuple):
    name: str  # of the argument
    member: Member
    kind: str  # what a person calls its type
    says: str
    words: dict[str, int]  # texts that stand for numbers

    @property
    def default(self) -> Optional[bool]:
        return (self.member.name == "is_unchecked") if self.kind == "bool" else None


def _kind(member: Member) -> str:
    if member.name == "first_row":
        return "slice"
    if member.name == "model":
        return "path"
    if member.type is c_int:
        return "int" if member.name == "threads" else "bool"
    return {c_char_p: "str", c_double: "float", _ROWS: "vectors"}.get(member.type, "int")


def _in_python(says: str, kind: str) -> str:
    """A comment of the header in this language.

    >>> _in_python("with lists; 0: 1000; BITSWEEP_NONE: no table", "int")
    'with lists; None: 1000; "none": no table'
    >>> _in_python("skips some; 0: they are an error", "bool")
    'skips some; False: they are an error'
    """
    zero = "False" if kind == "bool" else "None"
    says = re.sub(r"\bBITSWEEP_(AUTO|ALL|NONE)\b", lambda m: f'"{m[1].lower()}"', says)
    says = re.sub(r"as in struct bitsweep_(\w+)_settings", r"as in \1", says)
    return re.sub(r"\bNULL\b", "None", re.sub(r"\b0(?=: )", zero, says))


@functools.lru_cache(maxsize=None)
def settings_of(call: str) -> dict[str, Setting]:
    """Those of a function of the library, "encode", by the names of their arguments."""
    found = {}
    for member in header.members[f"bitsweep_{call}_settings"]:
        if member.name in _NO_SETTINGS or member.name == "num_rows":
            continue
        named = re.findall(r"\bBITSWEEP_(AUTO|ALL|NONE)\b", member.says)
        numbers = {word.lower(): header.numbers[word] for word in named}
        if NONE in numbers.values():
            numbers["off"] = NONE  # as the program calls it
        name = argument_of(member.name)
        kind = _kind(member)
        says = member.says if name in _MAY_BE_0 else _in_python(member.says, kind)
        found[name] = Setting(name, member, kind, _SAYS.get(name, says), numbers)
    return found


# What is another thing here than there.
_SAYS = {
    "rows": "only these, slice(100, 200) or (100, 200); ids stay those of the whole",
    "checked": "False: without checks of known answers and of samples of what is found",
    "skip_check": "True: info's check_recall is not measured",
    "lists": (
        "a number of centroids, or \"auto\": rows are ordered by the nearest, so that a search can "
        "look at a part of them"
    ),
}


def count(
    name: str, value: Any, least: int = 0, most: int = NONE - 1, words: Iterable[str] = ()
) -> int:
    """A whole number; words: what may stand in its place, for the error."""
    also = "".join(f" or {word!r}" for word in words)
    if isinstance(value, str):
        raise Error(f"{name} must be a whole number{also}, not {shown(value)}")
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number{also}, not {shown(value)}") from None
    if number < least:
        raise Error(f"{name} must be {least} or more{also}, not {number}")
    if number > most:
        raise Error(f"{name} must be {least} to {most}{also}, not {number}")
    return number


def _real(name: str, value: Any) -> float:
    try:
        if isinstance(value, (bool, np.bool_, str, bytes)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {shown(value)}") from None
    if not math.isfinite(number):
        raise Error(f"{name} must be a number, not {number}")
    if number == 0:
        raise Error(f"{name} must be above 0, not 0")
    return number


def _text(name: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {shown(value)}")
    return path_bytes(value, name)


def flag(name: str, value: Any) -> bool:
    """True or False, or what stands for them; a text is a mistake."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def row_range(name: str, value: Any) -> tuple[int, Optional[int]]:
    """The first row of a slice, range or pair, and how many there are; None: all from there."""
    if isinstance(value, (slice, range)):
        if value.step not in (None, 1):
            raise Error(f"{name} must follow each other, not {shown(value)}")
        value = (value.start, value.stop)
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(f"{name} must be a slice or (first, end), not {shown(value)}")
    first = 0 if value[0] is None else count(f"{name}: the first", value[0])
    if value[1] is None:
        return first, None
    end = count(f"{name}: the end", value[1])
    if end <= first:
        raise Error(f"{name}: there are none from {first} to {end}")
    return first, end - first


def fill(settings: Structure, call: str, values: dict[str, Any], source: Any = None) -> None:
    """Sets members; None leaves the default. source: makes the library's rows of vectors."""
    known = settings_of(call)
    for name, value in values.items():
        if value is None:
            continue
        setting = known[name]
        member = setting.member.name
        if setting.kind == "slice":
            settings.first_row, rows = row_range(name, value)
            settings.num_rows = rows or 0
            continue
        if setting.kind == "vectors":
            settings.kept = source(value, name)  # as long as the struct
            value = pointer(settings.kept.rows)
        elif setting.kind == "bool":
            value = flag(name, value) != (member == "is_unchecked")
        elif setting.kind == "path":
            value = path_bytes(value, name)
        elif setting.kind == "str":
            value = _text(name, value)
        elif setting.kind == "float":
            value = _real(name, value)
        elif isinstance(value, str) and value in setting.words:
            value = setting.words[value]
        else:
            least = int(name not in _MAY_BE_0)
            value = count(name, value, least, _MOST[setting.member.type], setting.words)
        setattr(settings, member, value)


def defaults(call: str) -> Structure:
    """A struct of settings as the library begins it."""
    return new(f"bitsweep_{call}_settings", f"bitsweep_{call}_defaults_of")


# ---- arguments that a function takes besides those that are written at it ------------------------

# What others call an argument, and what some were called here.
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
    "xb": "x",
    "xq": "queries",
    "query": "queries",
    "num_rows": "rows",
    **ALIASES,
}

_Function = TypeVar("_Function", bound=Callable[..., Any])


def check_names(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """An argument that there is not is a TypeError that names the one that was meant."""
    known = list(known)
    for name in given:
        if name in known:
            continue
        meant = _KNOWN_AS.get(name.lower(), "")
        close = [meant] if meant in known else difflib.get_close_matches(name, known, 1)
        hint = f": did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
        raise TypeError(f"{function} has no argument {name}{hint}")


def _parameters(call: str, taken: Iterable[str]) -> list[inspect.Parameter]:
    kinds = {"vectors": "Vectors", "path": "File", "slice": "slice | tuple[int, int]"}
    found = []
    for setting in settings_of(call).values():
        if setting.name in taken:
            continue
        kind = kinds.get(setting.kind, setting.kind) + (" | str" if setting.words else "")
        default = setting.default
        annotation = kind if default is not None else f"{kind} | None"
        found.append(
            inspect.Parameter(
                setting.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
        )
    return found


def takes(call: str) -> Callable[[_Function], _Function]:
    """For a function whose last argument is **settings: those of a call of the library.

    Names that are none of them are refused; signature and help() have them all.
    """

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = _parameters(call, [p.name for p in own])
        known = [p.name for p in own if p.name not in ("self", "cls")] + [p.name for p in more]
        says = {s.name: s.says for s in settings_of(call).values()}
        lines = [
            textwrap.fill(f"{p.name}: {says[p.name]}", 96, subsequent_indent="    ")
            for p in more
            if says[p.name]
        ]
        called = "Index" if function.__name__ == "__init__" else function.__name__

        @functools.wraps(function)
        def wrapped(*arguments: Any, **given: Any) -> Any:
            check_names(called, given, known)
            return function(*arguments, **given)

        wrapped.__signature__ = signature.replace(parameters=own + more)  # type: ignore[attr-defined]
        wrapped.__doc__ = inspect.cleandoc(function.__doc__ or "") + "\n\n" + "\n".join(lines)
        return wrapped  # type: ignore[return-value]

    return decorate
