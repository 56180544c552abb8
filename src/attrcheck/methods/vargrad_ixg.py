"""VarGrad over input x gradient (Adebayo et al. 2018)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import OURS, noisy, variance
from attrcheck.methods.input_x_gradient import input_x_gradient


@method(
    "vargrad_ixg",
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Adebayo et al. 2018",
    constant="zero everywhere if the image is of one value, which gets no noise",
)
def vargrad_ixg(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The variance of maps of input_x_gradient over 16 noisy copies."""
    return noisy(input_x_gradient, model, images, targets, seeds, statistic=variance)
