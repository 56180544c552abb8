"""The store: a folder of small files, written atomically, that any number of workers may share.

    records/<dataset>-<model>-<observation>/<method>: rows of one method
    maps/<dataset>-<model>/<method>: its maps, for all protocols
    shared/<dataset>-<model>/<name>: rows that need no map
    applies/<dataset>-<model>/<method>: why it does not, if so
    tuned/<dataset>-<model>/<name>: weights of a fine-tuned model
    keys/<dataset>-<model>/<name>: the key of a pair that ships with the package
    results/<dataset>-<model>/<protocol>: the scores of all methods, from their rows
    checks/<check>/<method, protocol or suite>: the verdict, without rows
    locks/, aside/: who is computing what; files that could not be read
    report/: the report of the last whole run, to be shown at any time

File names go on with -<fingerprint>.safetensors: the hash of the entry's key, which covers all that
the entry depends on. When something changes, nothing is found under the new fingerprint, and the
entry is computed again.
"""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attrcheck.errors import AttrcheckError
from attrcheck.store.comparing import arrays_differ, facts_differ
from attrcheck.store.encoding import (
    SCHEMA,
    Entry,
    Key,
    encode,
    fingerprint,
    made_now,
    parse_head,
    start_of,
    verified,
)
from attrcheck.store.files import is_file, patiently, shortened, write_whole
from attrcheck.store.keeping import Keeper
from attrcheck.store.locking import acquire, release
from attrcheck.store.recent import Recent
from attrcheck.store.seeds import derive

SUFFIX = ".safetensors"
IGNORED = ".gitignore"


class StoreError(AttrcheckError):
    """The store cannot be used at all; the message names the folder and what to do."""


class StoreWarning(UserWarning):
    """A file of the store could not be read, or was not what it should be and was set aside."""


class VerificationError(AttrcheckError):
    """What the store holds is not what is computed today, though its key is the same."""


class UnsureError(Exception):
    """Raised by what computes an entry that is not to be kept; value: what came out anyway."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


@dataclass
class Store:
    """Entries by name and key.

    fresh: only what this very run wrote is taken from disk. verify: the share of what is found that
    is computed again and compared; `verified` counts them. keep_maps: bytes of maps that stay;
    None: all.
    """

    folder: Path
    run: str = ""
    fresh: bool = False
    verify: float = 0.0
    keep_maps: int | None = None
    verified: int = 0
    problems: list[str] = field(default_factory=list)
    """Writes that failed; what they should have kept lives on in memory."""

    def __post_init__(self) -> None:
        self.keeper = Keeper(self.folder, self.keep_maps)
        self.recent: Recent[Entry] = Recent()

    def open(self) -> None:
        """Make the folder, hidden from git; one that is read-only serves what it holds."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not os.access(self.folder, os.W_OK) and not any(self.folder.glob(f"*/*/*{SUFFIX}")):
                raise PermissionError(errno.EACCES, "it is read-only and empty")
        except OSError as error:
            raise StoreError(
                f"the store {self.folder} cannot be written to ({error.strerror}); "
                "choose another folder with --attr-store"
            ) from error
        with suppress(OSError):
            if not (self.folder / IGNORED).exists():
                write_whole(self.folder / IGNORED, b"*\n")

    def take_problems(self) -> list[str]:
        """The writes that failed since this was last asked."""
        problems, self.problems = self.problems, []
        return problems

    def take_verified(self) -> int:
        """How many entries were verified since this was last asked."""
        verified, self.verified = self.verified, 0
        return verified

    def obtain(self, name: str, key: Key, compute: Callable[[], Entry], wait: bool = True) -> Entry:
        """The entry of this name and key, read from disk, or computed and written by one worker.

        Where another process is computing it, wait for that, or else raise BusyError.
        """
        path = self.path(name, key)
        if (entry := self._known(path, name, key)) is not None:
            if self._is_drawn(path):
                self._compare(path, entry, compute())
            self.keeper.used(path)
            return entry
        if self.keep_maps == 0 and self.keeper.covers(path):
            return replace(compute(), origin=made_now(key))
        with self._lock(path, wait):
            if (entry := self._read(path, name, key)) is not None:
                return entry
            entry = replace(compute(), origin=made_now(key))
            self._write(path, name, key, entry)
            return entry

    def _known(self, path: Path, name: str, key: Key) -> Entry | None:
        """The entry in a file, which need not be read again if it is small; arrays are copies."""
        entry = self.recent.get(path)
        if entry is None:
            entry = self._read(path, name, key)
            if entry is None or self.keeper.covers(path):
                return entry
            self.recent.keep(path, entry, sum(array.nbytes for array in entry.arrays.values()))
        return replace(entry, arrays={part: array.copy() for part, array in entry.arrays.items()})

    def has(self, name: str, key: Key) -> bool:
        """Whether there is a file for an entry; whether it can be read is not known yet."""
        return self.path(name, key).is_file()

    def _is_drawn(self, path: Path) -> bool:
        """Whether an entry is one of the share to verify; another one in every run."""
        if not self.verify:
            return False
        drawn = derive(0, self.run, path.relative_to(self.folder).as_posix()) / 2**63
        return drawn < self.verify

    def _compare(self, path: Path, stored: Entry, computed: Entry) -> None:
        self.verified += 1
        told = facts_differ(stored.info, computed.info)
        if difference := arrays_differ(stored.arrays, computed.arrays) or told:
            raise VerificationError(
                f"{path} is not what is computed today: {difference}. Something that its key does "
                "not cover has changed: declare it with `depends`, and prune the store"
            )

    def path(self, name: str, key: Key) -> Path:
        """The file of an entry."""
        # A colon, as in captum:Lime, is not allowed in file names everywhere.
        parts = [shortened(part) for part in name.replace(":", "+").split("/")]
        return self.folder / f"{'/'.join(parts)}-{fingerprint(key)}{SUFFIX}"

    @contextmanager
    def _lock(self, path: Path, wait: bool) -> Iterator[None]:
        """Hold the file's lock; the system frees it if the holder dies.

        It only saves work done twice: entries are written whole, so whoever comes late finds one.
        """
        place = self._flat("locks", path).with_suffix(".lock")
        lock = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            place.parent.mkdir(exist_ok=True)
            lock = acquire(place, wait)
        except OSError as error:
            self._complain(path, error)
        try:
            yield
        finally:
            if lock is not None:
                release(lock)

    def _read(self, path: Path, name: str, key: Key) -> Entry | None:
        """The entry in a file; None unless it is whole and of this name, key and, if fresh, run."""
        try:
            if not patiently(lambda: is_file(path)):
                return None
            start = patiently(lambda: start_of(path))
            if start is None:
                return None
            head = parse_head(start)
            expected = {"schema": SCHEMA, "name": name, "key": dict(key)}
            if {part: head.get(part) for part in expected} != expected:
                raise ValueError("not an entry of this name and key")
            if self.fresh and head.get("run") != self.run:
                return None
            content = patiently(path.read_bytes)
            if content is None:  # just removed, as maps are that take too much room
                return None
            return verified(content, head, self.run)
        except OSError as error:
            # Not its fault: too many open files, a network that is away. It stays where it is.
            why = f"{path} could not be read ({error.strerror}); computed again"
            warnings.warn(StoreWarning(why), stacklevel=3)
        except Exception as error:  # whatever a crafted or damaged file makes of its readers
            self._set_aside(path, str(error) or type(error).__name__)
        return None

    def _write(self, path: Path, name: str, key: Key, entry: Entry) -> None:
        content = encode(entry, name, key, self.run)
        try:
            write_whole(path, content)
        except OSError as error:
            self._complain(path, error)
        else:
            self.keeper.wrote(path, len(content))

    def _set_aside(self, path: Path, why: str) -> None:
        aside = self._flat("aside", path)
        # Another worker may have been faster; then there is nothing left to move.
        with suppress(OSError):
            aside.parent.mkdir(exist_ok=True)
            path.replace(aside)
        warnings.warn(
            StoreWarning(f"{path}: {why}; moved to {aside} and computed again"), stacklevel=4
        )

    def _flat(self, corner: str, path: Path) -> Path:
        """Where a corner of the store keeps what belongs to an entry."""
        name = path.relative_to(self.folder).with_suffix("").as_posix().replace("/", "~")
        return self.folder / corner / f"{shortened(name)}{path.suffix}"

    def _complain(self, path: Path, error: OSError) -> None:
        self.problems.append(
            f"{path} could not be written ({error.strerror}); its result is in this report, but "
            "the next run computes it again: make room, or choose another --attr-store"
        )
