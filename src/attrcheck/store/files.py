"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write under a temporary name unique to host and process, then rename.

    Readers see the old file or the new one; nothing half-written is left on failure.
    """
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
