"""A line of progress for commands that take long; silent where nobody watches."""

from __future__ import annotations

from typing import TextIO

from attrcheck.report.text import for_terminal


class Line:
    """One line on a terminal that is painted again and again; nothing where nobody watches.

    watched: whether somebody does though the stream is not a terminal, as in a notebook.
    """

    def __init__(self, stream: TextIO, watched: bool = False) -> None:
        self._stream = stream
        self._watched = watched or stream.isatty()
        self._shown = 0

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *error: object) -> None:
        self._paint("")

    def show(self, text: str) -> None:
        """Paint a text in place of the last one."""
        if self._watched:
            self._paint(for_terminal(text))

    def print(self, text: str) -> None:
        """Print a line that stays."""
        self._paint("")
        print(for_terminal(text), flush=True)

    def _paint(self, text: str) -> None:
        if text or self._shown:
            self._stream.write("\r" + text.ljust(self._shown) + ("" if text else "\r"))
            self._stream.flush()
            self._shown = len(text)
