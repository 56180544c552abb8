"""Expected gradients (Erion et al. 2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._gradients import BACKGROUND, background, integrate

PLACES = 5
"""Random places on the way from each background image."""


@method(
    "expected_gradients",
    family="gradient",
    passes=(BACKGROUND * PLACES, BACKGROUND * PLACES),
    reference="Erion et al. 2019",
    constant="zero everywhere if the image itself is the only one of the dataset",
)
def expected_gradients(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    seeds: tuple[int, ...],
    dataset: Dataset,
) -> Tensor:
    """Sum over channels of the mean of (x - b) * df/dx at b + a (x - b), over b and a.

    b: the first 10 images of the dataset; a: on the way from each, one place drawn in every fifth.
    In expectation the map sums to f(x) - mean of f(b).
    """
    references = background(dataset, images).repeat_interleave(PLACES, 0)
    fifths = torch.arange(len(references)) % PLACES
    draws = [
        torch.rand(len(references), generator=torch.Generator().manual_seed(seed)) for seed in seeds
    ]
    places = ((fifths + torch.stack(draws)) / PLACES).to(images)
    weights = images.new_full((len(references),), 1 / len(references))
    return integrate(model, images, targets, references[None], places, weights)
