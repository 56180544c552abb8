"""Arrays that ship with the package, read only if they are the ones that shipped."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attrcheck.datasets import DatasetError

ADVICE = "reinstall attrcheck"


def arrays(path: Path, sha256: str) -> dict[str, NDArray[Any]]:
    """The arrays in an .npz file by name; DatasetError if it is missing or has another hash."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DatasetError(f"cannot read {path} ({error.strerror}); {ADVICE}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise DatasetError(f"{path} is damaged: its SHA-256 is not {sha256}; {ADVICE}")
    with np.load(io.BytesIO(content)) as file:
        return dict(file)
