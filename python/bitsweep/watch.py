# SPDX-License-Identifier: Apache-2.0
"""What a caller is told during a long call, and signals that arrive meanwhile."""

from __future__ import annotations

import signal
import sys
import threading
from ctypes import Structure
from types import FrameType, TracebackType
from typing import Any, Callable, Optional

from .library import PROGRESS, Progress, ProgressFunction

Handler = Callable[[int, Optional[FrameType]], Any]


class _Bar:
    """Progress as a bar of tqdm, in a notebook one of its own, or as lines where there is no tqdm."""

    def __init__(self) -> None:
        self.phase: Optional[str] = None
        self.bar: Any = None
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            tqdm = None
        self.make = tqdm

    def __call__(self, phase: str, done: int, total: int) -> None:
        if phase != self.phase:
            self.close()
            self.phase = phase
            if self.make:
                self.bar = self.make(total=total, desc=phase, leave=False)
            else:
                print(f"bitsweep: {phase}", file=sys.stderr)
        if self.bar is not None:
            self.bar.total = total
            self.bar.update(done - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None


class Watch:
    """Around a long call: tells the caller of its progress, and lets signals end it.

    A signal's handler is a Python function, and one that raises inside a callback of C raises into
    nothing. So during the call every signal that has such a handler has one in its place that keeps
    what it raises; the call ends, and that is raised then. Where one raises while they get their
    places back, those that are left are as if they were not there.
    """

    def __init__(self, settings: Structure, progress: Progress) -> None:
        self._settings = settings
        self._bar = _Bar() if progress is True else None
        self._show: Optional[ProgressFunction] = (
            self._bar if self._bar else progress if callable(progress) else None
        )
        if progress not in (None, False) and not self._show:
            raise TypeError("progress is neither a function nor True, False or None")
        self._raised: Optional[BaseException] = None
        self._before: dict[int, tuple[Handler, Handler]] = {}  # theirs and ours, by signal
        self._keeps = True

    def tell(self, phase: bytes, done: int, total: int) -> int:
        try:
            if self._raised is not None:
                return 1
            return 1 if self._show and self._show(phase.decode(), done, total) else 0
        except BaseException as error:
            self._raised = error
            return 1

    def _keep(self, handler: Handler) -> Handler:
        def handle(number: int, frame: Optional[FrameType]) -> None:
            try:
                handler(number, frame)
            except BaseException as error:
                if not self._keeps:
                    raise
                self._raised = error

        return handle

    def _take_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number, handler in zip(_SIGNALS, map(_handler_of, _SIGNALS)):
            if callable(handler):  # SIG_DFL is a number
                ours = self._keep(handler)
                self._before[number] = (handler, ours)
                _handle(number, ours)

    def _return_signals(self) -> None:
        """A handler may raise anywhere in this, and may have given its place to another."""
        self._keeps = False
        try:
            for number, (theirs, ours) in list(self._before.items()):
                if _handler_of(number) is ours:
                    _handle(number, theirs)
                del self._before[number]
        finally:
            if self._before:
                self._return_signals()

    def __enter__(self) -> Watch:
        try:
            self._take_signals()
        except BaseException:
            self._return_signals()
            raise
        if self._before or self._show:
            _watches[id(self)] = self
            self._settings.progress_context = id(self)
            self._settings.progress = _TELL
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        value: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._settings.progress = _TELL_NOBODY
        _watches.pop(id(self), None)
        try:
            self._return_signals()
        finally:
            if self._bar:
                self._bar.close()
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised from None


# Those that may have a handler. Real-time signals and faults of the program are left out, as looking
# takes time in every search; and so are the enums of module signal, in whose making what a handler
# raises may be lost.
_SIGNALS = sorted(
    int(number)
    for number in signal.valid_signals()
    if number < 32 and number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGBUS,
                                      signal.SIGFPE, signal.SIGILL, signal.SIGTRAP)
)
_handler_of = getattr(signal.getsignal, "__wrapped__", signal.getsignal)
_handle = getattr(signal.signal, "__wrapped__", signal.signal)

# Made once: a new function for C at every call takes as long as a small search.
_watches: dict[int, Watch] = {}
_TELL = PROGRESS(lambda context, *step: _watches[context].tell(*step))
_TELL_NOBODY = PROGRESS()
