"""How a run ends early: signals become an interruption, so that the report is still written."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Iterable
from types import FrameType
from typing import Any

SIGNALS = ("SIGTERM", "SIGHUP")
"""Would end Python at once; Ctrl-C is pytest's own."""


class Ended(KeyboardInterrupt):
    """A signal asked the process to end; pytest takes it for Ctrl-C, and its exit code is 2."""


class Signals:
    """Handlers of signals that end a process, where nobody else has any.

    received: the signal that ended the run, if one did.
    """

    def __init__(self) -> None:
        self.received = ""
        self._process = os.getpid()
        self._installed: list[signal.Signals] = []
        self._closing = False

    def install(self) -> None:
        """Begin to listen; only the main thread can."""
        if self._installed or threading.current_thread() is not threading.main_thread():
            return
        numbers = (getattr(signal, name) for name in SIGNALS if hasattr(signal, name))
        for number in numbers:
            if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` wants it ignored
                signal.signal(number, self._end)
                self._installed.append(number)

    def close(self) -> None:
        """Let the end take its course: it is short, and another signal would lose the report."""
        self._closing = True

    def restore(self) -> None:
        """Listen no more."""
        for number in self._installed:
            signal.signal(number, signal.SIG_DFL)
        self._installed.clear()

    def _end(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a forked child, which has no report to write
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif not self._closing and not self.received:
            self.received = signal.Signals(number).name
            raise Ended(self.received)


def discard_output() -> None:
    """Send what pytest still prints nowhere if its terminal is gone, where writing would fail."""
    for descriptor in (1, 2):
        try:
            gone = stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor)
        except OSError:
            continue
        if gone:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


def stop(nodes: Iterable[Any]) -> None:
    """End the xdist workers that still compute; xdist alone would wait ten seconds for each."""
    for node in nodes:
        process = getattr(getattr(node.gateway, "_io", None), "popen", None)
        if process is not None and process.poll() is None:
            process.terminate()
