# SPDX-License-Identifier: Apache-2.0
"""bitsweep.h as ctypes has it: structs, functions and numbers, and what its comments say of members.

The header is the only list of them. It is read at every import, in a few ms, so that a checkout
needs no build of the package, and one package serves every Python and every library of its version.
"""

from __future__ import annotations

import ctypes
import re
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_void_p
from pathlib import Path
from typing import Any, Iterator, NamedTuple

_TYPES = {
    "void": None,
    "int": c_int,
    "char": ctypes.c_char,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    **{f"{kind}_t": getattr(ctypes, f"c_{kind}") for kind in ("int32", "int64", "uint32", "uint64")},
}
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_OWN_LINES = re.compile(r"^\s*/\*.*?\*/", re.DOTALL | re.MULTILINE)
_STRUCT = re.compile(r"^struct (\w+) \{(.*?)^\};", re.DOTALL | re.MULTILINE)
_MEMBER = re.compile(r"([^;/]+);[ ]*(/\*.*?\*/)?", re.DOTALL)
_CALLBACK = re.compile(r"typedef (\w+) \(\*(\w+)\)\(([^)]*)\);")
_FUNCTION = re.compile(r"BITSWEEP_API ([^;(]*?)(bitsweep_\w+)\(([^)]*)\);")
_ENUM_NUMBER = re.compile(r"^ +BITSWEEP_(\w+) = (\d+)", re.MULTILINE)
_DEFINED = re.compile(r"^#define BITSWEEP_(\w+) +(\d+|\(?UINT64_MAX(?: - (\d+)\))?)", re.MULTILINE)


class Member(NamedTuple):
    name: str
    type: Any  # of ctypes
    says: str  # its comment


class Header:
    """structs, and functions with what each returns and takes, by name; numbers without BITSWEEP_.

    Pointers to numbers and to what is opaque are c_void_p, which takes addresses and byref().
    """

    def __init__(self, text: str) -> None:
        self.structs: dict[str, type[Structure]] = {}
        self.members: dict[str, list[Member]] = {}
        self.numbers = {name: int(number) for name, number in _ENUM_NUMBER.findall(text)}
        for name, number, less in _DEFINED.findall(text):
            is_number = number.isdigit()
            self.numbers[name] = int(number) if is_number else 2**64 - 1 - int(less or 0)
        bare = _COMMENT.sub("", text)
        self.callbacks: dict[str, Any] = {}
        for result, name, taken in _CALLBACK.findall(bare):
            self.callbacks[name] = CFUNCTYPE(_TYPES[result], *self._arguments(taken))
        for name, body in _STRUCT.findall(text):
            self.members[name] = list(self._members(_OWN_LINES.sub("", body)))
            fields = [(member.name, member.type) for member in self.members[name]]
            self.structs[name] = type(name, (Structure,), {"_fields_": fields})
        self.functions = {
            name: (self._type(result), self._arguments(taken))
            for result, name, taken in _FUNCTION.findall(bare)
        }

    def _type(self, text: str) -> Any:
        """const char *codec -> c_char_p"""
        words = re.findall(r"\w+|\*", text.replace("const", ""))
        is_struct = words[0] == "struct"
        base, stars = words[int(is_struct)], words.count("*")
        if stars and base == "char":
            return c_char_p
        if stars == 1 and base in self.structs:
            return POINTER(self.structs[base])
        if stars:
            return c_void_p
        return self.callbacks[base] if base in self.callbacks else _TYPES[base]

    def _arguments(self, text: str) -> list[Any]:
        return [] if text.strip() == "void" else [self._type(part) for part in text.split(",")]

    def _members(self, body: str) -> Iterator[Member]:
        """uint64_t first_row, num_rows; -> both"""
        for declared, comment in _MEMBER.findall(body):
            says = " ".join(comment.strip("/*").split())
            first, *others = " ".join(declared.split()).split(",")
            base = re.sub(r"\*?\w+(\[\d+\])?$", "", first)
            for one in [first[len(base) :], *others]:
                name, length = re.findall(r"(\w+)(?:\[(\d+)\])?$", one)[0]
                kind = self._type(base + "*" * one.count("*"))
                yield Member(name, kind * int(length) if length else kind, says)


def _find() -> Path:
    """In a package that was installed beside this file; else that of the checkout."""
    own = Path(__file__).with_name("bitsweep.h")
    return own if own.exists() else Path(__file__).parents[2] / "coordinator" / "bitsweep.h"


FILE = _find()
header = Header(FILE.read_text(encoding="utf-8"))
