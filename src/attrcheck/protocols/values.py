"""Maps as values in [0, 1], for protocols that see more of them than their order."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from attrcheck.tensors.transfers import exact

Normalisation: TypeAlias = Literal["max", "clip"]
"""`max`: negatives are clipped, then each map is divided by its maximum. `clip`: values
stay as they are, clipped to [0, 1]."""


def normalised(maps: Tensor, how: Normalisation) -> Tensor:
    """Maps [N, H, W] in [0, 1], as float64; one that is then constant becomes NaN: undefined."""
    values = exact(maps).clamp(min=0)
    # A map without positives is 0 / 0: undefined at once.
    values = values / values.amax((1, 2), keepdim=True) if how == "max" else values.clamp(max=1)
    constant = values.amax((1, 2), keepdim=True) == values.amin((1, 2), keepdim=True)
    return values.masked_fill(constant, torch.nan)
