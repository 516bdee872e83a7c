# SPDX-License-Identifier: Apache-2.0
"""Vector search over quantized codes.

>>> import tempfile
>>> import bitsweep
>>> import numpy as np
>>> x = np.random.default_rng(1).standard_normal((1000, 16), dtype=np.float32)
>>> folder = tempfile.TemporaryDirectory()
>>> ix = bitsweep.Index.encode(x, folder.name + "/index", metric="l2", bits=4)
>>> ix.shape, ix.metric, ix.bits
((1000, 16), 'l2', 4.0)
>>> values, ids = ix.search(x[:3], k=2)
>>> ids[:, 0].tolist(), values[:, 0].tolist()
([0, 1, 2], [0.0, 0.0, 0.0])
>>> true_values, true_ids = bitsweep.knn(x, x[:3], k=2, metric="l2")
>>> bitsweep.recall(ids, true_ids)
1.0
>>> ix.close()
>>> bitsweep.Index(folder.name + "/none")  # doctest: +ELLIPSIS
Traceback (most recent call last):
bitsweep.library.NoFile: ...
>>> folder.cleanup()
"""

from .index import Index
from .library import Error, lib
from .program import plan, sweep
from .text import TextModel
from .vectors import knn, read, read_neighbours, recall, shape, write, write_neighbours

Error.__module__ = "bitsweep"  # as it is written
__version__: str = lib.bitsweep_version().decode()


def has(feature: str) -> bool:
    """Whether the library was built with "mpi", "hdf5" or "cuda"."""
    return bool(lib.bitsweep_has(feature.encode()))


__all__ = [
    "Error",
    "Index",
    "TextModel",
    "has",
    "knn",
    "plan",
    "read",
    "read_neighbours",
    "recall",
    "shape",
    "sweep",
    "write",
    "write_neighbours",
]
