"""Files that are whole or not there at all."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write under a temporary name unique to host and process, then rename.

    Nothing half-written is left on failure, and what was there before stays.
    """
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
