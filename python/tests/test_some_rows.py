# SPDX-License-Identifier: Apache-2.0
"""Rows within a value, rows with some tags, and rows that are left where some cannot be read.

Environment: as for test_bitsweep.py.
"""

import unittest
from pathlib import Path
from typing import Any

import bitsweep
import numpy as np
from package_case import BASE, QUERIES, Case
from test_bitsweep import PROGRAM, run_program


@unittest.skipUnless(PROGRAM, "BITSWEEP does not name the program")
class SomeRows(Case):
    def test_tags(self) -> None:
        random = np.random.default_rng(2)

        def spmat(name: str, rows: Any) -> Path:
            starts = np.cumsum([0, *rows.sum(1)])
            head = np.array([*rows.shape, starts[-1], *starts], np.int64)
            tags = np.nonzero(rows)[1].astype(np.int32)
            file = self.folder / name
            file.write_bytes(head.tobytes() + tags.tobytes() + bytes(4 * len(tags)))
            return file

        base, wanted = random.random((20000, 7)) < 0.3, random.random((len(self.q), 7)) < 0.2
        mask = np.array([base[:, row].all(1) for row in wanted])
        query_tags = spmat("query.spmat", wanted)
        x = bitsweep.read(BASE)
        ix = bitsweep.Index.encode(
            x[:15000], self.folder / "tags", metric="l2", tags=spmat("base.spmat", base[:15000])
        )
        ix.append(x[15000:], tags=spmat("more.spmat", base[15000:]))
        self.assertTrue(ix.info["has_tags"])
        found = ix.search(self.q, query_tags=query_tags)
        self.assert_same(found, ix.search(self.q, allow=mask))
        self.assert_same(ix.search(self.q), ix.search(self.q, allow=np.ones(20000, bool)))
        with self.assertRaisesRegex(bitsweep.Error, "tags of 200 queries, there are 3"):
            ix.search(self.q[:3], query_tags=query_tags)
        with self.assertRaisesRegex(bitsweep.Error, "give one of them"):
            ix.search(self.q, query_tags=query_tags, allow=mask)
        with self.assertRaises(FileNotFoundError):
            ix.search(self.q, query_tags=self.folder / "none.spmat")
        ix.close()

    def test_knn_of_allowed_rows(self) -> None:
        random = np.random.default_rng(3)
        q, some = self.q[:50], random.random(20000) < 0.02
        each = random.random((len(q), 20000)) < 0.02
        each[7] = False
        values, ids = bitsweep.knn(BASE, q, k=5, metric="l2", allow=some)
        kept = np.flatnonzero(some)
        expected, places = bitsweep.knn(self.x[kept], q, k=5, metric="l2")
        self.assert_same((values, ids), (expected, kept[places]))
        self.assert_same((values, ids), bitsweep.knn(self.x, q, k=5, metric="l2", allow=kept))
        values, ids = bitsweep.knn(self.x, q, k=5, metric="l2", allow=each)
        for query in (0, 20):
            kept = np.flatnonzero(each[query])
            expected, places = bitsweep.knn(self.x[kept], q[query, None], k=5, metric="l2")
            self.assert_same((values[query], ids[query]), (expected[0], kept[places[0]]))
        self.assertTrue((ids[7] == -1).all() and np.isinf(values[7]).all())
        with self.assertRaisesRegex(bitsweep.Error, "allow: id 20000: ids are 0 to 19999"):
            bitsweep.knn(self.x, q, k=5, metric="l2", allow=[20000])
        with self.assertRaisesRegex(bitsweep.Error, "allow: 49 masks of 20000 rows"):
            bitsweep.knn(self.x, q, k=5, metric="l2", allow=each[1:])

    def test_range_search(self) -> None:
        x, within = bitsweep.read(BASE).astype(np.int64), 60000
        asked = self.q.astype(np.int64)
        values = (asked**2).sum(1)[:, None] - 2 * asked @ x.T + (x**2).sum(1)
        with bitsweep.Index.encode(BASE, self.folder / "range", metric="l2", bits=3) as ix:
            lims, found, ids = ix.range_search(self.q, within, margin=0.5)
            out = self.folder / "range.result"
            run_program(
                *("search", "--index", ix.folder, "--queries", QUERIES, "--within", within),
                *("--margin", 0.5, "--out", out),
            )
            head = np.array([len(lims) - 1, lims[-1], *np.diff(lims)], "<u4")
            parts = head.tobytes() + ids.astype("<i4").tobytes() + found.tobytes()
            self.assertEqual(parts, out.read_bytes())
            for q, row in enumerate(values):
                best = sorted((value, i) for i, value in enumerate(row) if value <= within)
                own = slice(lims[q], lims[q + 1])
                self.assertEqual(best, list(zip(found[own], ids[own])))
            # Another value, of what is loaded; then none; then the best k again.
            fewer = ix.range_search(self.q, found.max() / 2, margin=0.5)
            self.assertEqual(fewer[0][-1], (found <= found.max() / 2).sum())
            self.assertEqual(ix.last_search["load_seconds"], 0)
            self.assertEqual([len(a) for a in ix.range_search(self.q[:3], -1)], [4, 0, 0])
            self.assertEqual([len(a) for a in ix.range_search(self.q[:0], 1)], [1, 0, 0])
            self.assertEqual(ix.search(self.q, k=1)[1].shape, (len(self.q), 1))
            some = np.arange(20000) % 3 == 0
            lims, found, ids = ix.range_search(self.q, within, allow=some, margin=0.5)
            self.assertEqual(len(ids), (values[:, ::3] <= within).sum())
            for wrong, why in (
                ({"within": np.nan}, "within must be a number, not nan"),
                ({"within": 1e9}, "query 0 has more than 10000 candidates within"),
                ({"within": 1e9, "max_candidates": 7}, "more than 7 candidates within"),
                ({"within": 1, "recall": 0.9}, "range_search has no argument recall"),
                ({"radius": 1}, "range_search has no argument radius: did you mean within"),
            ):
                with self.assertRaisesRegex((bitsweep.Error, TypeError), why):
                    ix.range_search(self.q, **wrong)

    def test_partial(self) -> None:
        """Without a shard the answers are those of the rows that are left, if that is allowed."""
        folder = self.folder / "partial"
        ix = bitsweep.Index.encode(self.x[:600], folder, metric="l2", codec="raw", shards=3)
        ix.close()
        (folder / "shard-00001-of-00003.codes").unlink()
        left = np.r_[0:200, 400:600]
        values, rows = bitsweep.knn(self.x[left], self.q, 10, metric="l2")
        with bitsweep.Index(folder) as ix:
            self.assert_fails(3, "missing from the index", ix.search, self.q)
            self.assert_same(ix.search(self.q, allow_partial=True), (values, left[rows]))
            last = ix.last_search
            self.assertEqual((last["coverage"], last["missing_shards"]), (400 / 600, 1))
            self.assert_fails(3, "missing from the index", ix.search, self.q)

    def test_moved_source(self) -> None:
        """An index finds the exact values of a file that has moved, once it is told where."""
        here, there = self.folder / "here.npy", self.folder / "there.npy"
        np.save(here, self.x[:500])
        ix = bitsweep.Index.encode(here, self.folder / "moved", metric="l2", bits=1)
        expected = ix.search(self.q)
        ix.close()
        here.rename(there)
        with bitsweep.Index(self.folder / "moved") as ix:
            self.assert_fails(4, r"refers to it .*: set_source\(FILE\), .* Index\(base=FILE\)", ix.search, self.q)
        with bitsweep.Index(self.folder / "moved", base=there) as ix:
            self.assert_same(ix.search(self.q), expected)
            np.testing.assert_array_equal(ix.reconstruct([7, 499]), self.x[[7, 499]])
            self.assertEqual(ix.info["generation"], 0)
        np.save(here, self.x[1:501])
        with bitsweep.Index(self.folder / "moved") as ix:
            self.assert_fails(3, "rows 0 to 31 are not those", ix.set_source, here)
            here.unlink()
            ix.set_source(there)
            self.assertEqual(ix.info["generation"], 1)
            self.assert_same(ix.search(self.q), expected)
        with bitsweep.Index.encode(self.x[:50], metric="l2") as ix:
            self.assert_fails(1, "refers to no file", ix.set_source, there)


if __name__ == "__main__":
    unittest.main()
