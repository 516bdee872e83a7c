# SPDX-License-Identifier: Apache-2.0
"""Rows of texts, by a model of `bitsweep train --text`."""

from __future__ import annotations

import os
from ctypes import byref, c_uint32, c_void_p
from typing import Iterable, Union

import numpy as np
import numpy.typing as npt

from .library import call, lib, path_bytes, shown
from .vectors import File

Text = Union[str, bytes]
Texts = Union[Text, Iterable[Text]]


def _as_bytes(text: Text) -> bytes:
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    if isinstance(text, bytes):
        return text
    raise TypeError(f"a text must be str or bytes, not {shown(text)}")


class TextModel:
    """A model by its file, or that of an index of texts by its folder."""

    def __init__(self, path: File) -> None:
        self._handle = c_void_p()
        dims = c_uint32()
        name = os.path.abspath(path_bytes(path, "path"))
        call("bitsweep_text_open", name, byref(self._handle), byref(dims))
        self.dims = dims.value

    def embed(self, texts: Texts, *, query: bool = True) -> npt.NDArray[np.float32]:
        """float32 [texts, dims]: rows of queries, or of documents. One text is a list of one."""
        if not self._handle:
            raise ValueError("the model is closed")
        all_bytes = [_as_bytes(t) for t in ([texts] if isinstance(texts, (str, bytes)) else texts)]
        rows = np.empty((len(all_bytes), self.dims), np.float32)
        for row, text in zip(rows, all_bytes):
            call("bitsweep_text_row", self._handle, query, text, len(text), row.ctypes.data)
        return rows

    def close(self) -> None:
        """Frees its memory."""
        lib.bitsweep_text_close(byref(self._handle))

    def __enter__(self) -> TextModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()
