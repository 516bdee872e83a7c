# SPDX-License-Identifier: Apache-2.0
"""gpu_peers.py with small stand-ins for the libraries that it measures, which need a GPU."""

import contextlib
import io
import json
import shutil
import sys
import tempfile
import types
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gpu_peers  # noqa: E402  # pylint: disable=wrong-import-position

LIBRARIES = ("cupy", "cuvs", "cuvs.neighbors", "faiss", "torch")
SMALL = ["--rows", "600", "--dims", "16", "--batches", "1,50", "--repeat", "1", "--seconds", "0"]


def nearest(rows: Any, queries: Any, k: int) -> Any:
    """Ids, the nearest first."""
    rows, queries = np.asarray(rows, np.float64), np.asarray(queries, np.float64)
    return np.argsort(((queries[:, None] - rows[None])**2).sum(2), axis=1)[:, :k]


def module(name: str, **members: Any) -> types.ModuleType:
    """A module that has these."""
    made = types.ModuleType(name)
    vars(made).update(members)
    return made


class Array(np.ndarray):
    """As much of torch's tensors as is used."""

    def cuda(self) -> "Array":
        return self

    cpu = cuda

    def to(self, kind: Any) -> "Array":
        return self.astype(kind)

    def numpy(self) -> Any:
        return np.asarray(self)


def torch() -> types.ModuleType:
    """With a GPU."""
    def topk(scores: Any, k: int, dim: int) -> Any:
        order = np.argsort(-np.asarray(scores, np.float64), axis=dim)[:, :k]
        return types.SimpleNamespace(indices=order.view(Array))
    cuda = types.SimpleNamespace(is_available=lambda: True, mem_get_info=lambda: (100, 1000),
                                 empty_cache=lambda: None)
    return module("torch", __version__="0", cuda=cuda, float32=np.float32, float16=np.float16,
                  empty=lambda shape, dtype, device: np.empty(shape, dtype).view(Array),
                  from_numpy=lambda x: np.asarray(x).view(Array), topk=topk,
                  cat=lambda parts: np.concatenate(parts).view(Array))


class Index:
    """FAISS's, flat or of lists, whose half of the rows few probes look at."""

    def __init__(self, *_: Any) -> None:
        self.rows: list[Any] = []
        self.nprobe = 128

    def train(self, rows: Any) -> None:
        assert rows.dtype == np.float32

    def add(self, rows: Any) -> None:
        self.rows.extend(rows)

    def search(self, queries: Any, k: int) -> Any:
        rows = np.array(self.rows)
        return None, nearest(rows[:len(rows) // (1 if self.nprobe > 16 else 2)], queries, k)


def faiss() -> types.ModuleType:
    """With a GPU."""
    return module("faiss", __version__="0", METRIC_L2=1, StandardGpuResources=object,
                  get_num_gpus=lambda: 1, GpuIndexFlatConfig=types.SimpleNamespace,
                  GpuIndexFlatL2=Index, GpuIndexIVFFlat=Index)


def cuvs(flaw: int = 0) -> dict[str, types.ModuleType]:
    """cuVS and CuPy; brute force is so many rows off."""
    used = [0]

    def allocate(shape: Any, kind: Any) -> Any:
        used[0] += int(np.prod(shape)) * np.dtype(kind).itemsize
        return np.empty(shape, kind)

    def cagra(params: Any, index: Any, queries: Any, k: int) -> Any:
        rows = index[:len(index) * min(params.itopk_size, 256) // 256]
        return None, nearest(rows, queries, k)

    def ivf_pq(params: Any, index: Any, queries: Any, k: int) -> Any:
        assert params.internal_distance_dtype == np.float32
        return None, nearest(index, queries, k)

    def refine(data: Any, queries: Any, candidates: Any, k: int, metric: str) -> Any:
        assert metric == "sqeuclidean" and candidates.shape[1] >= 2 * k
        found = [row[nearest(data[row], query[None], k)[0]]
                 for row, query in zip(candidates, queries)]
        return None, np.array(found)
    params = types.SimpleNamespace
    neighbors = module(
        "cuvs.neighbors", refine=module("cuvs.neighbors.refine", refine=refine),
        brute_force=module("brute_force", build=lambda data, metric: data,
                           search=lambda data, q, k: (None, nearest(data, q, k) + flaw)),
        cagra=module("cagra", IndexParams=params, SearchParams=params, search=cagra,
                     build=lambda asked, data: data),
        ivf_pq=module("ivf_pq", IndexParams=params, SearchParams=params, search=ivf_pq,
                      build=lambda asked, data: data))
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=OSError,
                                    memGetInfo=lambda: (1 << 40, (1 << 40) + used[0]))
    cupy = module("cupy", float32=np.float32, float16=np.float16, empty=allocate,
                  asarray=np.asarray, asnumpy=np.asarray,
                  cuda=types.SimpleNamespace(runtime=runtime),
                  get_default_memory_pool=lambda: mock.Mock())
    return {"cupy": cupy, "cuvs": module("cuvs", __version__="0", neighbors=neighbors),
            "cuvs.neighbors": neighbors}


PROGRAM = """#!{python}
import json, sys
import numpy as np
words = dict(zip(sys.argv[2::2], sys.argv[3::2]))
if sys.argv[1] == "--version":
    print("bitsweep 0")
elif sys.argv[1] == "encode":
    open(words["--index"], "w").write(words["--base"])
    print(json.dumps({{"bytes_per_vector": 7}}))
else:
    def read(path):
        n, d = np.fromfile(path, np.uint32, 2)
        return np.fromfile(path, np.float32, offset=8).reshape(n, d)
    rows, queries = read(open(words["--index"]).read()), read(words["--queries"])
    k = int(words["--k"])
    ids = np.argsort(((queries[:, None] - rows[None])**2).sum(2), axis=1)[:, :k]
    np.array(ids.shape, np.uint32).tofile(words["--out"])
    with open(words["--out"], "ab") as file:
        ids.astype(np.int32).tofile(file)
    print(json.dumps({{"queries_per_second": 50.0}}))
"""


class GpuPeers(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def run_with(self, libraries: dict[str, Any], *arguments: str) -> tuple[int, str]:
        """The exit code and what is printed where these are all the libraries."""
        found: dict[str, Any] = dict.fromkeys(LIBRARIES)  # None: not there
        found.update(libraries)
        said = io.StringIO()
        with mock.patch.dict(sys.modules, found), contextlib.redirect_stdout(said):
            code = gpu_peers.main([*SMALL, *arguments])
        return code, said.getvalue()

    def test_all(self) -> None:
        lines, plot = self.folder / "lines", self.folder / "plot"
        code, said = self.run_with({"torch": torch(), "faiss": faiss(), **cuvs()}, "--json",
                                   str(lines), "--plot", str(plot))
        self.assertEqual(code, 0, said)
        self.assertIn("# true rows: cuVS 0, brute force float32", said)
        found = [json.loads(line) for line in lines.read_text().splitlines()]
        self.assertEqual(len(found), said.count("\n| ") - 2)
        self.assertEqual({(x["engine"], x["series"]) for x in found}, {
            ("cuVS 0", "CAGRA degree 32"), ("cuVS 0", "CAGRA degree 64"),
            ("cuVS 0", "IVF-PQ refined"), ("FAISS 0", "IVFFlat"),
            *((engine, f"brute force {kind}") for engine in ("cuVS 0", "FAISS 0", "torch 0")
              for kind in ("float32", "float16"))})
        cagra = [x for x in found if x["series"] == "CAGRA degree 32" and x["batch"] == 50]
        self.assertEqual([x["point"] for x in cagra],
                         [f"itopk {size}" for size in (16, 32, 64, 128, 256, 512)])
        self.assertEqual(sorted(x["recall"] for x in cagra), [x["recall"] for x in cagra])
        self.assertLess(cagra[0]["recall"], 0.3)
        self.assertEqual(cagra[-1]["recall"], 1)
        for line in found:
            self.assertIn(line["batch"], (1, 50))
            self.assertGreater(line["queries_per_second"], 0)
            size = line["bytes_per_row"]
            self.assertEqual(size, {"cuVS": 32 if line["series"].endswith("16") else 64,
                                    "FAIS": None, "torc": 0}[line["engine"][:4]], line)
        if shutil.which("gnuplot"):
            self.assertIn("CAGRA degree 64", Path(f"{plot}.svg").read_text())
        else:
            self.assertIn("# no picture: gnuplot is missing", said)

    def test_none(self) -> None:
        code, said = self.run_with({})
        self.assertEqual(code, 77)
        for name in ("cuvs", "faiss", "torch"):
            self.assertIn(f"# without {name}: ", said)
        cpu_alone = faiss()
        del vars(cpu_alone)["StandardGpuResources"]
        self.assertIn("# without faiss: built without GPUs\n", self.run_with({"faiss": cpu_alone})[1])

    def test_wrong_rows(self) -> None:
        code, said = self.run_with({"torch": torch(), **cuvs(flaw=1)}, "--only", "brute")
        self.assertEqual(code, 1)
        self.assertIn("# true rows: torch 0, brute force float32", said)
        self.assertIn("2 engines, 4 failures", said)

    def test_failing(self) -> None:
        broken = cuvs()
        vars(broken["cuvs.neighbors"])["cagra"].build = mock.Mock(side_effect=MemoryError("room"))
        code, said = self.run_with(broken)
        self.assertEqual(code, 1)
        self.assertIn("cuVS 0, CAGRA degree 64: MemoryError: room", said)
        self.assertIn("| IVF-PQ refined | probes 8, refined 2 | 50 | 1.0000 |", said)

    def test_bitsweep(self) -> None:
        program = self.folder / "bitsweep"
        program.write_text(PROGRAM.format(python=sys.executable))
        program.chmod(0o755)
        code, said = self.run_with({}, "--bitsweep", str(program), "--only", "lists")
        self.assertEqual(code, 0, said)
        self.assertIn("# true rows: numpy, of 8 queries alone", said)
        self.assertRegex(said, r"\| bitsweep 0 \| saq-3 lists \| recall 0.95 \| 1 \| 1.0000 \| 50 \|"
                               r" 20.000 \| [0-9.]+ \| 7 \|")
        self.assertIn("bitsweep: ", self.run_with({}, "--bitsweep", "/bin/false")[1])

    def test_usage(self) -> None:
        for arguments in (["--k", "0"], ["--k", "601"], ["--base", "x.fbin"], ["--nothing"]):
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()):
                self.run_with({}, *arguments)
            self.assertEqual(ended.exception.code, 2)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            code = self.run_with({"torch": torch()}, "--base", "x.txt", "--queries", "y.txt")[0]
        self.assertEqual((code, said.getvalue()),
                         (2, "gpu_peers.py: x.txt: .fbin or .u8bin are read\n"))


if __name__ == "__main__":
    unittest.main()
