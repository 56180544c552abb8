"""SmoothGrad over the gradient (Smilkov et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import OURS, noisy
from attrcheck.methods.gradient import gradient


@method(
    "smoothgrad",
    default=True,
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Smilkov et al. 2017",
)
def smoothgrad(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of maps of gradient over 16 noisy copies, std 0.15 of the image's range."""
    return noisy(gradient, model, images, targets, seeds)
