"""Files that are written whole or not at all, and read with patience."""

from __future__ import annotations

import os
import socket
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from attrcheck.store.digests import digest

T = TypeVar("T")

PAUSES = (0.01, 0.1, 0.5)
"""Seconds between tries to read."""
LONGEST_NAME = 200
"""Bytes of a part of a path; most file systems take 255, with a fingerprint and a suffix."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with whole(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A temporary name to write to, unique to host and process, which is renamed after the block.

    A killed writer leaves no half-written file under the name, and a failed one none at all.
    """
    temporary = path.with_name(temporary_name(path.name))
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def patiently(read: Callable[[], T]) -> T | None:
    """What can be read; None where there is no file.

    What may pass, as too many open files, is tried again; then it is the system's OSError.
    """
    for pause in (*PAUSES, None):
        try:
            return read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            if pause is None:
                raise
            time.sleep(pause)
    return None


def is_file(path: Path) -> bool:
    """Whether it is a plain file: a link may lead elsewhere, a pipe or a device never ends."""
    return stat.S_ISREG(path.lstat().st_mode)


def temporary_name(name: str) -> str:
    """A name that no other writer uses, on this host or another; `.NAME.HOST.PID.RANDOM.tmp`."""
    host = "".join(c if c.isalnum() else "_" for c in socket.gethostname())[:32]
    return f".{name[:100]}.{host}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp"


def shortened(name: str) -> str:
    """A name that every file system takes; a long one goes on with its hash."""
    if len(name.encode()) <= LONGEST_NAME:
        return name
    return f"{name.encode()[: LONGEST_NAME - 20].decode(errors='ignore')}~{digest(name)}"
