"""What was read lately: small entries stay in memory, as items that follow ask for them again."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Generic, TypeVar

MOST = 512
"""Entries that stay."""
LARGEST = 2**17
"""Bytes of the largest of them, so that all take 64 MB at most."""

T = TypeVar("T")


class Recent(Generic[T]):
    """Values by path; the one that was not asked for longest makes room for the next."""

    def __init__(self) -> None:
        self._values: OrderedDict[Path, T] = OrderedDict()

    def get(self, path: Path) -> T | None:
        """The value of a file that was read lately."""
        if path not in self._values:
            return None
        self._values.move_to_end(path)
        return self._values[path]

    def keep(self, path: Path, value: T, size: int) -> None:
        """Remember a value of so many bytes, unless it is large."""
        if size <= LARGEST:
            self._values[path] = value
            while len(self._values) > MOST:
                self._values.popitem(last=False)
