"""Smooth Grad-CAM++ (Omeiza et al. 2019)."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._cam import ALL_ZERO, needs_stage
from attrcheck.methods._gradients import OURS, Noise, noisy
from attrcheck.methods.gradcam_pp import gradcam_pp


@method(
    "smooth_gradcam_pp",
    family="cam",
    passes=(OURS.samples, OURS.samples),
    reference="Omeiza et al. 2019",
    not_applicable=needs_stage,
    constant=ALL_ZERO,
)
def smooth_gradcam_pp(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    seeds: tuple[int, ...],
    stage: str | None = None,
    noise: Noise = OURS,
) -> Tensor:
    """The mean of Grad-CAM++ maps over 16 noisy copies of the image.

    Maps, not derivatives alone: behind a global mean and a linear head these know no noise.
    """
    return noisy(partial(gradcam_pp, stage=stage), model, images, targets, seeds, noise)
