"""Energy of middle frequencies."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._dummies import BLANK, band_energy, brightness


@method("frequency_band", family="dummy", passes=(0, 0), dummy=True, default=False, constant=BLANK)
def frequency_band(
    model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset
) -> Tensor:
    """Squared image after a radial filter that keeps .3 to .6 of the Nyquist frequency."""
    return band_energy(brightness(images, dataset), 0.3, 0.6).to(images)
