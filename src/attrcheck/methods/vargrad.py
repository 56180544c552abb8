"""VarGrad over the gradient (Adebayo et al. 2018)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import OURS, noisy, variance
from attrcheck.methods.gradient import gradient


@method(
    "vargrad",
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Adebayo et al. 2018",
    constant="zero everywhere if noise does not change the gradient, as in a linear model",
)
def vargrad(model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]) -> Tensor:
    """The variance of maps of gradient over 16 noisy copies, std 0.15 of the image's range."""
    return noisy(gradient, model, images, targets, seeds, statistic=variance)
