"""RISE, where noise takes the place of what is removed (Petsiuk et al. 2018)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._rise import MASKS, rise_maps


@method(
    "rise_uniform",
    family="perturbation",
    passes=(MASKS, 0),
    reference="Petsiuk et al. 2018",
)
def rise_uniform(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """As `rise`, but what masks remove becomes U(-1, 1), drawn once for all masks of an image."""
    return rise_maps(model, images, targets, seeds, uniform=True)
