# SPDX-License-Identifier: Apache-2.0
"""What run_peers.sh does before anything is installed, and how rows are read for it."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

PEERS = Path(__file__).parents[1]
sys.path.insert(0, str(PEERS))

from peer_vectors import open_vectors, write_unit  # noqa: E402  # pylint: disable=wrong-import-position


class Options(unittest.TestCase):
    """--help and mistakes cost nothing."""

    def start(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """run_peers.sh with a program that is not there: what comes later would fail."""
        return subprocess.run(["bash", str(PEERS / "run_peers.sh"), *words], capture_output=True,
                              text=True, check=False, env={"PATH": "/usr/bin:/bin", "BITSWEEP": "no"})

    def test_help_installs_nothing(self) -> None:
        """Also behind other options."""
        ended = self.start("--k", "5", "--help")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("--metric {l2,ip,cosine}", ended.stdout)
        self.assertEqual(ended.stderr, "")

    def test_a_mistake_is_told_first(self) -> None:
        """And the program is asked for only then."""
        ended = self.start("--metric", "cosin")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("invalid choice: 'cosin'", ended.stderr)
        self.assertIn("no is missing", self.start("--metric", "cosine").stderr)


class Vectors(unittest.TestCase):
    """.npy files, and rows of unit length."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.rows = np.random.default_rng(1).normal(size=(70, 5)).astype(np.float32)

    def test_npy_is_read(self) -> None:
        """As it is, or refused with what helps."""
        path = str(self.folder / "rows.npy")
        np.save(path, self.rows)
        self.assertTrue((open_vectors(path) == self.rows).all())
        for wrong in (self.rows.astype(np.float64), np.asfortranarray(self.rows), self.rows[0]):
            np.save(path, wrong)
            with self.assertRaisesRegex(ValueError, "bitsweep convert makes them"):
                open_vectors(path)

    def test_rows_of_unit_length(self) -> None:
        """Directions stay; a row of zeros has none."""
        unit = open_vectors(write_unit(self.rows, self.folder / "unit" / "base.fbin"))
        norms = np.linalg.norm(self.rows, axis=1, keepdims=True)
        np.testing.assert_allclose(unit, self.rows / norms, rtol=1e-6)
        self.rows[60] = 0
        with self.assertRaisesRegex(ValueError, "row 60 is zero"):
            write_unit(self.rows, self.folder / "unit.fbin")


if __name__ == "__main__":
    unittest.main()
