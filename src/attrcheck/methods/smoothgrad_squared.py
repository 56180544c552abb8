"""SmoothGrad-squared over the gradient (Hooker et al. 2019)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import OURS, mean_square, noisy
from attrcheck.methods.gradient import gradient


@method(
    "smoothgrad_squared",
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Hooker et al. 2019",
)
def smoothgrad_squared(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of squared maps of gradient over 16 noisy copies."""
    return noisy(gradient, model, images, targets, seeds, statistic=mean_square)
