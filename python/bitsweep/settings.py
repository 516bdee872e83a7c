# SPDX-License-Identifier: Apache-2.0
"""Settings of a call: from arguments to the structs of the library.

None is the default. What is no setting at all is a TypeError, what is out of range an Error; each
names the argument. Where the library would take 0 as the default, here it is refused, as the
program does. The upper limits are the library's to know.
"""

from __future__ import annotations

import functools
import math
import operator
from ctypes import Structure, c_char_p, c_double, c_int, c_uint32, c_uint64
from typing import Any

import numpy as np

from .library import NONE, Error, path_bytes, shown

_MOST = {c_int: 2**31 - 1, c_uint32: 2**32 - 1, c_uint64: NONE - 1}
_MAY_BE_0 = {"first_row", "lists", "threads", "device_memory"}
_FLAGS = {"copy_vectors", "drop_bad_rows", "force", "resume", "exclude_self", "is_unchecked", "skip_check"}


def count(
    name: str, value: Any, least: int = 0, most: int = NONE - 1, words: tuple[str, ...] = ()
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
    if name == "model":
        return path_bytes(value, name)
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {shown(value)}")
    return path_bytes(value, name)


def flag(name: str, value: Any) -> bool:
    """True or False, or what stands for them; a text is a mistake."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


@functools.lru_cache(maxsize=None)
def _kinds(struct: type[Structure]) -> dict[str, Any]:
    return dict(field[:2] for field in struct._fields_)


def fill(settings: Structure, words: dict[str, dict[str, int]], **values: Any) -> None:
    """Sets members; None leaves the default. words: texts that stand for numbers, by member."""
    kinds = _kinds(type(settings))
    for name, value in values.items():
        if value is None:
            continue
        kind, allowed = kinds[name], words.get(name, {})
        if kind is c_char_p:
            value = _text(name, value)
        elif kind is c_double:
            value = _real(name, value)
        elif name in _FLAGS:
            value = flag(name, value)
        elif isinstance(value, str) and value in allowed:
            value = allowed[value]
        else:
            value = count(name, value, int(name not in _MAY_BE_0), _MOST[kind], tuple(allowed))
        setattr(settings, name, value)
