"""Energy of low frequencies."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._dummies import BLANK, band_energy, brightness


@method("frequency_low", family="dummy", passes=(0, 0), dummy=True, default=False, constant=BLANK)
def frequency_low(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """Squared image after a radial filter that keeps what is below .4 of the Nyquist frequency."""
    return band_energy(brightness(images, dataset), 0.0, 0.4).to(images)
