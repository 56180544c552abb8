"""Maps take most of a store's room: only so many are kept, and those not used for longest go first.

Whoever works with a map has all of it in memory. So one that is removed costs no more than
computing it again, if another protocol wants it later.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MAPS = "maps"
STEPS = 64
"""A process looks at the folder when it has written this part of what may be kept."""
SHARING = 8
"""Processes that may write so much before each of them looks again."""


@dataclass
class Keeper:
    """The maps of a store, as one process sees them.

    most: bytes that stay; None: all. written: since the folder was last looked at; what was there
    before counts too, so the first map is a reason to look.
    """

    folder: Path
    most: int | None = None
    written: int | None = None

    def covers(self, path: Path) -> bool:
        """Whether a file is one of the maps, and these are not all kept."""
        return self.most is not None and path.parent.parent.name == MAPS

    def used(self, path: Path) -> None:
        """Note that maps were of use."""
        if self.covers(path):
            with suppress(OSError):  # a store may be read-only
                now, state = time.time_ns(), path.stat()
                os.utime(path, ns=(now, state.st_mtime_ns))

    def wrote(self, path: Path, size: int) -> None:
        """Note that maps were written; remove the oldest if there are too many."""
        if self.most is None or not self.covers(path):
            return
        step = self.most // STEPS
        if self.written is not None:
            self.written += size
        if self.written is None or self.written >= step:
            self.written = 0
            self._remove(self.most - SHARING * step)

    def _remove(self, room: int) -> None:
        """Remove what was not used for longest, until the rest has room."""
        states = sorted(self._states())
        total = sum(size for _, size, _ in states)
        for _, size, path in states:
            if total <= room:
                return
            with suppress(OSError):  # another process was faster, or has it open
                os.unlink(path)
            total -= size

    def _states(self) -> Iterator[tuple[int, int, str]]:
        """When each file was last used, its size and its path."""
        for folder in (self.folder / MAPS).glob("*"):
            with suppress(OSError), os.scandir(folder) as files:
                for file in files:
                    with suppress(OSError):
                        state = file.stat(follow_symlinks=False)
                        yield state.st_atime_ns, state.st_size, file.path
