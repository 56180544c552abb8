"""SmoothGrad over integrated gradients, without its sign (Smilkov et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import OURS, STEPS
from attrcheck.methods.smoothgrad_ig import smoothgrad_ig


@method(
    "smoothgrad_ig_abs",
    absolute_of="smoothgrad_ig",
    family="gradient",
    passes=(OURS.samples * STEPS, OURS.samples * STEPS),
    reference="Smilkov et al. 2017",
)
def smoothgrad_ig_abs(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """|map of smoothgrad_ig|: channels are summed before the sign is dropped."""
    return smoothgrad_ig(model, images, targets, seeds=seeds).abs()
