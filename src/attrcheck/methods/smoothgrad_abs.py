"""SmoothGrad over the gradient, without its sign (Smilkov et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import OURS
from attrcheck.methods.smoothgrad import smoothgrad


@method(
    "smoothgrad_abs",
    absolute_of="smoothgrad",
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Smilkov et al. 2017",
)
def smoothgrad_abs(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """|map of smoothgrad|: channels are summed before the sign is dropped."""
    return smoothgrad(model, images, targets, seeds=seeds).abs()
