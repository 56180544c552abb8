"""With how many digits a device computes: in float32, unless a predictor is allowed fewer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from attrcheck.contracts import Precision


def be_exact() -> None:
    """Let CUDA compute float32 in float32, by algorithms that give the same in every run."""
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    _allow_tf32(False)


@contextmanager
def computing_in(precision: Precision, device: torch.device) -> Iterator[None]:
    """Within this block products and convolutions of float32 are computed with fewer digits."""
    if precision == "bfloat16":
        with torch.autocast(device.type, torch.bfloat16):
            yield
        return
    _allow_tf32(True)
    try:
        yield
    finally:
        _allow_tf32(False)


def _allow_tf32(allowed: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed
