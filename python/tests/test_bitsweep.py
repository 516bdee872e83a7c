# SPDX-License-Identifier: Apache-2.0
"""The package against itself and against the program.

Environment: BITSWEEP the program (without it, comparisons with it are skipped), BITSWEEP_LIBRARY
the library if it is not installed.
"""

import copy
import doctest
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import bitsweep
import numpy as np
from bitsweep import arguments, index, library, program, vectors
from package_case import BASE, QUERIES, Case

PROGRAM = os.environ.get("BITSWEEP")


def run_program(*arguments: Any) -> None:
    subprocess.run([str(PROGRAM), *map(str, arguments), "--quiet"], check=True)


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

    def test_allow(self) -> None:
        random = np.random.default_rng(1)
        some = random.random(20000) < 0.1
        each = random.random((len(self.q), 20000)) < 0.1
        each[::2] = some
        with bitsweep.Index.encode(BASE, self.folder / "allow", metric="l2", bits=2) as ix:
            for name, mask in {"some": some, "each": each}.items():
                out, file = self.folder / f"{name}.result", self.folder / f"{name}.npy"
                np.save(file, mask)
                run_program(
                    *("search", "--index", ix.folder, "--queries", QUERIES, "--k", 10),
                    *("--allow", file, "--out", out),
                )
                self.assert_answer(out, ix.search(self.q, allow=mask))
            ids = random.permutation(np.flatnonzero(some))
            for kind in (np.int32, np.uint64, np.int64):
                found = ix.search(self.q, allow=ids.astype(kind))
                self.assert_same(found, ix.search(self.q, allow=some))
            self.assert_same(ix.search(self.q, allow=np.ones(20000, bool)), ix.search(self.q))
            values, found = ix.search(self.q, k=3, allow=[7, 5])
            self.assertEqual(set(found[:, :2].ravel()), {5, 7})
            self.assertTrue((found[:, 2] == -1).all() and np.isinf(values[:, 2]).all())
            self.assertTrue((ix.search(self.q, allow=[])[1] == -1).all())
            for wrong, why in (
                ([20000], "allow: id 20000: ids are 0 to 19999"),
                ([-1], "id -1: ids are 0 to 19999"),
                (np.array([2**64 - 1], np.uint64), "id 18446744073709551615 is none"),
                (some[1:], "one mask of 19999 rows: there are 20000 rows"),
                (each[1:], "199 masks of 20000 rows: .* one for each of the 200 queries"),
                ([[1, 2]], r"bools \[rows\] or \[queries, rows\] or ids are needed"),
                ([0.5], "are needed, not float64"),
            ):
                with self.assertRaisesRegex(bitsweep.Error, why):
                    ix.search(self.q, allow=wrong)
            self.assert_same(ix.search(self.q, allow=ids), ix.search(self.q, allow=some))

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

    def test_rotation(self) -> None:
        theirs = self.folder / "rotated"
        options = ["--codec", "xfbq", "--rotation", "random", "--copy-vectors"]
        run_program("encode", "--base", BASE, *options, "--index", theirs)
        for rotation in (None, "random", "none"):
            ours = self.folder / f"rotated {rotation}"
            bitsweep.Index.encode(
                BASE, ours, codec="xfbq", rotation=rotation, copy_vectors=True
            ).close()
            same = (ours / "manifest.pb").read_bytes() == (theirs / "manifest.pb").read_bytes()
            self.assertEqual(same, rotation != "none", rotation)

    def test_lists(self) -> None:
        made = self.folder / "lists"
        ix = bitsweep.Index.encode(BASE, made, metric="l2", lists=64, bits=4, calibrate=200)
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
            BASE, ours, metric="l2", lists=64, bits=4, calibrate="none"
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
        memory = {"metric": "l2", "lists": 16, "rows": (100, None), "shards": 2}
        with bitsweep.Index.encode(self.x[:3000], self.folder / "kept", **memory) as kept:
            before = (self.folder / "kept" / "manifest.pb").read_bytes()
            kept.calibrate(sample=20)
            self.assertNotEqual((self.folder / "kept" / "manifest.pb").read_bytes(), before)
            kept.calibrate()  # by the rows that the folder keeps, as encode did by those in memory
            self.assertEqual((self.folder / "kept" / "manifest.pb").read_bytes(), before)
        self.assert_fails(1, "^sample", ix.calibrate, self.q, sample=10)
        self.assert_fails(8, "stopped", ix.calibrate, sample=10, progress=lambda *_: True)
        ix.close()

    def test_changes(self) -> None:
        """append, delete and compact give what the rows that are left give alone."""
        ids = np.arange(1000, dtype=np.uint64) * 7 + 3
        ix = bitsweep.Index.encode(
            self.x[:600], self.folder / "lives", metric="l2", bits=8, ids=ids[:600]
        )
        ix.append(self.x[600:1000], ids=ids[600:], shards=2)
        self.assertEqual((len(ix), ix.info["generation"], ix.info["has_ids"]), (1000, 1, True))
        self.assertEqual(ix.delete(range(100, 300)), 200)
        self.assertEqual(ix.delete(np.arange(290, 310)), 10)
        self.assertEqual(ix.delete(ids=[3]), 1)
        self.assertEqual(ix.info["deleted_rows"], 211)
        left = np.r_[1:100, 310:1000]
        values, rows = bitsweep.knn(self.x[left], self.q, 10, metric="l2")
        expected = (values, ids[left][rows].astype(np.int64))
        self.assert_same(ix.search(self.q, oversample=100), expected)
        ix.compact()
        self.assertEqual((len(ix), ix.info["deleted_rows"]), (789, 0))
        self.assert_same(ix.search(self.q, oversample=100), expected)
        np.testing.assert_array_equal(ix.reconstruct(expected[1][:2]), self.x[left][rows[:2]])
        self.assert_fails(1, "row 789", ix.delete, [789])
        self.assert_fails(1, "^ids: row 0 of .* has id 10", ix.append, self.x[:1], ids=[10])
        self.assert_fails(1, "its rows have ids: give ids", ix.append, self.x[:1])
        self.assert_fails(3, "twice", ix.append, self.x[:2], ids=[1, 1])
        with self.assertRaisesRegex(TypeError, "either rows or ids"):
            ix.delete()
        ix.close()

    def test_text(self) -> None:
        pairs = (BASE.parent / "oewn_pairs.tsv").read_text("utf-8").splitlines()[:300]
        questions, glosses = zip(*(line.split("\t")[:2] for line in pairs))
        base, model = self.folder / "glosses.txt", self.folder / "text.rbe"
        (self.folder / "pairs.tsv").write_text("\n".join(pairs) + "\n", "utf-8")
        base.write_text("\n".join(glosses) + "\n", "utf-8")
        (self.folder / "questions.txt").write_text("\n".join(questions) + "\n", "utf-8")
        run_program("train", "--text", self.folder / "pairs.tsv", "--model", model, "--precision", "float",
                    "--code-dims", 16, "--text-dims", 16, "--epochs", 1, "--batch", 64)
        made, out = self.folder / "text", self.folder / "text_answer"
        run_program("encode", "--base", base, "--model", model, "--metric", "cosine", "--index", made)
        run_program("search", "--index", made, "--queries", self.folder / "questions.txt", "--k", 3, "--out", out)
        run_program("convert", "--in", base, "--model", model, "--out", self.folder / "rows.npy")
        with bitsweep.Index(made) as ix:
            self.assert_answer(out, ix.search(text=questions, k=3))
            values, ids = ix.search(text=questions[7], k=3)
            self.assertEqual(ids.tolist(), ix.search(text=list(questions), k=3)[1][7:8].tolist())
            for strange in ("", "\0", b"\xff\xfe", "\ud800", "x" * 100_000):
                self.assertEqual(ix.search(text=strange, k=3)[1].shape, (1, 3))
            with self.assertRaisesRegex(ValueError, "in place of queries"):
                ix.search(self.q, text="dogs")
            with self.assertRaisesRegex(TypeError, "must be str or bytes, not 3"):
                ix.search(text=[3])
        with bitsweep.TextModel(model) as m, bitsweep.TextModel(made) as kept:
            self.assertEqual(m.dims, 16)
            rows = m.embed(glosses, query=False)
            self.assertEqual(rows.tobytes(), np.load(self.folder / "rows.npy").tobytes())
            self.assertEqual(kept.embed(questions).tobytes(), m.embed(questions).tobytes())
            self.assertEqual(m.embed([]).shape, (0, 16))
        with self.assertRaisesRegex(ValueError, "closed"):
            m.embed("dogs")
        self.assert_fails(4, "cannot open", bitsweep.TextModel, self.folder / "none")
        bitsweep.Index.encode(self.x[:300], self.folder / "no_text", metric="l2").close()
        self.assert_fails(1, "is no index of texts", bitsweep.TextModel, self.folder / "no_text")

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

    def test_equal_cosines(self) -> None:
        x = np.vstack([self.x[:300] // 4, self.x[:300] // 4 * 3])  # each row, and three times it
        for queries in (self.q, self.q.astype(np.float32)):
            answer = bitsweep.knn(x, queries, 4, "cosine")
            values, ids = answer
            np.testing.assert_array_equal(ids[:, 1::2], ids[:, ::2] + 300)
            np.testing.assert_array_equal(values[:, 1::2], values[:, ::2])
            with bitsweep.Index.encode(x, self.folder / "equal", metric="cosine", bits=3,
                                       force=True) as ix:
                self.assert_same(ix.search(queries, 4, oversample=10000), answer)

    def test_bounds(self) -> None:
        x = np.random.default_rng(1).standard_normal((500, 16)).astype(np.float32)
        for metric, least, most, met in ("l2", 0, np.inf, 0), ("cosine", -1, 1, 1):
            with bitsweep.Index.encode(x, self.folder / metric, metric=metric, bits=2) as ix:
                values = ix.search(x, 10, refine="none")[0]
            self.assertTrue(((values >= least) & (values <= most)).all())
            self.assertTrue((values == met).any())


class Checks(Case):
    """What is said of codes before they are made."""

    def test_good_codes(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ix = bitsweep.Index.encode(self.x, self.folder / "good", metric="l2", force=True)
        self.assertGreater(ix.info["check_recall"], 0.99)
        self.assertEqual(ix.info["check_cause"], "")
        ix.close()

    def test_poor_codes_and_rows_far_out(self) -> None:
        x = np.random.default_rng(1).standard_normal((2000, 64), dtype=np.float32)
        poor = {"metric": "l2", "bits": 1, "force": True}
        with self.assertWarnsRegex(RuntimeWarning, "^10-recall@50 of the sample 0.*too few bits.*more bits, try codec"):
            ix = bitsweep.Index.encode(x, self.folder / "poor", **poor)
        self.assertLess(ix.info["check_recall"], 0.9)
        ix.close()
        x[77] *= 1e6
        with self.assertWarnsRegex(RuntimeWarning, "row 77: "):
            bitsweep.Index.encode(x, self.folder / "far", metric="ip", bits=4).close()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ix = bitsweep.Index.encode(x, self.folder / "poor", skip_check=True, **poor)
        self.assertEqual(ix.info["check_recall"], 0)
        ix.close()


class Rows(Case):
    """Rows by their ids."""

    def assert_rows(self, ix: bitsweep.Index, x: np.ndarray) -> None:
        first = ix.info["first_row"]
        ids = np.random.default_rng(1).integers(first, first + len(ix), (20, 3))
        found = ix.reconstruct(ids)
        self.assertEqual((found.dtype, found.shape), (ix.dtype, (20, 3, 128)))
        np.testing.assert_array_equal(found, x[ids])
        np.testing.assert_array_equal(ix.reconstruct(first + len(ix) - 1), x[first + len(ix) - 1])
        self.assertEqual(ix.reconstruct(ids[:0]).shape, (0, 3, 128))
        for wrong in (first - 1, first + len(ix), -1, -(2**63)):
            self.assert_fails(1, f"^id {wrong}: .* has rows {first} to ", ix.reconstruct, [first, wrong])

    def test_reconstruct(self) -> None:
        x = self.x.astype(np.float32)
        for more in ({"rows": (0, 4000)}, {"lists": 8, "rows": (0, 4000)}, {"shards": 3, "codec": "raw"}, {"rows": (5000, 9000)},
                     {"lists": 8, "shards": 2, "rows": (100, 3000)}):
            with bitsweep.Index.encode(BASE, metric="l2", **more) as ix:
                self.assert_rows(ix, self.x)
            with bitsweep.Index.encode(BASE, metric="l2", copy_vectors=True, **more) as ix:
                self.assert_rows(ix, self.x)
        with bitsweep.Index.encode(x[:500], metric="ip") as ix:
            self.assert_rows(ix, x)
            for ids, words in ([1.5], "integers"), ([True], "integers"), (["a"], "integers"):
                self.assert_fails(1, f"^ids: .*{words}", ix.reconstruct, ids)
        self.assert_fails(1, "closed", ix.reconstruct, [1])

    def test_source_that_changed(self) -> None:
        file = self.folder / "source.u8bin"
        bitsweep.write(file, self.x[:400])
        with bitsweep.Index.encode(file, metric="l2") as ix:
            self.assert_rows(ix, self.x)
            self.x[399, 5] ^= 1
            bitsweep.write(file, self.x[:400], force=True)
            np.testing.assert_array_equal(ix.reconstruct([0]), self.x[:1])
            self.assert_fails(3, "source.u8bin", ix.reconstruct, [399])
            file.unlink()
            self.assert_fails(4, "source.u8bin: .*No such file", ix.reconstruct, [0])
        self.x[399, 5] ^= 1

    def test_temporary_folder(self) -> None:
        ix = bitsweep.Index.encode(self.x[:300], metric="l2")
        folder = Path(ix.folder).parent
        with copy.copy(ix) as other:
            self.assert_same(other.search(self.q), ix.search(self.q))
        self.assertTrue(folder.exists())
        ix.close()
        self.assertFalse(folder.exists())
        ix = bitsweep.Index.encode(self.x[:300], metric="l2")
        folder = Path(ix.folder).parent
        del ix
        self.assertFalse(folder.exists())
        with tempfile.TemporaryDirectory() as place, mock.patch("tempfile.tempdir", place):
            self.assert_fails(1, "metric", bitsweep.Index.encode, self.x[:300])
            self.assertEqual(list(Path(place).iterdir()), [])

    def test_temporary_folder_and_fork(self) -> None:
        with bitsweep.Index.encode(self.x[:300], metric="l2") as ix:
            child = os.fork()
            if child == 0:
                ix.close()
                os._exit(0)
            os.waitpid(child, 0)
            self.assertTrue(Path(ix.folder).exists())


class Records(Case):
    """What the program measures and computes, as pandas.DataFrame takes it."""

    def setUp(self) -> None:
        try:
            program.program()
        except bitsweep.Error as error:
            self.skipTest(str(error))

    def test_sweep(self) -> None:
        quick = {"measure": 0, "repeat": 1, "metric": "l2", "bits": [2, 3], "oversample": [1, 5]}
        rows = bitsweep.sweep(self.x[:1000], self.q, **quick)
        self.assertEqual([(r["bits"], r["oversample"]) for r in rows], [(2, 1), (2, 5), (3, 1), (3, 5)])
        self.assertEqual(len({tuple(r) for r in rows if r["oversample"] == 1}), 1)
        self.assertGreater(rows[3]["recall"], 0.99)
        kept = self.folder / "sweep"
        truth = bitsweep.knn(self.x[:1000], self.q, 10, "l2")[1]
        quick |= {"bits": 3, "rows": slice(0, 1000), "exclude_self": False}
        again = bitsweep.sweep(BASE, QUERIES, folder=kept, groundtruth=truth, **quick)
        self.assertEqual([r["recall"] for r in again], [r["recall"] for r in rows[2:]])
        self.assertTrue((kept / "report.html").exists())
        self.assert_fails(1, "resume=True", bitsweep.sweep, BASE, QUERIES, folder=kept, **quick)

    def test_sweep_that_cannot_be(self) -> None:
        with self.assertRaisesRegex(TypeError, "^sweep has no argument nprobe: did you mean probe"):
            bitsweep.sweep(self.x, self.q, nprobe=3)
        with self.assertRaisesRegex(TypeError, "^sweep has no argument folders: .* folder"):
            bitsweep.sweep(self.x, self.q, folders=3)
        self.assert_fails(1, "^unknown metric 'l3'", bitsweep.sweep, self.x, self.q, metric="l3")
        self.assert_fails(4, "none.fbin: ", bitsweep.sweep, self.folder / "none.fbin", self.q, metric="l2")
        with mock.patch.dict(os.environ, BITSWEEP_PROGRAM="/bin/none"), self.assertRaises(OSError):
            bitsweep.sweep(self.x, self.q)

    def test_interrupted_sweep(self) -> None:
        """The program ends, too."""
        with mock.patch.object(program, "_tell", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                bitsweep.sweep("synth:count=3M,dims=128", self.q, metric="l2")

    def test_plan(self) -> None:
        lines = bitsweep.plan(10**6, 128, bits=3, ranks=[1, 2, 4], scan_rate="1G")
        self.assertEqual([line["ranks"] for line in lines], [1, 2, 4])
        self.assertEqual([line["bytes_per_vector"] for line in lines], [56] * 3)
        self.assertEqual(lines[0]["seconds_by_phase.scan"], 1)
        with self.assertRaisesRegex(TypeError, "^plan has no argument nbits: did you mean bits"):
            bitsweep.plan(10**6, 128, nbits=3)
        self.assert_fails(1, "^dims 0: must be 1 to", bitsweep.plan, 10**6, 0)

    def test_program(self) -> None:
        words = [sys.executable, "-m", "bitsweep", "--version"]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        self.assertEqual(said, f"bitsweep {bitsweep.__version__}\n")
        nowhere = {**os.environ, "BITSWEEP_PROGRAM": "/bin/none"}
        done = subprocess.run(words, capture_output=True, text=True, env=nowhere)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertRegex(done.stderr, "^bitsweep: .*No such file")


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

# In each call one rank gives what Python refuses, or the library; all raise, and soon.
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
    for module in (bitsweep, vectors, index, library, arguments):
        tests.addTests(doctest.DocTestSuite(module))
    return tests


if __name__ == "__main__":
    unittest.main()
