# SPDX-License-Identifier: Apache-2.0
"""Arguments that cannot be: each is refused at once, in one line that names it."""

import pickle
import unittest
from typing import Any

import bitsweep
import numpy as np
from package_case import BASE, Case


class Errors(Case):
    def test_arrays(self) -> None:
        small = self.x[:100]
        bad = self.q.astype(np.float32)
        bad[1, 1] = np.nan
        self.assert_fails(1, "axes", bitsweep.knn, small, self.q[0], metric="l2")
        self.assert_fails(1, "numbers", bitsweep.knn, small, [["a"]], metric="l2")
        self.assert_fails(3, "100 dims", bitsweep.knn, small, self.q[:, :100].copy(), metric="l2")
        self.assert_fails(3, "^queries: row 1 has a NaN", bitsweep.knn, small, bad, metric="l2")
        self.assert_fails(3, "^x: row 1 has a NaN", bitsweep.knn, bad, small, metric="l2")
        self.assert_fails(3, "", bitsweep.knn, small, np.full((1, 128), 1e300), metric="l2")

    def test_settings(self) -> None:
        small, folder = self.x[:100], self.folder / "never"
        self.assert_fails(1, "^metric", bitsweep.Index.encode, small, folder)
        self.assert_fails(1, "^unknown metric", bitsweep.Index.encode, small, folder, metric="l3")
        self.assert_fails(1, "bits", bitsweep.Index.encode, small, folder, metric="l2", bits=99)
        xfbq: dict[str, Any] = {"codec": "xfbq", "rotation": "opq"}
        self.assert_fails(1, 'opq is for codec="pq"', bitsweep.Index.encode, small, folder, **xfbq)
        self.assert_fails(1, "lists", bitsweep.Index.encode, small, folder, metric="l2", lists="x")
        self.assert_fails(1, "^k must be 1 or more, not -1$", bitsweep.knn, small, self.q, -1, "l2")
        self.assert_fails(1, "^k must be 1 or more, not 0$", bitsweep.knn, small, self.q, 0, "l2")
        self.assert_fails(1, "", bitsweep.knn, small, self.q, 101, "l2")
        with self.assertRaises(TypeError):
            bitsweep.knn(small, self.q, "ten", metric=3, no_such_setting=1)
        self.assertFalse(folder.exists())

    def test_numbers(self) -> None:
        """What is out of range or no number, of every setting that is one."""
        encode, folder = bitsweep.Index.encode, self.folder / "never"
        small, no_numbers = self.x[:300], (True, np.bool_(False), 1.5j, [1], np.ones(2))
        wholes = ["lists", "subspaces", "stage", "seed", "shards", "calibrate"]
        wholes += ["threads", "device_memory"]
        with bitsweep.Index.encode(small, self.folder / "numbers", metric="l2", lists=4) as ix:
            calls: list[Any] = [(encode, (small, folder), name) for name in wholes]
            calls += [(encode, (small, folder), name) for name in ("bits", "scale")]
            names = ["k", "probe", "scan_dims", "query_bits", "batch"]
            names += ["recall", "probe_ratio", "oversample"]
            calls += [(ix.search, (self.q,), name) for name in names]
            calls += [(bitsweep.knn, (small, self.q), name) for name in ("k", "threads")]
            calls += [(ix.calibrate, (), "sample"), (bitsweep.read, (BASE,), "first_row")]
            calls += [(bitsweep.recall, ([[1]], [[1]]), "k")]
            calls += [(bitsweep.Index, (ix.folder,), "check_every")]
            reals = ("bits", "scale", "recall", "probe_ratio", "oversample", "check_every")
            may_be_0 = ("lists", "first_row", "threads", "device_memory")
            for call, arguments, name in calls:
                with self.subTest(call=call, name=name):
                    for value in no_numbers:
                        with self.assertRaisesRegex(TypeError, f"^{name} must be a .*number") as e:
                            call(*arguments, **{name: value})
                        self.assertNotIn("\n", str(e.exception))
                    if name in reals:
                        self.assert_fails(1, f"^{name} must be a number, not nan$", call,
                                          *arguments, **{name: np.nan})
                    else:
                        with self.assertRaisesRegex(TypeError, f"^{name} must be a whole number"):
                            call(*arguments, **{name: 1.5})
                        self.assert_fails(1, f"^{name} must be [01] or more.*, not -2$", call,
                                          *arguments, **{name: -2})
                    if name not in may_be_0:
                        self.assert_fails(1, f"^{name} must be .*, not 0$", call, *arguments,
                                          **{name: 0})
            self.assert_fails(1, "^probe must be 1 or more or 'all', not 0$", ix.search, self.q,
                              probe=0)
            self.assert_fails(1, "^probe must be a whole number or 'all', not 'few'$", ix.search,
                              self.q, probe="few")
            self.assert_fails(1, "^probe_ratio 0.001: must be 0.01 to", ix.search, self.q,
                              probe_ratio=0.001)
            self.assertEqual(ix.search(self.q, np.int64(3), probe=np.uint8(2))[1].shape, (200, 3))
        self.assertFalse(folder.exists())

    def test_rows(self) -> None:
        encode, folder = bitsweep.Index.encode, self.folder / "never"
        for rows in (3, True, "1:5", [1], (1, 2, 3), np.ones(2)):
            with self.assertRaisesRegex(TypeError, "^rows must be a slice or .first, end., not "):
                encode(self.x, folder, metric="l2", rows=rows)
        wrong = [(slice(0, 9, 2), "^rows must follow each other"), ((9, 5), "none from 9 to 5"),
                 ((5, 5), "none from 5 to 5"), ((-3, 5), "^rows: the first must be 0 or more")]
        wrong += [(slice(0, -1), "^rows: the end must be 0 or more"), ((0, 30000), "^rows 0:30000: x has 20000 rows")]
        for rows, words in wrong:
            self.assert_fails(1, words, encode, self.x, folder, metric="l2", rows=rows)
        self.assertFalse(folder.exists())
        for rows in (slice(700, 1000), (700, 1000), range(700, 1000)):
            with encode(self.x[:1000], metric="l2", rows=rows) as ix:
                self.assertEqual((len(ix), ix.info["first_row"]), (300, 700))
        with encode(self.x[:1000], metric="l2", rows=slice(900, None)) as ix:
            self.assertEqual((len(ix), ix.info["first_row"]), (100, 900))

    def test_texts(self) -> None:
        small, folder = self.x[:300], self.folder / "never"
        for name in ("metric", "codec", "segments", "axes", "rotation", "residual", "device"):
            with self.assertRaisesRegex(TypeError, f"^{name} must be a text, not 3$"):
                bitsweep.Index.encode(small, folder, **{name: 3})
        for name in ("copy_vectors", "drop_bad_rows", "force", "resume", "skip_check"):
            with self.assertRaisesRegex(TypeError, f"^{name} must be True or False, not 'no'$"):
                bitsweep.Index.encode(small, folder, **{name: "no"})
        with self.assertRaisesRegex(TypeError, "^folder must be the name of a file, not 3$"):
            bitsweep.Index(3)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "^comm must be a communicator"):
            bitsweep.Index(folder, comm=3)
        bitsweep.Index.encode(small, self.folder / "texts", metric="l2").close()
        words = "^device 'gpu' is not one of auto.cpu.cuda"
        self.assert_fails(1, words, bitsweep.Index, self.folder / "texts", device="gpu")
        self.assert_fails(1, words, bitsweep.Index.encode, small, folder, device="gpu")
        self.assert_fails(1, words, bitsweep.knn, small, small, 5, "l2", device="gpu")
        self.assertFalse(folder.exists())

    def test_wrong_arrays(self) -> None:
        small, folder = self.x[:300].astype(np.float32), self.folder / "never"
        masked = np.ma.masked_less(small, 1)
        self.assertTrue(masked.mask.any())
        wrong: list[Any] = [masked, small.astype(complex), small.astype(object), small.astype(str)]
        wrong += [[[1, 2], [3]], np.zeros((2, 128), "M8[s]"), np.zeros((2, 128), "f4,f4"), None, 3]
        with bitsweep.Index.encode(small, self.folder / "arrays", metric="l2") as ix:
            for x in wrong:
                with self.subTest(x=type(x)):
                    self.assert_fails(1, "^x: ", bitsweep.Index.encode, x, folder, metric="l2")
                    self.assert_fails(1, "^x: ", bitsweep.knn, x, small, 3, "l2")
                    self.assert_fails(1, "^queries: ", bitsweep.knn, small, x, 3, "l2")
                    self.assert_fails(1, "^queries: ", ix.search, x)
                    self.assert_fails(1, "^x: ", bitsweep.write, self.folder / "no.fbin", x)
            unmasked = np.ma.array(self.q)
            self.assert_same(ix.search(unmasked), ix.search(self.q))
        self.assert_fails(1, "^ids: ", bitsweep.recall, np.ma.masked_less([[1, 2]], 2), [[1]])
        self.assertFalse(folder.exists())

    def test_no_queries(self) -> None:
        small, none = self.x[:300], self.q[:0]
        for values, ids in (
            bitsweep.knn(small, none, 7, "l2"),
            bitsweep.knn(small, none.astype(np.float32), 7, "l2"),
        ):
            self.assertEqual((values.shape, ids.shape), ((0, 7), (0, 7)))
            self.assertEqual((values.dtype, ids.dtype), (np.float32, np.int64))
        self.assert_fails(3, "64 dims", bitsweep.knn, small, none[:, :64], 7, "l2")
        self.assert_fails(1, "^k 301: ", bitsweep.knn, small, none, 301, "l2")
        self.assert_fails(1, "^metric", bitsweep.knn, small, none, 7)
        with bitsweep.Index.encode(small, self.folder / "none asked", metric="l2") as ix:
            for _ in range(2):
                values, ids = ix.search(none, 7)
                self.assertEqual((values.shape, ids.shape), ((0, 7), (0, 7)))
                self.assertEqual(ix.search(self.q, 7)[1].shape, (200, 7))
            self.assert_fails(3, "64 dims", ix.search, none[:, :64])
            self.assert_fails(1, "^k 301: ", ix.search, none, 301)
        self.assert_fails(1, "no queries", bitsweep.recall, ids, ids)

    def test_index(self) -> None:
        folder = self.folder / "small"
        with bitsweep.Index.encode(self.x[:500], folder, metric="l2") as ix:
            for k in (0, 501, 10001, 2**50, 2**62):
                self.assert_fails(1, "", ix.search, self.q, k)
            self.assert_fails(3, "64 dims", ix.search, self.q[:, :64])
            self.assert_fails(1, "", ix.search, self.q, scan="none such")
            self.assert_fails(1, "", ix.search, self.q, probe=3)
            self.assertEqual(ix.search(self.q)[1].shape, (200, 10))  # still usable
            self.assertIn("500 x 128", repr(ix))
            self.assertEqual(len(ix), 500)
        self.assert_fails(1, "closed", ix.search, self.q)
        ix.close()
        self.assert_fails(1, "", bitsweep.Index.encode, self.x[:500], folder, metric="l2")
        bitsweep.Index.encode(self.x[:300], folder, metric="l2", force=True).close()
        with self.assertRaises(bitsweep.Error):
            bitsweep.Index(self.folder / "none")
        with self.assertRaises(ValueError):
            bitsweep.Index("null\0byte")

    def test_pickled_error(self) -> None:
        for code in range(1, 10):
            error = pickle.loads(pickle.dumps(bitsweep.Error("x: No such file or directory", code, 1)))
            self.assertEqual((str(error), error.code, error.rank),
                             ("x: No such file or directory", code, 1))

    def test_kinds_of_errors(self) -> None:
        """Each is what Python calls it, too."""
        small, there = self.x[:300], self.folder / "there"
        bitsweep.Index.encode(small, there, metric="l2").close()
        file = self.folder / "there.u8bin"
        bitsweep.write(file, small)
        kinds: list[Any] = [
            (FileExistsError, "force=True", bitsweep.Index.encode, (small, there)),
            (FileExistsError, "force=True", bitsweep.write, (file, small)),
            (FileNotFoundError, "none", bitsweep.Index, (self.folder / "none",)),
            (FileNotFoundError, "none", bitsweep.read, (self.folder / "none.fbin",)),
            (ValueError, "k must", bitsweep.knn, (small, self.q, 0)),
            (ValueError, "64 dims", bitsweep.knn, (small, self.q[:, :64], 3, "l2")),
        ]
        for kind, words, call, arguments in kinds:
            with self.subTest(kind=kind, call=call):
                more = {"metric": "l2"} if call == bitsweep.Index.encode else {}
                with self.assertRaisesRegex(kind, words) as caught:
                    call(*arguments, **more)
                self.assertIsInstance(caught.exception, bitsweep.Error)
        self.assertIsInstance(bitsweep.Error("no room", 5), MemoryError)
        self.assertIsInstance(bitsweep.Error("disk full", 4), OSError)
        self.assertNotIsInstance(bitsweep.Error("lost", 7), (OSError, ValueError))

    def test_hints(self) -> None:
        small = self.x[:300]
        with bitsweep.Index.encode(small, self.folder / "hints", metric="l2", lists=4) as ix:
            self.assertEqual((ix.ntotal, ix.d), (300, 128))
            hints: list[Any] = [
                (ix.search, {"nprobe": 3}, "^search has no argument nprobe: did you mean probe[?]$"),
                (ix.search, {"over_sample": 3}, "did you mean oversample[?]$"),
                (ix.search, {"zzzz": 3}, "^search has no argument zzzz; there are queries, k, "),
                (bitsweep.knn, {"metrik": "l2"}, "did you mean metric[?]$"),
                (bitsweep.Index, {"num_threads": 2}, "^Index has no argument num_threads: did you mean threads[?]$"),
                (bitsweep.Index.encode, {"nlist": 4}, "^encode has no .* did you mean lists[?]$"),
                (bitsweep.Index.encode, {"stage_dims": 4}, "did you mean stage[?]$"),
                (bitsweep.Index.encode, {"calibrate_rows": 4}, "did you mean calibrate[?]$"),
                (bitsweep.Index.encode, {"first_row": 4}, "did you mean rows[?]$"),
            ]
            for call, more, words in hints:
                with self.assertRaisesRegex(TypeError, words):
                    call(self.q, **more)
            self.assert_fails(1, "queries.None. makes one row of it$", ix.search, self.q[0])
            self.assertEqual(ix.search(self.q[0][None])[1].shape, (1, 10))


if __name__ == "__main__":
    unittest.main()
