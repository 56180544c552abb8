"""Input x gradient without its sign (Shrikumar et al. 2016)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods.input_x_gradient import input_x_gradient


@method(
    "input_x_gradient_abs",
    absolute_of="input_x_gradient",
    family="gradient",
    passes=(1, 1),
    reference="Shrikumar et al. 2016",
)
def input_x_gradient_abs(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """|map of input_x_gradient|: channels are summed before the sign is dropped."""
    return input_x_gradient(model, images, targets).abs()
