"""A line of progress for commands that take long; silent on a pipe, but for CI a line a minute."""

from __future__ import annotations

import time
from typing import TextIO

from attrcheck.pace import MINUTE, Clock, in_ci
from attrcheck.report.text import for_terminal

PAUSE = 0.1
"""Seconds between two paintings, so that progress costs nothing."""


class Line:
    """One line on a terminal that is painted again and again; in CI a line a minute, else nothing.

    The first text is shown at once on a terminal, and after a minute in CI. watched: whether
    somebody looks though the stream is not a terminal, as in a notebook.
    """

    def __init__(
        self, stream: TextIO, watched: bool = False, clock: Clock = time.monotonic
    ) -> None:
        self._stream = stream
        self._watched = watched or stream.isatty()
        self._shown = 0
        self._clock = clock
        self._pause = PAUSE if self._watched else MINUTE
        self._quiet = not self._watched and not in_ci()
        self._next = clock() if self._watched else clock() + MINUTE

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *error: object) -> None:
        self._paint("")

    def show(self, text: str) -> None:
        """Paint a text in place of the last one, unless that was a moment ago."""
        if self._quiet or (now := self._clock()) < self._next:
            return
        self._next = now + self._pause
        if self._watched:
            self._paint(for_terminal(text))
        else:
            self._stream.write(f"{for_terminal(text)}\n")
            self._stream.flush()

    def print(self, text: str) -> None:
        """Print a line that stays."""
        self._paint("")
        print(for_terminal(text), flush=True)

    def _paint(self, text: str) -> None:
        if text or self._shown:
            self._stream.write("\r" + text.ljust(self._shown) + ("" if text else "\r"))
            self._stream.flush()
            self._shown = len(text)
