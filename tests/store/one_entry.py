"""One entry of a store, and what tests of stores ask about it."""

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

from attrcheck.store.encoding import Entry, fingerprint
from attrcheck.store.entries import IGNORED

NAME, KEY = "records/tiny-linear-morf/gradient", {"method": "0123456789abcdef", "seed": "0"}
FILE = f"{NAME}-{fingerprint(KEY)}.safetensors"
# Larger than what numpy prints in full, with a last bit that it rounds away.
ENTRY = Entry(
    {"correct": np.arange(12).reshape(3, 4) % 2 == 0, "logit": np.linspace(0, 1, 3000)},
    {"seconds": 0.1, "constant": 2},
)


def never():
    raise AssertionError("should have been found in the store")


def left(folder, pattern="**/*"):
    """Files that are not entries."""
    found = (path for path in Path(folder).glob(pattern) if path.is_file())
    return [path.name for path in found if path.suffix != ".safetensors" and path.name != IGNORED]


def command(code, *arguments):
    return [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]


def python(code, *arguments):
    result = subprocess.run(command(code, *arguments), capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout
