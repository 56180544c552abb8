"""Progress of long items: workers write small live files, the controller shows them.

On a terminal there are rows of their own below pytest's cursor: how far the run is, and what each
worker does. They are wiped before pytest writes. In CI there is a line a minute, on any other pipe
nothing, and workers are told not to write.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TextIO

from attrcheck.pace import MINUTE, Clock, Pace, duration
from attrcheck.report.text import for_terminal, one_line

PAUSE = 0.5
"""Seconds between two paintings, and from pytest's last word to the next one."""
FILES = "live-"
"""How the names of live files begin."""
MOST_WORKERS = 6
"""Rows, of as many workers; the others are counted."""
LONG = 10.0
"""Seconds after which it is told how long a step takes already."""


class Live:
    """A worker's side: one file that says what it is doing. Without a folder, silence."""

    def __init__(self, folder: str) -> None:
        self._path = Path(folder, f"{FILES}{os.getpid()}") if folder else None

    def say(self, text: str) -> None:
        """Replace what the file says; an empty text means nothing to tell."""
        if self._path is not None:
            self._path.parent.mkdir(exist_ok=True)
            self._path.write_text(text, encoding="utf-8")


@dataclass
class Overview:
    """What is to be told of a run: how many items are done of how many, and what workers do.

    count: gives both numbers. clock: of the run; now: as files are dated.
    """

    folder: str
    count: Callable[[], tuple[int, int]]
    clock: Clock = time.monotonic
    now: Clock = time.time
    _pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self._pace = Pace(0, clock=self.clock)

    def lines(self) -> list[str]:
        """How far the run is, and a line for each worker; nothing where no item is at work."""
        told = list(filter(None, map(self._told, sorted(Path(self.folder).glob(f"{FILES}*")))))
        if not told:
            return []
        done, self._pace.total = self.count()
        items = f"{done}/{self._pace.total} items"
        left = self._pace.left(done)
        hidden = len(told) - MOST_WORKERS
        return [
            f"{items}, {left}" if left else items,
            *told[:MOST_WORKERS],
            *([f"... and {hidden} more workers"] if hidden > 0 else []),
        ]

    def _told(self, path: Path) -> str:
        text = for_terminal(one_line(path.read_text(encoding="utf-8")))
        age = self.now() - path.stat().st_mtime
        return f"{text} ({duration(age)})" if text and age >= LONG else text


class Writer(Protocol):
    """As much of pytest's terminal writer as a painter looks at."""

    @property
    def fullwidth(self) -> int:
        """Columns of the terminal."""

    @property
    def width_of_current_line(self) -> int:
        """Columns that pytest has written on the current line."""


class Painter(threading.Thread):
    """Repaints the rows below pytest's cursor twice a second until told to stop."""

    def __init__(
        self, overview: Overview, writer: Writer, terminal: TextIO, clock: Clock = time.monotonic
    ) -> None:
        super().__init__(name="attrcheck-progress", daemon=True)
        self._overview = overview
        self._writer = writer
        self._terminal = terminal
        self._clock = clock
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._painted = False
        self._wiped = clock() - PAUSE

    def run(self) -> None:
        """Paint until stopped."""
        while not self._over.wait(PAUSE):
            self.paint()

    def paint(self) -> None:
        """Show what there is to tell, and put the cursor back where pytest left it."""
        width, column = self._writer.fullwidth, self._writer.width_of_current_line
        rows = [line[: width - 1] for line in self._overview.lines()]
        with self._lock:
            spoken = self._clock() - self._wiped < PAUSE  # pytest may not be done
            if not rows or spoken or column >= width or self._over.is_set():
                return
            back = f"\r\x1b[{len(rows)}A" + (f"\x1b[{column}C" if column else "")
            shown = "".join(f"\r\n\x1b[2m{row}\x1b[0m" for row in rows)
            self._emit(f"\x1b[J{shown}{back}")
            self._painted = True

    def wipe(self) -> None:
        """Clear the rows: pytest is about to write there."""
        with self._lock:
            self._wiped = self._clock()
            if self._painted:
                self._emit("\x1b[J")
                self._painted = False

    def stop(self) -> None:
        """Wipe, and paint no more."""
        self._over.set()
        self.join()
        self.wipe()
        self._terminal.close()

    def _emit(self, codes: str) -> None:
        self._terminal.write(codes)
        self._terminal.flush()


class Ticker(threading.Thread):
    """Prints a line a minute until told to stop, where CI keeps all that is printed."""

    def __init__(self, overview: Overview, writer: Writer, stream: TextIO) -> None:
        super().__init__(name="attrcheck-progress", daemon=True)
        self._overview = overview
        self._writer = writer
        self._stream = stream
        self._over = threading.Event()

    def run(self) -> None:
        """Print until stopped."""
        while not self._over.wait(MINUTE):
            self.print()

    def print(self) -> None:
        """Say how far the run is, on a line of its own."""
        if lines := self._overview.lines():
            start = "\n" if self._writer.width_of_current_line else ""
            self._stream.write(f"{start}attrcheck: {'; '.join(lines)}\n")
            self._stream.flush()

    def wipe(self) -> None:
        """Nothing: what was printed stays."""

    def stop(self) -> None:
        """Print no more."""
        self._over.set()
        self.join()
        self._stream.close()


def start(overview: Overview, writer: Writer, on_terminal: bool) -> Painter | Ticker | None:
    """Begin to show progress, where there is a place for it.

    Not through the writer's file: while a test runs, pytest captures what goes there.
    """
    shown: Painter | Ticker
    try:
        if on_terminal:
            # Closed by the painter, or the ticker.
            shown = Painter(overview, writer, open(os.ctermid(), "w"))  # noqa: SIM115
        else:
            shown = Ticker(overview, writer, open(os.dup(1), "w"))  # noqa: SIM115
    except (OSError, AttributeError):  # no terminal; a system without ctermid
        return None
    shown.start()
    return shown
