"""Float64, for sums and ranks that must not hang on rounding."""

from __future__ import annotations

from torch import Tensor


def exact(tensor: Tensor) -> Tensor:
    """In float64: where it is, or on the CPU if its device knows none, as those of Apple."""
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()
