"""What killed writers left in a store. Imports little: the controller has no numpy yet."""

from __future__ import annotations

import itertools
import re
import time
from contextlib import suppress
from pathlib import Path

from attrcheck.store.files import is_file
from attrcheck.store.locking import BusyError, acquire, release

DAY = 24 * 3600.0
"""Seconds after which nobody is still writing a file."""
TEMPORARY = re.compile(r"\..+\.\w+\.\d+\.[0-9a-f]{8}\.tmp")
"""As `files.temporary_name` makes them."""


def sweep(folder: Path, age: float = DAY) -> None:
    """Remove temporary files and locks that nobody holds, if they are older than a day.

    What cannot be removed stays: it does no harm.
    """
    old = time.time() - age
    for path in itertools.chain(*(folder.glob(f"{depth}.*.tmp") for depth in ("", "*/", "*/*/"))):
        with suppress(OSError):
            if TEMPORARY.fullmatch(path.name) and is_file(path) and path.lstat().st_mtime < old:
                path.unlink()
    for path in folder.glob("locks/*.lock"):
        with suppress(OSError, BusyError):
            if is_file(path) and path.lstat().st_mtime < old:
                if (lock := acquire(path, wait=False)) is None:
                    path.unlink()
                else:
                    release(lock)
