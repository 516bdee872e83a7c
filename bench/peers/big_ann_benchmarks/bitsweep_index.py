# SPDX-License-Identifier: Apache-2.0
"""bitsweep under big-ann-benchmarks: benchmark/algorithms/bitsweep_index.py there."""

import json
import os

import bitsweep
from benchmark.algorithms.base import BaseANN
from benchmark.datasets import DATASETS

METRICS = {"euclidean": "l2", "ip": "ip", "angular": "cosine"}
SUFFIXES = {"float32": "fbin", "uint8": "u8bin", "int8": "i8bin"}


class Bitsweep(BaseANN):
    """index_params are settings of bitsweep.Index.encode, query arguments those of Index.search."""

    def __init__(self, metric, index_params):
        if metric not in METRICS:
            raise NotImplementedError(f"bitsweep has no metric {metric}")
        self._metric = METRICS[metric]
        self._params = dict(index_params)
        self._arguments = {}
        self._k = 10  # what the next queries will ask for: another number loads the codes again
        self._ix = None

    def track(self):
        return "T1"

    def _folder(self, dataset):
        words = "_".join(f"{name}-{value}" for name, value in sorted(self._params.items()))
        name = DATASETS[dataset]().short_name()
        return os.path.join("data", "indices", self.track(), "bitsweep", name, words or "default")

    def fit(self, dataset):
        ds = DATASETS[dataset]()
        folder = self._folder(dataset)
        os.makedirs(folder, exist_ok=True)
        self._ix = bitsweep.Index.encode(
            self._rows(ds, folder),
            os.path.join(folder, "index"),
            metric=self._metric,
            force=True,
            **self._params,
        )
        self._load(ds)

    def _rows(self, ds, folder):
        """Vectors stay where they are if they can.

        The harness names files in its own way, the library tells types by suffix: so the index
        refers to a hard link. On another file system it gets a copy of its own.
        """
        base = os.path.join(folder, f"base.{SUFFIXES[ds.dtype]}")
        try:
            if os.path.exists(base):
                os.remove(base)
            os.link(os.path.realpath(ds.get_dataset_fn()), base)
        except OSError:
            return ds.get_data_in_range(0, ds.nb)
        return base

    def load_index(self, dataset):
        folder = os.path.join(self._folder(dataset), "index")
        if not os.path.exists(os.path.join(folder, "manifest.pb")):
            return False
        self._ix = bitsweep.Index(folder)
        self._load(DATASETS[dataset]())
        return True

    def _load(self, ds):
        """The first search reads the codes."""
        self._example = ds.get_data_in_range(0, 1)
        self._ix.search(self._example, self._k)

    def set_query_arguments(self, arguments):
        self._arguments = json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
        self._ix.search(self._example, self._k, **self._arguments)

    def query(self, X, k):
        self._k = k
        self.res = self._ix.search(X, k, **self._arguments)[1]

    def get_additional(self):
        return {"dist_comps": int(self._ix.last_search["rows_per_query"] * len(self.res))}

    def done(self):
        if self._ix is not None:
            self._ix.close()

    def __str__(self):
        words = {**self._params, **self._arguments}
        return f"bitsweep({','.join(f'{name}={value}' for name, value in words.items())})"
