"""Progress of long items: workers write small live files, the controller paints one line.

The line stands to the right of pytest's own cursor and is wiped before pytest writes, so it needs
a terminal; on a pipe there is no painter, and workers are told not to write.
"""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any, TextIO


class Live:
    """A worker's side: one file that says what it is at."""

    def __init__(self, folder: str) -> None:
        self._path = Path(folder, str(os.getpid())) if folder else None

    def say(self, text: str) -> None:
        """Replace what the file says; an empty text means nothing to tell."""
        if self._path is not None:
            self._path.parent.mkdir(exist_ok=True)
            self._path.write_text(text)


class Painter(threading.Thread):
    """The controller's side: repaints the line twice a second until told to stop."""

    def __init__(self, writer: Any, terminal: TextIO, folder: str) -> None:
        super().__init__(name="attrcheck-progress", daemon=True)
        self._folder = Path(folder)
        self._writer = writer
        self._terminal = terminal
        self._lock = threading.Lock()
        self._over = threading.Event()

    def run(self) -> None:
        """Paint until stopped."""
        while not self._over.wait(0.5):
            self._paint()

    def wipe(self) -> None:
        """Clear the line's tail: pytest is about to write there."""
        with self._lock:
            self._emit("\x1b[K")

    def stop(self) -> None:
        """Wipe, and leave nothing behind."""
        self._over.set()
        self.join()
        self.wipe()
        self._terminal.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _paint(self) -> None:
        texts = [path.read_text() for path in sorted(self._folder.glob("*"))]
        text = " | ".join(filter(None, texts))
        with self._lock:
            room = self._writer.fullwidth - self._writer.width_of_current_line - 12
            shown = f" {text}"[: max(0, room)]
            if text and len(shown) > 8 and not self._over.is_set():
                self._emit(f"\x1b[K\x1b[2m{shown}\x1b[0m\x1b[{len(shown)}D")

    def _emit(self, codes: str) -> None:
        self._terminal.write(codes)
        self._terminal.flush()


def start(writer: Any, folder: str) -> Painter | None:
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
