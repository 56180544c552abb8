"""Locks that do not lie: the system's own, freed when their holder dies, or none at all.

Where a file system has no such locks, filelock would fall back to files that outlive their owner,
and a process on another host would wait for ever. Entries are written whole, so a lock only saves
work done twice: there it is better to have none, and to say so.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from attrcheck.store.files import temporary_name

if sys.platform != "win32":
    import fcntl

ABSENT = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP}
"""What file systems say that have no locks."""


class BusyError(Exception):
    """Another process is computing the entry; raised only where that is not waited for."""


class LockWarning(UserWarning):
    """The store lies where there are no locks."""


def acquire(place: Path, wait: bool) -> BaseFileLock | None:
    """Hold a lock; None where there are none. BusyError if another process has it."""
    if not _there(place.parent):
        return None
    lock = FileLock(place)
    try:
        lock.acquire(blocking=wait)
    except Timeout as error:
        raise BusyError from error
    return lock


def release(lock: BaseFileLock) -> None:
    """Let go of a lock, and remove its file."""
    with suppress(OSError):  # where a file in use cannot be removed
        os.unlink(lock.lock_file)
    lock.release()


@cache
def _there(folder: Path) -> bool:
    """Whether the file system of a folder has locks; tried once per process."""
    if sys.platform == "win32":
        return True
    probe = folder / temporary_name("probe")
    handle = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in ABSENT:
            return True
        warnings.warn(
            f"the file system of {folder} has no locks ({error.strerror}): processes that share "
            "this store may compute the same entry twice; give each task a store of its own with "
            "--attr-store, and join them with `attrcheck merge`",
            LockWarning,
            stacklevel=2,
        )
        return False
    finally:
        os.close(handle)
        os.unlink(probe)
    return True
