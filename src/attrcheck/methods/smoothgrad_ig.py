"""SmoothGrad over integrated gradients (Smilkov et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import OURS, STEPS, noisy
from attrcheck.methods.integrated_gradients import integrated_gradients


@method(
    "smoothgrad_ig",
    family="gradient",
    passes=(OURS.samples * STEPS, OURS.samples * STEPS),
    reference="Smilkov et al. 2017",
)
def smoothgrad_ig(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of maps of integrated_gradients over 16 noisy copies."""
    return noisy(integrated_gradients, model, images, targets, seeds)
