"""Float64, for sums and ranks that must not depend on rounding."""

from __future__ import annotations

from torch import Tensor


def exact(tensor: Tensor) -> Tensor:
    """In float64: where it is, or on the CPU if its device has no float64, as Apple's."""
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()
