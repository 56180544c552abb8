"""Gaussian centre: objects are mostly in the middle; sigma is an eighth of the side."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._dummies import gaussian_centre


@method("gaussian_centre_8", family="dummy", passes=(0, 0), dummy=True, default=False)
def gaussian_centre_8(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """exp(-d^2 / (2 sigma^2)), d the distance from the centre, sigma = side / 8."""
    return gaussian_centre(images, 1 / 8)
