"""A map must depend on what the model has learnt (Adebayo et al. 2018)."""

from __future__ import annotations

import copy
from dataclasses import replace
from math import ceil

import torch
from torch import nn

from attrcheck.attribution import attribute_batch
from attrcheck.checks import Verdict, check
from attrcheck.checks._similarity import rank_correlation
from attrcheck.loading import Setup
from attrcheck.methods import Method
from attrcheck.seeds import derive

IMAGES = 8
ALIKE = 0.75
"""Rank correlation above which the weights hardly mattered.

Over the embedded families guided backpropagation stays at .82 to .92 when the upper half of the
layers is random; every other method of the first nine falls to .71 or below.
"""


@check("randomisation")
def randomisation(method: Method, setup: Setup) -> Verdict:
    """The map changes when the upper half of the layers, nearest to the logits, forgets."""
    part = slice(0, IMAGES)
    forgetful = replace(setup, network=randomised(setup.network, share=0.5))
    likeness = rank_correlation(
        attribute_batch(method, setup, part, seed=0),
        attribute_batch(method, forgetful, part, seed=0),
    )
    reason = f"with random upper layers the rank correlation is still {likeness:.3f}, above {ALIKE}"
    figures = {"rank_correlation": likeness}
    return Verdict(likeness <= ALIKE, figures, reason if likeness > ALIKE else "")


def randomised(network: nn.Module, share: float, seed: int = 0) -> nn.Module:
    """A copy whose last `share` of weight tensors are noise of the mean and spread they had."""
    fresh = copy.deepcopy(network)
    weights = list(fresh.named_parameters())
    with torch.no_grad():
        for name, weight in weights[-ceil(share * len(weights)) :]:
            generator = torch.Generator().manual_seed(derive(seed, name))
            noise = torch.randn(weight.shape, generator=generator).to(weight)
            spread = weight.std() if weight.numel() > 1 else weight.abs()
            weight.copy_(weight.mean() + spread * noise)
    return fresh
