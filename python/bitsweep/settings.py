# SPDX-License-Identifier: Apache-2.0
"""Settings of a call: from keyword arguments to the structs of the library.

None is the default. What is no setting at all is a TypeError, what is out of range an
Error; each names the argument. Where the library would take 0 as the default, here it is refused,
as the program does. The upper limits are the library's to know.
"""

from __future__ import annotations

import math
import operator
from ctypes import Structure, c_int, c_uint32, c_uint64, pointer
from typing import Any, Iterable, Optional

import numpy as np
import numpy.typing as npt

from .arguments import MAY_BE_0, settings_of
from .header import header
from .library import NONE, Error, new, path_bytes, shown

_MOST = {c_int: 2**31 - 1, c_uint32: 2**32 - 1, c_uint64: NONE - 1}


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


def number(name: str, value: Any) -> float:
    try:
        if isinstance(value, (bool, np.bool_, str, bytes)):
            raise TypeError
        real = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {shown(value)}") from None
    if not math.isfinite(real):
        raise Error(f"{name} must be a number, not {real}")
    return real


def _real(name: str, value: Any) -> float:
    real = number(name, value)
    if real == 0:
        raise Error(f"{name} must be above 0, not 0")
    return real


def _text(name: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {shown(value)}")
    return path_bytes(value, name)


def flag(name: str, value: Any) -> bool:
    """True or False, or what stands for them; a text is a mistake."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def integers(name: str, value: Any) -> npt.NDArray[np.int64]:
    """One axis of whole numbers."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise Error(f"{name}: an array of integers is needed, not of {array.dtype}")
    if array.ndim != 1:
        raise Error(f"{name}: an array of one axis is needed, not of {array.ndim}")
    return np.ascontiguousarray(array, np.int64)


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


class Allow:
    """Rows that may be found, as the library reads them."""

    def __init__(self, rows: Any, name: str) -> None:
        array = np.asarray(rows)
        self.struct = header.structs["bitsweep_allow"]()
        if array.dtype == np.bool_ and array.ndim in (1, 2):
            self.array = np.ascontiguousarray(array)
            self.struct.masks = self.array.ctypes.data
            self.struct.num_rows = array.shape[-1]
            self.struct.num_masks = array.shape[0] if array.ndim == 2 else 1
        elif array.ndim == 1 and (array.dtype.kind in "iu" or array.size == 0):
            if array.size and int(array.max()) >= 2**63:
                raise Error(f"{name}: id {array.max()} is none of the index")
            # One at least: no ids are an address, too.
            self.array = np.append(array.astype(np.int64), 0)
            self.struct.ids = self.array.ctypes.data
            self.struct.num_ids = array.size
        else:
            raise Error(
                f"{name}: bools [rows] or [queries, rows] or ids are needed, not {array.dtype} "
                f"of {array.ndim} axes"
            )


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
        if setting.kind == "ids":
            settings.kept_ids = integers(name, value)  # as long as the struct
            settings.ids, settings.num_ids = settings.kept_ids.ctypes.data, settings.kept_ids.size
            continue
        if setting.kind == "vectors":
            settings.kept = source(value, name)  # as long as the struct
            value = pointer(settings.kept.rows)
        elif setting.kind == "rows":
            settings.kept_allow = Allow(value, name)  # as long as the struct
            value = pointer(settings.kept_allow.struct)
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
            least = int(name not in MAY_BE_0)
            words = [word for word in setting.words if word != "off"]  # which is "none"
            value = count(name, value, least, _MOST[setting.member.type], words)
        setattr(settings, member, value)


def defaults(call: str) -> Structure:
    """A struct of settings as the library begins it."""
    return new(f"bitsweep_{call}_settings", f"bitsweep_{call}_defaults_of")
