"""Hashes of the contents of files, remembered by path, size and times, so that none is read twice.

They lie in the user's cache, one file per folder of pictures. Several processes may read and write
it at once: each writes all that it knows as a whole, and what one writer loses is hashed again.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from attrcheck.datasets import DatasetError
from attrcheck.store.digests import digest
from attrcheck.store.files import write_whole

THREADS = 8
PART = 32
"""Files that one thread takes at a time."""
RACY = 2.0
"""Seconds. A file this young may change again without a change of its time."""
SCHEMA = 1


class Known(NamedTuple):
    """The state of a file when it was hashed, and its hash."""

    size: int
    modified: int
    changed: int
    hash: str


class Hashes:
    """The hashes of the files under one folder; `of` reads only those that are not known."""

    def __init__(self, folder: Path, memory: Path | None = None) -> None:
        self.folder = folder
        name = digest(os.path.abspath(folder))
        self.memory = memory or cache_folder() / "hashes" / f"{name}.json"
        self._lock = Lock()
        self._known: dict[str, Known] = _read(self.memory)
        self._new = 0
        atexit.register(self.save)

    def of(self, names: Sequence[str]) -> list[str]:
        """The hash of each file, by its path from the folder, in order."""
        with ThreadPoolExecutor(THREADS, "attrcheck-hash") as threads:
            parts = threads.map(
                self._some, (names[i : i + PART] for i in range(0, len(names), PART))
            )
            hashes = [digest for part in parts for digest in part]
        # Seldom while there is much to write, so that writing costs little in all.
        if self._new > len(self._known) / 8:
            self.save()
        return hashes

    def save(self) -> None:
        """Write down what is known, with what others wrote since; a cache may fail."""
        with self._lock:
            if not self._new:
                return
            self._known = _read(self.memory) | self._known
            self._new = 0
            content = json.dumps({"schema": SCHEMA, "files": self._known}).encode()
        with suppress(OSError):
            self.memory.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.memory, content)

    def _some(self, names: Sequence[str]) -> list[str]:
        return [self._one(name) for name in names]

    def _one(self, name: str) -> str:
        path = os.path.join(self.folder, name)
        try:
            before = os.stat(path)
            state = (before.st_size, before.st_mtime_ns, before.st_ctime_ns)
            known = self._known.get(name)
            if known and known[:3] == state:
                return known.hash
            now = time.time()
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            after = os.stat(path)
        except OSError as error:
            raise DatasetError(f"{path} cannot be read ({error.strerror})") from error
        youngest = max(before.st_mtime, before.st_ctime)
        if state == (after.st_size, after.st_mtime_ns, after.st_ctime_ns) and now - youngest > RACY:
            with self._lock:
                self._known[name] = Known(*state, digest)
                self._new += 1
        return digest


@cache
def hashes_of(folder: Path) -> Hashes:
    """The hashes of a folder, shared by all in this process that ask for them."""
    return Hashes(folder)


if hasattr(os, "register_at_fork"):  # a lock may be held by a thread that the copy does not have
    os.register_at_fork(after_in_child=hashes_of.cache_clear)


def cache_folder() -> Path:
    """Where this user's caches lie, on this system."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given, "attrcheck")
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home(), "attrcheck", "cache")
    caches = "Library/Caches" if sys.platform == "darwin" else ".cache"
    try:
        return Path.home() / caches / "attrcheck"
    except RuntimeError:  # a user whom the system does not know
        return Path(tempfile.gettempdir(), "attrcheck")


def _read(path: Path) -> dict[str, Known]:
    """What was written down; nothing where that cannot be read, or makes no sense."""
    try:
        content = json.loads(path.read_bytes())
        if content["schema"] != SCHEMA:
            return {}
        return {
            str(name): Known(int(size), int(modified), int(changed), str(digest))
            for name, (size, modified, changed, digest) in content["files"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
