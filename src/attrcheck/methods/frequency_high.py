"""Energy of high frequencies."""

from __future__ import annotations

from math import inf

from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._dummies import BLANK, band_energy, brightness


@method("frequency_high", family="dummy", passes=(0, 0), dummy=True, constant=BLANK)
def frequency_high(
    model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset
) -> Tensor:
    """Squared image after a radial filter that keeps what is above .6 of the Nyquist frequency."""
    return band_energy(brightness(images, dataset), 0.6, inf).to(images)
