"""SmoothGrad over input x gradient, as IDSDS ran it (Smilkov et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import IDSDS, noisy
from attrcheck.methods.input_x_gradient import input_x_gradient


@method(
    "smoothgrad_ixg_idsds",
    default=False,
    family="gradient",
    passes=(IDSDS.samples, IDSDS.samples),
    reference="Smilkov et al. 2017",
)
def smoothgrad_ixg_idsds(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of maps of input_x_gradient over 4 noisy copies; std 1 in normalised space."""
    return noisy(input_x_gradient, model, images, targets, seeds, noise=IDSDS)
