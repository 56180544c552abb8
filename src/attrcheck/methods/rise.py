"""RISE with the published 1,000 masks (Petsiuk et al. 2018)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._rise import MASKS, rise_maps


@method(
    "rise",
    family="perturbation",
    passes=(MASKS, 0),
    reference="Petsiuk et al. 2018",
)
def rise(model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]) -> Tensor:
    """E[p(target | x m) m] / E[m] over 1,000 random masks m; what they remove becomes zero."""
    return rise_maps(model, images, targets, seeds)
