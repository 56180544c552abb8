"""Gaussian centre: objects are mostly in the middle; sigma is a quarter of the side."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._dummies import gaussian_centre


@method("gaussian_centre_4", family="dummy", passes=(0, 0), dummy=True)
def gaussian_centre_4(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """exp(-d^2 / (2 sigma^2)), d the distance from the centre, sigma = side / 4."""
    return gaussian_centre(images, 1 / 4)
