"""Progress of long items: workers write small live files, the controller paints one line.

The line is to the right of pytest's own cursor and is wiped before pytest writes, so it needs a
terminal; on a pipe there is no painter, and workers are told not to write.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Protocol, TextIO

PAUSE = 0.5
"""Seconds between two paintings."""
LEAST_WIDTH = 8
"""Less room than this is left empty."""
MARGIN = 12
"""Columns that are left to pytest, which writes its percentage there."""
FILES = "live-"
"""How the names of live files begin."""


class Live:
    """A worker's side: one file that says what it is doing. Without a folder, silence."""

    def __init__(self, folder: str) -> None:
        self._path = Path(folder, f"{FILES}{os.getpid()}") if folder else None

    def say(self, text: str) -> None:
        """Replace what the file says; an empty text means nothing to tell."""
        if self._path is not None:
            self._path.parent.mkdir(exist_ok=True)
            self._path.write_text(text, encoding="utf-8")


class Writer(Protocol):
    """As much of pytest's terminal writer as a painter looks at."""

    @property
    def fullwidth(self) -> int:
        """Columns of the terminal."""

    @property
    def width_of_current_line(self) -> int:
        """Columns that pytest has written on the current line."""


class Painter(threading.Thread):
    """The controller's side: repaints the line twice a second until told to stop."""

    def __init__(self, writer: Writer, terminal: TextIO, folder: str) -> None:
        super().__init__(name="attrcheck-progress", daemon=True)
        self._folder = Path(folder)
        self._writer = writer
        self._terminal = terminal
        self._lock = threading.Lock()
        self._over = threading.Event()

    def run(self) -> None:
        """Paint until stopped."""
        while not self._over.wait(PAUSE):
            self.paint()

    def paint(self) -> None:
        """Show what the live files say, in the room that pytest leaves."""
        paths = sorted(self._folder.glob(f"{FILES}*"))
        text = " | ".join(filter(None, (path.read_text(encoding="utf-8") for path in paths)))
        with self._lock:
            room = self._writer.fullwidth - self._writer.width_of_current_line - MARGIN
            shown = f" {text}"[: max(0, room)]
            if text and len(shown) > LEAST_WIDTH and not self._over.is_set():
                self._emit(f"\x1b[K\x1b[2m{shown}\x1b[0m\x1b[{len(shown)}D")

    def wipe(self) -> None:
        """Clear the line's tail: pytest is about to write there."""
        with self._lock:
            self._emit("\x1b[K")

    def stop(self) -> None:
        """Wipe, and paint no more."""
        self._over.set()
        self.join()
        self.wipe()
        self._terminal.close()

    def _emit(self, codes: str) -> None:
        self._terminal.write(codes)
        self._terminal.flush()


def start(writer: Writer, folder: str) -> Painter | None:
    """Begin to paint, if the process has a terminal of its own.

    Not through the writer's file: while a test runs, pytest captures what goes there.
    """
    try:
        terminal = open(os.ctermid(), "w")  # noqa: SIM115  (closed by the painter)
    except (OSError, AttributeError):  # no terminal; a system without ctermid
        return None
    painter = Painter(writer, terminal, folder)
    painter.start()
    return painter
