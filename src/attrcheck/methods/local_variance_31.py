"""Local variance: texture at the scale of 31 pixels."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._dummies import BLANK, brightness, local_variance


@method(
    "local_variance_31", family="dummy", passes=(0, 0), dummy=True, default=False, constant=BLANK
)
def local_variance_31(
    model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset
) -> Tensor:
    """Variance of the brightness in a window of 31x31, or the largest odd one in the image."""
    return local_variance(brightness(images, dataset), 31).to(images)
