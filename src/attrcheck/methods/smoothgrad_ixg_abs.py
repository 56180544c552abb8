"""SmoothGrad over input x gradient, without its sign (Smilkov et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import OURS
from attrcheck.methods.smoothgrad_ixg import smoothgrad_ixg


@method(
    "smoothgrad_ixg_abs",
    absolute_of="smoothgrad_ixg",
    family="gradient",
    passes=(OURS.samples, OURS.samples),
    reference="Smilkov et al. 2017",
)
def smoothgrad_ixg_abs(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """|map of smoothgrad_ixg|: channels are summed before the sign is dropped."""
    return smoothgrad_ixg(model, images, targets, seeds=seeds).abs()
