"""Intensity: how bright a pixel is."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._dummies import BLANK, brightness


@method("intensity", family="dummy", passes=(0, 0), dummy=True, constant=BLANK)
def intensity(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """The mean over the channels of the denormalised image."""
    return brightness(images, dataset).to(images)
