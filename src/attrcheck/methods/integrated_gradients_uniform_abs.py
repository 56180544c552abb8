"""Integrated gradients from uniform noise, without their sign (Sturmfels et al. 2020)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import STEPS
from attrcheck.methods.integrated_gradients_uniform import integrated_gradients_uniform


@method(
    "integrated_gradients_uniform_abs",
    absolute_of="integrated_gradients_uniform",
    family="gradient",
    passes=(STEPS, STEPS),
    reference="Sturmfels et al. 2020",
)
def integrated_gradients_uniform_abs(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """|map of integrated_gradients_uniform|: channels are summed before the sign is dropped."""
    return integrated_gradients_uniform(model, images, targets, seeds=seeds).abs()
