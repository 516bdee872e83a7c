# SPDX-License-Identifier: Apache-2.0
"""The package against itself and against the program.

Environment: BITSWEEP the program (without it, comparisons with it are skipped), BITSWEEP_LIBRARY
the library if it is not installed.
"""

import contextlib
import copy
import doctest
import io
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from pathlib import Path
from typing import Any, Iterator
from unittest import mock

import bitsweep
import numpy as np
from bitsweep import index, library, vectors

DATA = Path(__file__).parents[2] / "tests" / "data"
BASE, QUERIES = DATA / "sift20k_base.u8bin", DATA / "sift20k_query.u8bin"
PROGRAM = os.environ.get("BITSWEEP")


def run_program(*arguments: Any) -> None:
    subprocess.run([str(PROGRAM), *map(str, arguments), "--quiet"], check=True)


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


@unittest.skipUnless(PROGRAM, "BITSWEEP does not name the program")
class SameAsProgram(Case):
    def assert_answer(self, file: Path, answer: bitsweep.vectors.Answer) -> None:
        bitsweep.write_neighbours(self.folder / "answer", *answer, force=True)
        self.assertEqual((self.folder / "answer").read_bytes(), file.read_bytes())
        self.assert_same(bitsweep.read_neighbours(file), answer)

    def test_flat(self) -> None:
        made, out = self.folder / "flat", self.folder / "flat.result"
        run_program("encode", "--base", BASE, "--metric", "l2", "--bits", 3, "--index", made)
        run_program("search", "--index", made, "--queries", QUERIES, "--k", 10, "--out", out)
        with bitsweep.Index(made) as ix:
            self.assert_answer(out, ix.search(self.q))
            self.assert_same(ix.search(self.q), ix.search(QUERIES))
            self.assertEqual(ix.shape, (20000, 128))
            self.assertEqual((ix.codec, ix.metric, ix.dtype), ("saq", "l2", np.uint8))

    def test_encode(self) -> None:
        theirs, ours = self.folder / "theirs", self.folder / "ours"
        options = ["--metric", "cosine", "--bits", 2, "--shards", 2, "--copy-vectors"]
        run_program("encode", "--base", BASE, *options, "--index", theirs)
        settings: dict[str, Any] = {"metric": "cosine", "bits": 2, "shards": 2}
        bitsweep.Index.encode(BASE, ours, copy_vectors=True, **settings).close()
        files = sorted(file.name for file in theirs.iterdir())
        self.assertEqual(len(files), 5)
        for file in files:
            self.assertEqual((ours / file).read_bytes(), (theirs / file).read_bytes(), file)
        # What is made of an array has another source, and so another name for itself, no more.
        with bitsweep.Index.encode(self.x, self.folder / "memory", **settings) as ix:
            self.assertTrue(ix.info["has_vectors"])
            self.assert_same(ix.search(self.q), bitsweep.Index(theirs).search(self.q))
        for file in files[1:]:
            made = np.fromfile(self.folder / "memory" / file, np.uint8)
            expected = np.fromfile(theirs / file, np.uint8)
            self.assertLessEqual(np.count_nonzero(made != expected), 32, file)

    def test_lists(self) -> None:
        made = self.folder / "lists"
        ix = bitsweep.Index.encode(BASE, made, metric="l2", lists=64, bits=4, calibrate_rows=200)
        self.assertEqual(ix.lists, 64)
        self.assertTrue(ix.info["has_calibration"])
        for name, value in (("recall", 0.9), ("probe", 3), ("probe", "all"), ("probe_ratio", 1.1)):
            out = self.folder / f"lists.{name}.{value}"
            option = f"--{name.replace('_', '-')}"
            run_program(
                "search", "--index", made, "--queries", QUERIES, "--out", out, option, value
            )
            self.assert_answer(out, ix.search(self.q, **{name: value}))
        ix.close()

    def test_calibrate(self) -> None:
        theirs, ours = self.folder / "theirs_calibrated", self.folder / "ours_calibrated"
        ix = bitsweep.Index.encode(
            BASE, ours, metric="l2", lists=64, bits=4, calibrate_rows="none"
        )
        self.assertFalse(ix.info["has_calibration"])
        self.assert_fails(1, "recall", ix.search, self.q, recall=0.9)
        shutil.copytree(ours, theirs)
        run_program("calibrate", "--index", theirs, "--queries", QUERIES)
        said = ix.calibrate(self.q)
        self.assertTrue(ix.info["has_calibration"])
        self.assertEqual((said["num_queries"], said["k"]), (200, 10))
        self.assertLess(0.9, said["best_recall"])
        made = [(folder / "manifest.pb").read_bytes() for folder in (theirs, ours)]
        self.assertEqual(*made)
        with bitsweep.Index(theirs) as other:
            self.assert_same(ix.search(self.q, recall=0.9), other.search(self.q, recall=0.9))
        memory = {"metric": "l2", "lists": 16, "first_row": 100, "shards": 2}
        with bitsweep.Index.encode(self.x[:3000], self.folder / "kept", **memory) as kept:
            before = (self.folder / "kept" / "manifest.pb").read_bytes()
            kept.calibrate(sample=20)
            self.assertNotEqual((self.folder / "kept" / "manifest.pb").read_bytes(), before)
            kept.calibrate()  # by the rows that the folder keeps, as encode did by those in memory
            self.assertEqual((self.folder / "kept" / "manifest.pb").read_bytes(), before)
        self.assert_fails(1, "^sample", ix.calibrate, self.q, sample=10)
        self.assert_fails(8, "stopped", ix.calibrate, sample=10, progress=lambda *_: True)
        ix.close()

    def test_groundtruth(self) -> None:
        for metric in ("l2", "cosine"):
            out = self.folder / f"truth.{metric}"
            options = ["--base", BASE, "--queries", QUERIES, "--metric", metric, "--k", 20]
            run_program("groundtruth", *options, "--out", out)
            self.assert_answer(out, bitsweep.knn(self.x, self.q, 20, metric))


class Numbers(Case):
    """Arrays of every type and layout."""

    def test_no_copies(self) -> None:
        for kind in (np.float32, np.float16, np.uint8, np.int8):
            x = np.zeros((3, 5), kind)
            self.assertEqual(vectors.as_array(x, "x").ctypes.data, x.ctypes.data)
            turned = np.zeros((5, 3), kind).T
            self.assertFalse(np.shares_memory(vectors.as_array(turned, "x"), turned))

    def test_types(self) -> None:
        q = self.q.astype(np.float32)
        expected = bitsweep.knn(self.x, q, 5, "l2")
        wide = np.zeros((len(q), 256), np.float32)
        wide[:, ::2] = q
        big = q.astype(">f4")
        for queries in (q.astype(np.float64), q.astype(np.float16), np.asfortranarray(q), big,
                        wide[:, ::2], q.astype(np.int64), q.astype(np.uint16), q.tolist()):
            self.assert_same(bitsweep.knn(self.x, queries, 5, "l2"), expected)

    def test_answer(self) -> None:
        x = self.x.astype(np.float32)
        values, ids = bitsweep.knn(x[:2000], self.q, 7, "l2")
        distances = ((x[None, :2000] - self.q[:, None].astype(np.float32)) ** 2).sum(axis=2)
        order = np.argsort(distances, axis=1, kind="stable")[:, :7]
        self.assertEqual((values.dtype, ids.dtype), (np.float32, np.int64))
        np.testing.assert_array_equal(ids, order)
        np.testing.assert_array_equal(values, np.take_along_axis(distances, order, axis=1))
        self.assertEqual(bitsweep.recall(ids, order), 1)
        self.assertAlmostEqual(bitsweep.recall(ids[:, :1], order, 7), 1 / 7)

    def test_self(self) -> None:
        ids = bitsweep.knn(self.x[:100], self.x[:100], 3, "l2", exclude_self=True)[1]
        self.assertFalse((ids == np.arange(100)[:, None]).any())


class Files(Case):
    def test_formats(self) -> None:
        names = {"fvecs": "f4", "fbin": "f4", "bvecs": "u1", "u8bin": "u1", "i8bin": "i1"}
        cases = [(f"a.{name}", kind) for name, kind in names.items()]
        cases += [(f"{kind}.npy", kind) for kind in ("f4", "f2", "u1", "i1")]
        for name, kind in cases:
            x = (self.x[:50] // 2).astype(kind)
            file = self.folder / name
            bitsweep.write(file, x)
            self.assertEqual(bitsweep.shape(file), (50, 128, np.dtype(kind)))
            back = bitsweep.read(file)
            self.assertEqual(back.dtype, x.dtype)
            np.testing.assert_array_equal(back, x)
            np.testing.assert_array_equal(bitsweep.read(file, 10, 5), x[10:15])
            if name.endswith(".npy"):
                np.testing.assert_array_equal(np.load(file), x)
            self.assert_fails(1, "exists", bitsweep.write, file, x)
        self.assertEqual(len(cases), 9)
        self.assert_fails(3, "0.5", bitsweep.write, self.folder / "b.u8bin", np.full((1, 2), 0.5))
        with self.assertRaises(bitsweep.Error):
            bitsweep.read(self.folder / "a.fvecs", 45, 10)

    def test_neighbours(self) -> None:
        ids = np.arange(12).reshape(3, 4)
        bitsweep.write_neighbours(self.folder / "n.ivecs", None, ids)
        values, back = bitsweep.read_neighbours(self.folder / "n.ivecs")
        self.assertIsNone(values)
        np.testing.assert_array_equal(back, ids)

    def test_hdf5(self) -> None:
        try:
            import h5py
        except ImportError:
            self.skipTest("no h5py here")
        if not bitsweep.has("hdf5"):
            self.skipTest("the library has no HDF5")
        with h5py.File(self.folder / "x.hdf5", "w") as file:
            file["train"] = self.x[:20].astype(np.float32)
        np.testing.assert_array_equal(bitsweep.read(f"{self.folder}/x.hdf5:train"), self.x[:20])


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
        self.assert_fails(1, "^metric", bitsweep.Index.encode, small, folder, metric="l3")
        self.assert_fails(1, "bits", bitsweep.Index.encode, small, folder, metric="l2", bits=99)
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
        wholes = ["lists", "subspaces", "stage_dims", "seed", "shards", "calibrate_rows"]
        wholes += ["first_row", "num_rows", "threads", "device_memory"]
        with bitsweep.Index.encode(small, self.folder / "numbers", metric="l2", lists=4) as ix:
            calls: list[Any] = [(encode, (small, folder), name) for name in wholes]
            calls += [(encode, (small, folder), name) for name in ("bits", "scale")]
            names = ["k", "probe", "scan_dims", "query_bits", "batch"]
            names += ["recall", "probe_ratio", "oversample"]
            calls += [(ix.search, (self.q,), name) for name in names]
            calls += [(bitsweep.knn, (small, self.q), name) for name in ("k", "threads")]
            calls += [(ix.calibrate, (), "sample"), (bitsweep.read, (BASE,), "first_row")]
            calls += [(bitsweep.recall, ([[1]], [[1]]), "k")]
            calls += [(bitsweep.Index, (ix.folder,), "check_seconds")]
            reals = ("bits", "scale", "recall", "probe_ratio", "oversample", "check_seconds")
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
            self.assert_fails(1, "^probe_ratio 0.001: 0.01 to", ix.search, self.q,
                              probe_ratio=0.001)
            self.assertEqual(ix.search(self.q, np.int64(3), probe=np.uint8(2))[1].shape, (200, 3))
        self.assertFalse(folder.exists())

    def test_texts(self) -> None:
        small, folder = self.x[:300], self.folder / "never"
        for name in ("metric", "codec", "segments", "axes", "rotation", "residual", "device"):
            with self.assertRaisesRegex(TypeError, f"^{name} must be a text, not 3$"):
                bitsweep.Index.encode(small, folder, **{name: 3})
        for name in ("copy_vectors", "drop_bad_rows", "force", "resume"):
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
        error = pickle.loads(pickle.dumps(bitsweep.Error("text", 3, 1)))
        self.assertEqual((str(error), error.code, error.rank), ("text", 3, 1))


class Copies(Case):
    def test_copies(self) -> None:
        made = bitsweep.Index.encode(self.x[:2000], self.folder / "original", metric="l2")
        expected = made.search(self.q)
        made.close()
        name = os.path.relpath(self.folder / "original")
        ix = bitsweep.Index(name, threads=1, device="cpu", check_seconds=7)
        for make in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
            with make(ix) as other:
                self.assertIsNot(other, ix)
                self.assertEqual(other.info, ix.info)
                self.assertTrue(os.path.isabs(other.folder))
                self.assert_same(other.search(self.q), expected)
        self.assert_same(ix.search(self.q), expected)  # no copy has closed it
        (self.folder / "original").rename(self.folder / "elsewhere")
        self.assert_fails(1, "original is gone: ", pickle.dumps, ix)
        ix.close()
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            self.assert_fails(1, "the index is closed", make, ix)


def search_in_child(given: Any) -> Any:
    ix, x, q = given
    return [(Forks.ix if ix is None else ix).search(q), bitsweep.knn(x, q, 5, "l2", threads=2)]


class Forks(Case):
    """Processes that begin as a copy of this one, after it has used its threads."""

    ix: bitsweep.Index

    def in_child(self, given: Any) -> Any:
        with multiprocessing.get_context("fork").Pool(1) as pool:
            return pool.map_async(search_in_child, [given]).get(60)[0]

    def test_fork(self) -> None:
        x = self.x[:3000]
        with bitsweep.Index.encode(x, self.folder / "forked", metric="l2", threads=2) as ix:
            expected = [ix.search(self.q), bitsweep.knn(x, self.q, 5, "l2", threads=2)]
            Forks.ix = ix
            for given in (ix, None):  # by way of a pickle, and as it is in the child's memory
                for found, wanted in zip(self.in_child((given, x, self.q)), expected):
                    self.assert_same(found, wanted)
            self.assert_same(ix.search(self.q), expected[0])

    def test_fork_in_a_call(self) -> None:
        """A child that another thread of its parent is in a call of can make none, and says so."""
        with bitsweep.Index.encode(self.x[:300], self.folder / "in a call", metric="l2") as ix:
            Forks.ix, said = ix, []

            def fork(*_: Any) -> None:
                if not said:
                    with self.assertRaisesRegex(bitsweep.Error, "forked while a call"):
                        self.in_child((None, self.x[:300], self.q))
                    said.append(1)

            self.assertEqual(ix.search(self.q, progress=fork)[1].shape, (200, 10))
            self.assertTrue(said)


class LongCalls(Case):
    """What a caller can do while a call lasts: one that would take minutes."""

    def long_call(self, **more: Any) -> None:
        rows = "synth:count=100M,dims=128"
        bitsweep.knn(rows, np.ones((10, 128), np.float32), 10, "l2", threads=1, **more)

    def test_progress(self) -> None:
        seen = []
        ix = bitsweep.Index.encode(
            self.x, self.folder / "seen", metric="l2", progress=lambda *step: seen.append(step)
        )
        ix.close()
        self.assertTrue(seen)
        for phase, done, total in seen:
            self.assertIsInstance(phase, str)
            self.assertLessEqual(done, total)

    def test_bar(self) -> None:
        made = []

        class Bar:
            def __init__(self, total: int, desc: str, leave: bool) -> None:
                self.n = 0
                made.append((self, total, desc))

            def update(self, steps: int) -> None:
                self.n += steps

            def close(self) -> None:
                pass

        tqdm = types.ModuleType("tqdm")
        tqdm.tqdm = Bar  # type: ignore[attr-defined]
        for module in (tqdm, None):
            said = io.StringIO()
            with mock.patch.dict(sys.modules, tqdm=module), contextlib.redirect_stderr(said):
                bitsweep.knn(self.x, self.q, 5, "l2", progress=True)
            self.assertEqual("bitsweep: " in said.getvalue(), module is None)
        bar, total, phase = made[-1]
        self.assertEqual(bar.n, total)
        self.assertTrue(phase)

    def test_stop(self) -> None:
        self.assert_fails(8, "stopped", self.long_call, progress=lambda *_: True)
        with self.assertRaises(ZeroDivisionError):
            self.long_call(progress=lambda *_: 1 // 0)
        with self.assertRaises(TypeError):
            self.long_call(progress=3)

    def test_interrupt(self) -> None:
        before = signal.getsignal(signal.SIGINT)
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        with self.assertRaises(KeyboardInterrupt):
            timer.start()
            self.long_call()
        self.assertIs(signal.getsignal(signal.SIGINT), before)

    @contextlib.contextmanager
    def handled(self, number: int, handler: Any) -> Iterator[None]:
        before = signal.signal(number, handler)
        try:
            yield
            self.assertIs(signal.getsignal(number), handler)
        finally:
            signal.signal(number, before)

    def test_handlers_that_raise(self) -> None:
        def fail(number: int, _frame: Any) -> None:
            raise LookupError(number)

        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM):
            with self.handled(number, fail), self.assertRaises(LookupError) as caught:
                timer = threading.Timer(0.1, os.kill, (os.getpid(), number))
                timer.start()
                self.long_call()
            self.assertEqual(caught.exception.args, (number,))
        with self.handled(signal.SIGALRM, fail), mock.patch("sys.unraisablehook") as lost:
            for _ in range(20):  # wherever it arrives
                with contextlib.suppress(LookupError):
                    signal.setitimer(signal.ITIMER_REAL, 0.002)
                    bitsweep.knn(self.x[:1000], self.q, 10, "l2")
                    time.sleep(1)
            self.assertFalse(lost.called)

    def test_handler_that_goes_on(self) -> None:
        taken: list[int] = []
        expected = bitsweep.knn(self.x, self.q, 10, "l2")
        for number in (signal.SIGINT, signal.SIGALRM, signal.SIGUSR1):
            taken.clear()
            with self.handled(number, lambda *_: taken.append(1)):
                found = bitsweep.knn(self.x, self.q, 10, "l2",
                                     progress=lambda *_: os.kill(os.getpid(), number))
            self.assertTrue(taken)
            self.assert_same(found, expected)
        with self.handled(signal.SIGALRM, lambda *_: taken.append(1)):
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)  # also in what reads and writes files
            try:
                bitsweep.Index.encode(BASE, self.folder / "disturbed", metric="l2").close()
                found = bitsweep.knn(BASE, QUERIES, 10, "l2")
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        self.assert_same(found, expected)

    def test_handler_that_is_replaced(self) -> None:
        other = lambda *_: None  # noqa: E731
        replace = lambda *_: signal.signal(signal.SIGUSR1, other)  # noqa: E731
        before = signal.signal(signal.SIGUSR1, replace)
        try:
            bitsweep.knn(self.x[:100], self.q, 10, "l2",
                         progress=lambda *_: os.kill(os.getpid(), signal.SIGUSR1))
            self.assertIs(signal.getsignal(signal.SIGUSR1), other)
        finally:
            signal.signal(signal.SIGUSR1, before)

    def test_gil(self) -> None:
        """Between two calls of the progress function this thread gets on."""
        turns, calls, seen, last = 0, 0, 0, 0

        def look(*_: Any) -> bool:
            nonlocal calls, seen, last
            calls += 1
            seen += turns > last
            last = turns
            return seen == 5 or calls == 500

        stop = {"progress": look}
        call = (8, "stopped", self.long_call)
        thread = threading.Thread(target=self.assert_fails, args=call, kwargs=stop)
        thread.start()
        while thread.is_alive():
            time.sleep(0.001)
            turns += 1
        self.assertEqual(seen, 5)

    def test_threads(self) -> None:
        ix = bitsweep.Index.encode(self.x[:2000], self.folder / "shared", metric="l2")
        expected = ix.search(self.q)
        found: list[Any] = []
        search = lambda *_: found.append(ix.search(self.q))  # noqa: E731
        threads = [threading.Thread(target=search) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(found), 4)
        for answer in found:
            self.assert_same(answer, expected)
        self.assertEqual(ix.last_search["device"], "cpu")
        self.assert_fails(1, "progress function", ix.search, self.q, progress=search)
        ix.close()


RANKS = """
import sys, bitsweep
from mpi4py import MPI
comm = MPI.COMM_WORLD
x, q = bitsweep.read(sys.argv[1]), bitsweep.read(sys.argv[2])
ix = bitsweep.Index.encode(x, sys.argv[3], metric="l2", shards=2, comm=comm)
answer = ix.search(q if comm.rank == 0 else None)
ix.close()
truth = bitsweep.knn(x, q if comm.rank == 0 else None, metric="l2", comm=comm)
if comm.rank == 0:
    bitsweep.write_neighbours(sys.argv[4], *answer)
    bitsweep.write_neighbours(sys.argv[4] + ".truth", *truth)
else:
    assert answer[0].shape == truth[0].shape == (0, 10)
"""

# Of each call one rank gives what Python refuses, or the library; all raise, and soon.
MISTAKES = """
import sys, bitsweep
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank = comm.rank
x, q = bitsweep.read(sys.argv[1])[:2000], bitsweep.read(sys.argv[2])
asked = q if rank == 0 else None

def fails(words, call, *arguments, **more):
    try:
        call(*arguments, comm=comm, **more) if call in (encode, bitsweep.knn) else call(
            *arguments, **more)
    except bitsweep.Error as error:
        said = str(error)
    except TypeError as error:
        said = str(error)
    else:
        said = "no error"
    assert words in said, (rank, words, said)

encode = bitsweep.Index.encode
mine = lambda wrong, right: wrong if rank == 1 else right
fails("axes", encode, mine(x[0], x), sys.argv[3], metric="l2")
fails("lists must be a whole number or 'auto', not 'x'", encode, x, sys.argv[3], metric="l2", lists=mine("x", 0))
fails("others than rank 0", encode, x, sys.argv[3], metric="l2", bits=mine(2, 3))
fails("progress is neither", encode, x, sys.argv[3], metric="l2", progress=mine(3, None))
fails("k must be 1 or more, not -1", bitsweep.knn, x, asked, mine(-1, 10), "l2")
fails("there are none", bitsweep.knn, x, None, 10, "l2")
ix = encode(x, sys.argv[3], metric="l2", comm=comm)
fails("axes", ix.search, q[0] if rank == 0 else None)
fails("probe must be a whole number or 'all', not 'few'", ix.search, asked, probe=mine("few", None))
fails("others than rank 0", ix.search, asked, k=mine(9, 10))
none = q[:0] if rank == 0 else None
assert ix.search(none)[1].shape == bitsweep.knn(x, none, 10, "l2", comm=comm)[1].shape == (0, 10)
fails("64 dims", ix.search, q[:0, :64] if rank == 0 else None)
fails("64 dims", bitsweep.knn, x, q[:0, :64] if rank == 0 else None, 10, "l2")
fails("neither copied nor pickled", ix.__reduce__)
assert ix.search(asked)[1].shape == (len(q) if rank == 0 else 0, 10)
ix.close()
"""


class SeveralRanks(Case):
    def run_two(self, script: str, *arguments: Any) -> None:
        if not shutil.which("mpirun") or not bitsweep.has("mpi"):
            self.skipTest("no MPI here")
        try:
            import mpi4py  # noqa: F401
        except ImportError:
            self.skipTest("no mpi4py here")
        words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable]
        words += ["-c", script, str(BASE), str(QUERIES), *map(str, arguments)]
        subprocess.run(words, check=True, timeout=60)

    def test_mistakes(self) -> None:
        self.run_two(MISTAKES, self.folder / "mistakes")

    def test_two(self) -> None:
        out = self.folder / "out"
        self.run_two(RANKS, self.folder / "two", out)
        with bitsweep.Index.encode(self.x, self.folder / "one", metric="l2", shards=2) as ix:
            self.assert_same(bitsweep.read_neighbours(out), ix.search(self.q))
        truth = bitsweep.read_neighbours(f"{out}.truth")
        self.assert_same(truth, bitsweep.knn(self.x, self.q, metric="l2"))


def load_tests(_loader: Any, tests: unittest.TestSuite, _pattern: Any) -> unittest.TestSuite:
    for module in (bitsweep, vectors, index, library):
        tests.addTests(doctest.DocTestSuite(module))
    return tests


if __name__ == "__main__":
    unittest.main()
