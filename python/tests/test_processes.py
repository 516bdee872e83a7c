# SPDX-License-Identifier: Apache-2.0
"""The package beside what else goes on in a process: copies, forks, progress, signals, threads."""

import contextlib
import copy
import io
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
import unittest
from typing import Any, Iterator
from unittest import mock

import bitsweep
import numpy as np
from bitsweep import watch
from package_case import BASE, QUERIES, Case


class Copies(Case):
    def test_copies(self) -> None:
        made = bitsweep.Index.encode(self.x[:2000], self.folder / "original", metric="l2")
        expected = made.search(self.q)
        made.close()
        name = os.path.relpath(self.folder / "original")
        ix = bitsweep.Index(name, threads=1, device="cpu", check_every=7)
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

        tqdm, auto = types.ModuleType("tqdm"), types.ModuleType("tqdm.auto")
        auto.tqdm = Bar  # type: ignore[attr-defined]  # of a notebook or of a terminal
        for module in (tqdm, None):
            said, modules = io.StringIO(), {"tqdm": module, "tqdm.auto": module and auto}
            with mock.patch.dict(sys.modules, modules), contextlib.redirect_stderr(said):
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
        before = signal.getsignal(signal.SIGINT)
        with self.handled(signal.SIGALRM, fail), mock.patch("sys.unraisablehook") as lost:
            for _ in range(20):  # wherever it arrives
                with contextlib.suppress(LookupError):
                    signal.setitimer(signal.ITIMER_REAL, 0.002)
                    bitsweep.knn(self.x[:1000], self.q, 10, "l2")
                    time.sleep(1)
            self.assertFalse(lost.called)
        self.assertIs(signal.getsignal(signal.SIGINT), before)

    def test_handler_that_raises_at_the_end(self) -> None:
        """While handlers get their places back; none may be left out."""
        is_armed = False
        real = watch._handler_of

        def arm(*_: Any) -> None:
            nonlocal is_armed
            is_armed = True

        def handler_of(number: int) -> Any:
            nonlocal is_armed
            if number == signal.SIGINT and is_armed:
                is_armed = False
                os.kill(os.getpid(), signal.SIGUSR1)
            return real(number)

        def fail(*_: Any) -> None:
            raise LookupError

        before = signal.getsignal(signal.SIGINT)
        self.assertTrue(callable(before))
        with self.handled(signal.SIGUSR1, fail), mock.patch.object(watch, "_handler_of", handler_of):
            with self.assertRaises(LookupError):
                bitsweep.knn(self.x[:100], self.q, 10, "l2", progress=arm)
        self.assertIs(signal.getsignal(signal.SIGINT), before)

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


class Process(unittest.TestCase):
    """What libgomp reads when it is loaded, so each in a process of its own."""

    def run_with(self, script: str, **variables: str) -> str:
        environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"} | variables
        words = [sys.executable, "-c", script]
        done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

    def test_more_threads_than_there_may_be(self) -> None:
        said = self.run_with(
            """
import bitsweep, numpy as np
x = np.zeros((9, 4), np.float32)
try:
    bitsweep.knn(x, x, 1, "l2")
except bitsweep.Error as error:
    print(error.code, error)
""",
            OMP_NUM_THREADS="1000000",
        )
        self.assertRegex(said, "^1 OpenMP has 1000000 threads, must be 1 to 4096")

    def test_threads_that_wait(self) -> None:
        script = "import os, bitsweep; print(os.environ.get('GOMP_SPINCOUNT'))"
        said = self.run_with(script, OMP_DISPLAY_ENV="verbose")
        if "GOMP_SPINCOUNT" not in said:
            self.skipTest("no libgomp here")
        self.assertIn("GOMP_SPINCOUNT = '10000'", said)
        self.assertIn("None", said)
        said = self.run_with(script, OMP_DISPLAY_ENV="verbose", GOMP_SPINCOUNT="77")
        self.assertIn("GOMP_SPINCOUNT = '77'", said)
        said = self.run_with(script, OMP_DISPLAY_ENV="verbose", OMP_WAIT_POLICY="passive")
        self.assertIn("GOMP_SPINCOUNT = '0'", said)


if __name__ == "__main__":
    unittest.main()
