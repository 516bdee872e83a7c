# SPDX-License-Identifier: Apache-2.0
"""bitsweep under ann-benchmarks: ann_benchmarks/algorithms/bitsweep/module.py there."""

import shutil
import tempfile

import bitsweep

from ..base.module import BaseANN

METRICS = {"angular": "cosine", "euclidean": "l2"}


class Bitsweep(BaseANN):
    """settings are those of bitsweep.Index.encode, query settings those of Index.search.

    Single queries run on one thread, as this harness wants it; a batch on all.
    """

    def __init__(self, metric, settings):
        if metric not in METRICS:
            raise NotImplementedError(f"bitsweep has no metric {metric}")
        self._metric = METRICS[metric]
        self._settings = dict(settings)
        self._arguments = {}
        self._is_batch = False
        self._n = 10  # what the next queries will ask for: another number loads the codes again
        self._ix = None
        self._folder = tempfile.mkdtemp(prefix="bitsweep-")

    def fit(self, X):
        bitsweep.Index.encode(
            X, f"{self._folder}/index", metric=self._metric, force=True, **self._settings
        ).close()
        self._example = X[:1].copy()
        self._open(False)

    def _open(self, is_batch):
        """Loads the codes, too: the first search does."""
        if self._ix is None or self._is_batch != is_batch:
            if self._ix is not None:
                self._ix.close()
            self._ix = bitsweep.Index(f"{self._folder}/index", threads=0 if is_batch else 1)
            self._is_batch = is_batch
        n = min(self._n, len(self._ix))
        self._ix.search(self._example, n, **self._arguments)

    def set_query_arguments(self, arguments):
        self._arguments = dict(arguments)
        self._open(self._is_batch)

    def _places(self, ids):
        return ids[ids >= 0]

    def query(self, q, n):
        self._n = n
        return self._places(self._ix.search(q[None], n, **self._arguments)[1][0])

    def prepare_batch_query(self, X, n):
        self._queries, self._n = X, n
        self._open(True)

    def run_batch_query(self):
        self._ids = self._ix.search(self._queries, self._n, **self._arguments)[1]

    def batch_query(self, X, n):
        self.prepare_batch_query(X, n)
        self.run_batch_query()

    def get_batch_results(self):
        return [self._places(row) for row in self._ids]

    def get_additional(self):
        if not self._is_batch:
            return {}
        return {"dist_comps": int(self._ix.last_search["rows_per_query"] * len(self._queries))}

    def done(self):
        if self._ix is not None:
            self._ix.close()
        shutil.rmtree(self._folder)

    def __str__(self):
        words = {**self._settings, **self._arguments}
        return f"bitsweep({', '.join(f'{name}={value}' for name, value in words.items())})"
