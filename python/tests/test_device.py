# SPDX-License-Identifier: Apache-2.0
"""The package on a device: the answers of the CPU.

Environment: BITSWEEP_TEST_DEVICE what BITSWEEP_LIBRARY has: "cuda", or "emulated" for the library
of the tests with emulated devices.
"""

import os
import unittest

import bitsweep
from package_case import Case

DEVICE = os.environ.get("BITSWEEP_TEST_DEVICE")


@unittest.skipUnless(DEVICE, "BITSWEEP_TEST_DEVICE names no device")
class Device(Case):
    def setUp(self) -> None:
        self.x, self.q = self.x[:600], self.q[:7]

    def test_search(self) -> None:
        made = bitsweep.Index.encode(self.x, self.folder / "made", metric="l2", device=DEVICE)
        with made, bitsweep.Index(self.folder / "made", device="cpu") as ix:
            for settings in ({}, {"refine": "none"}):
                expected = ix.search(self.q, 5, **settings)
                self.assert_same(made.search(self.q, 5, **settings), expected)
                self.assertEqual(made.last_search["device"], DEVICE)

    def test_knn(self) -> None:
        expected = bitsweep.knn(self.x, self.q, 5, "l2", device="cpu")
        self.assert_same(bitsweep.knn(self.x, self.q, 5, "l2", device=DEVICE), expected)

    def test_fork(self) -> None:
        """A child has none of the parent's devices, and hears why."""
        said_by, said_to = os.pipe()
        with bitsweep.Index.encode(
            self.x, self.folder / "forked", metric="l2", device=DEVICE
        ) as ix:
            ix.search(self.q)
            child = os.fork()
            if child == 0:
                self.tell_child(ix, said_to)
            os.close(said_to)
            with os.fdopen(said_by) as lines:
                said = lines.read().splitlines()
            os.waitpid(child, 0)
            self.assertEqual(len(said), 2, said)
            self.assertIn("forked after the index was loaded on a GPU", said[0])
            self.assertIn("forked after bitsweep had been used", said[1])
            self.assertEqual(ix.search(self.q)[1].shape, (7, 10))

    def tell_child(self, ix: bitsweep.Index, out: int) -> None:
        for use in (
            lambda: ix.search(self.q),
            lambda: bitsweep.knn(self.x, self.q, 5, "l2", device=DEVICE),
        ):
            try:
                use()
            except bitsweep.Error as error:
                os.write(out, f"{error}\n".encode())
        ix.close()
        os._exit(0)


if __name__ == "__main__":
    unittest.main()
