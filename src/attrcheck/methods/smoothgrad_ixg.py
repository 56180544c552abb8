"""SmoothGrad over input x gradient (Smilkov et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import OURS, noisy
from attrcheck.methods.input_x_gradient import input_x_gradient


@method(
    "smoothgrad_ixg",
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Smilkov et al. 2017",
)
def smoothgrad_ixg(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of maps of input_x_gradient over 16 noisy copies."""
    return noisy(input_x_gradient, model, images, targets, seeds)
