"""SmoothGrad over integrated gradients, as the soundness paper ran it (Smilkov et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import SOUNDNESS, STEPS, noisy
from attrcheck.methods.integrated_gradients import integrated_gradients


@method(
    "smoothgrad_ig_soundness",
    family="gradient",
    passes=(SOUNDNESS.samples * STEPS, SOUNDNESS.samples * STEPS),
    reference="Smilkov et al. 2017",
)
def smoothgrad_ig_soundness(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of maps of integrated_gradients over 20 noisy copies; std 0.3, normalised."""
    return noisy(integrated_gradients, model, images, targets, seeds, noise=SOUNDNESS)
