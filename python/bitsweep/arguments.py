# SPDX-License-Identifier: Apache-2.0
"""Arguments of functions that are settings of the library, as bitsweep.h has them.

Their names, what they may be and what help() says of them. Of the header alone: stubs.py asks this
where there is no library.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import textwrap
from ctypes import POINTER, c_char_p, c_double, c_int
from typing import Any, Callable, Iterable, NamedTuple, Optional, TypeVar

from .header import Member, header

MAY_BE_0 = {"lists", "threads", "device_memory"}  # where 0 is not the default, or says so
_NO_SETTINGS = {"size", "ranks", "progress", "progress_context", "num_rows", "num_ids"}
_ROWS = POINTER(header.structs["bitsweep_rows"])
_ALLOW = POINTER(header.structs["bitsweep_allow"])

# Members that are called otherwise here and in the program.
ALIASES = {
    "calibrate_rows": "calibrate",
    "check_seconds": "check_every",
    "first_row": "rows",
    "is_unchecked": "checked",
    "stage_dims": "stage",
}


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
    if member.name in ("model", "base", "tags", "query_tags"):
        return "path"
    if member.name == "ids":
        return "ids"
    if member.type is c_int:
        return "int" if member.name == "threads" else "bool"
    kinds = {c_char_p: "str", c_double: "float", _ROWS: "vectors", _ALLOW: "rows"}
    return kinds.get(member.type, "int")


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
        if member.name in _NO_SETTINGS:
            continue
        named = re.findall(r"\bBITSWEEP_(AUTO|ALL|NONE)\b", member.says)
        numbers = {word.lower(): header.numbers[word] for word in named}
        if "none" in numbers:
            numbers["off"] = numbers["none"]  # as the program calls it
        name = ALIASES.get(member.name, member.name)
        kind = _kind(member)
        says = member.says if name in MAY_BE_0 else _in_python(member.says, kind)
        found[name] = Setting(name, member, kind, _SAYS.get(name, says), numbers)
    return found


# What is another thing here than there.
_SAYS = {
    "ids": "integers, 0 to 2**63 - 1, none twice, which searches answer in place of row numbers",
    "rows": "only these, slice(100, 200) or (100, 200); ids stay those of the whole",
    "checked": "False: without checks of known answers and of samples of what is found",
    "skip_check": "True: info's check_recall is not measured",
    "allow": (
        "rows that may be found, with comm of rank 0: bools [rows] or [queries, rows], or ids; "
        "None: all. Fewer than k: id -1"
    ),
    "lists": (
        'a number of centroids, or "auto": rows are ordered by the nearest, so that a search can '
        "look at a part of them"
    ),
}

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
    "radius": "within",
    "thresh": "within",
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


def parameters_of(call: str, taken: Iterable[str]) -> list[inspect.Parameter]:
    kinds = {
        "vectors": "Vectors",
        "path": "File",
        "slice": "slice | tuple[int, int]",
        "rows": "npt.ArrayLike",
        "ids": "npt.ArrayLike",
    }
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


def takes(call: str, without: tuple[str, ...] = ()) -> Callable[[_Function], _Function]:
    """For a function whose last argument is **settings: those of a call of the library.

    without: names of settings that it does not have.

    Names that are none of them are refused; signature and help() have them all.
    """

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = parameters_of(call, [*(p.name for p in own), *without])
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
