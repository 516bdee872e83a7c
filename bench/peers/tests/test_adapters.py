# SPDX-License-Identifier: Apache-2.0
"""The adapters called as their harnesses call them, which need not be here."""

import importlib.util
import os
import sys
import tempfile
import types
import unittest
from pathlib import Path
from typing import Any

import bitsweep
import numpy as np

PEERS = Path(__file__).parents[1]
DATA = PEERS.parents[1] / "tests" / "data"


def load(name: str, file: Path, **parents: dict[str, Any]) -> Any:
    """A module of a harness that has only what is in parents."""
    for parent, members in parents.items():
        made = types.ModuleType(parent.replace("__", "."))
        made.__path__ = []  # type: ignore[attr-defined]
        vars(made).update(members)
        sys.modules[made.__name__] = made
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Dataset:
    """What the adapter asks of a dataset of big-ann-benchmarks."""

    nb, dtype = 2000, "uint8"
    file = "rows.crop_nb_2000"

    def short_name(self) -> str:
        return "some"

    def get_dataset_fn(self) -> str:
        return self.file

    def get_data_in_range(self, start: int, end: int) -> Any:
        return bitsweep.read(DATA / "sift20k_base.u8bin", start, end - start)


class Adapters(unittest.TestCase):
    def setUp(self) -> None:
        self.x = bitsweep.read(DATA / "sift20k_base.u8bin", 0, 2000)
        self.q = bitsweep.read(DATA / "sift20k_query.u8bin", 0, 20)
        folder = tempfile.TemporaryDirectory()
        before = os.getcwd()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, before)
        os.chdir(folder.name)

    def check(self, ids: Any, metric: str, least: float = 0.99) -> None:
        truth = bitsweep.knn(self.x, self.q, 10, metric)[1]
        self.assertGreaterEqual(bitsweep.recall(np.array(ids), truth), least)

    def ann(self, metric: str, settings: dict[str, Any]) -> Any:
        base = {"BaseANN": object}
        parents = {"algos": {}, "algos__base": {}, "algos__base__module": base, "algos__own": {}}
        module = load("algos.own.module", PEERS / "ann_benchmarks" / "module.py", **parents)
        return module.Bitsweep(metric, settings)

    def test_ann_single(self) -> None:
        algo = self.ann("angular", {"bits": 3})
        algo.fit(self.x.astype(np.float32))
        algo.set_query_arguments({"oversample": 5})
        ids = [list(algo.query(q, 10)) for q in self.q.astype(np.float32)]
        self.check(ids, "cosine")
        algo.set_query_arguments({"oversample": 1, "refine": "none"})
        self.check([list(algo.query(q, 10)) for q in self.q.astype(np.float32)], "cosine", 0.5)
        self.assertEqual(str(algo), "bitsweep(bits=3, oversample=1, refine=none)")
        algo.get_additional()
        algo.done()
        self.assertFalse(os.path.exists(algo._folder))

    def test_ann_batch(self) -> None:
        algo = self.ann("euclidean", {"bits": 4, "lists": 16, "calibrate": 100})
        algo.fit(self.x.astype(np.float32))
        algo.set_query_arguments({"recall": 0.99})
        algo.prepare_batch_query(self.q.astype(np.float32), 10)
        algo.run_batch_query()
        self.assertEqual(algo._ix.last_search["load_seconds"], 0)  # which would be timed
        self.check(algo.get_batch_results(), "l2", 0.9)
        algo.done()

    def test_other_metrics(self) -> None:
        with self.assertRaises(NotImplementedError):
            self.ann("jaccard", {})
        with self.assertRaises(NotImplementedError):
            self.big({}, "hamming")

    def big(self, params: dict[str, Any], metric: str = "euclidean") -> Any:
        parents = {
            "benchmark": {},
            "benchmark__algorithms": {},
            "benchmark__algorithms__base": {"BaseANN": object},
            "benchmark__datasets": {"DATASETS": {"some-2K": Dataset}},
        }
        file = PEERS / "big_ann_benchmarks" / "bitsweep_index.py"
        module = load("benchmark.algorithms.bitsweep_index", file, **parents)
        return module.Bitsweep(metric, params)

    def test_big(self) -> None:
        bitsweep.write("rows.u8bin", self.x)
        os.rename("rows.u8bin", Dataset.file)
        algo = self.big({"bits": 3})
        self.assertFalse(algo.load_index("some-2K"))
        algo.fit("some-2K")
        algo.set_query_arguments({"oversample": 5})
        algo.query(self.q, 10)
        self.assertEqual(algo._ix.last_search["load_seconds"], 0)  # which would be timed
        self.assertEqual(algo.res.shape, (20, 10))
        self.check(algo.res, "l2")
        algo.done()
        again = self.big({"bits": 3})
        self.assertTrue(again.load_index("some-2K"))
        again.query(self.q, 10)
        self.assertEqual(again.res.tobytes(), algo.res.tobytes())
        again.get_additional()
        again.done()


if __name__ == "__main__":
    unittest.main()
