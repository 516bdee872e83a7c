# SPDX-License-Identifier: Apache-2.0
"""What tests of the package share."""

import shutil
import tempfile
import unittest
from pathlib import Path
from typing import Any

import bitsweep
import numpy as np

DATA = Path(__file__).parents[2] / "tests" / "data"
BASE, QUERIES = DATA / "sift20k_base.u8bin", DATA / "sift20k_query.u8bin"


class Case(unittest.TestCase):
    """With a folder, the rows and the queries."""

    folder: Path
    x: np.ndarray
    q: np.ndarray

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.x, cls.q = bitsweep.read(BASE), bitsweep.read(QUERIES)

    def assert_same(self, one: bitsweep.vectors.Answer, other: bitsweep.vectors.Answer) -> None:
        for a, b in zip(one, other):
            self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
            self.assertEqual(a.tobytes(), b.tobytes())

    def assert_fails(self, code: int, words: str, call: Any, *arguments: Any, **more: Any) -> None:
        with self.assertRaisesRegex(bitsweep.Error, words) as caught:
            call(*arguments, **more)
        self.assertEqual(caught.exception.code, code, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
