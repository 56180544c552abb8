"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import socket
import uuid
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write under a temporary name, unique to host and process, and rename.

    A killed writer leaves no half-written file under the name, and a failed one none at all.
    """
    temporary = path.with_name(temporary_name(path.name))
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def temporary_name(name: str) -> str:
    """A name that no other writer uses, on this host or another; `.NAME.HOST.PID.RANDOM.tmp`."""
    host = "".join(c if c.isalnum() else "_" for c in socket.gethostname())[:32]
    return f".{name[:100]}.{host}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp"
