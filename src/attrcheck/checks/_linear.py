"""A model whose every decision is known: the sign of a sum, and maps that are right or are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from attrcheck.contracts import Batch
from attrcheck.protocols.responses import responses
from attrcheck.store.seeds import derive
from attrcheck.tensors.draws import uniform_draws

SHAPE = (10, 20)
"""Two hundred dimensions, laid out as an image."""
SHARE = 0.5
"""Of the pixels that could lose or gain attribution, how many do."""

Change = Callable[[Tensor], Tensor]
"""A map [N, H, W] in, a worse one out; the same pixels are hit however often it is called."""


def sign_of_sum() -> nn.Module:
    """Two logits, minus and plus the sum over the pixels, scaled to unit variance on N(0, I)."""
    pixels = SHAPE[0] * SHAPE[1]
    linear = nn.Linear(pixels, 2, bias=False)
    plus = torch.full((pixels,), pixels**-0.5)
    linear.weight = nn.Parameter(torch.stack([-plus, plus]), requires_grad=False)
    return nn.Sequential(nn.Flatten(), linear).eval()


@dataclass(frozen=True)
class Trial:
    """Points from N(0, I), labelled by the sign of their sum, and ways to spoil their maps."""

    points: int
    seed: int

    @cached_property
    def images(self) -> Tensor:
        """[N, 1, H, W]."""
        generator = torch.Generator().manual_seed(derive(self.seed, "points"))
        return torch.randn(self.points, 1, *SHAPE, generator=generator)

    @cached_property
    def labels(self) -> Tensor:
        """1 where the sum is positive."""
        return (self.images.sum((1, 2, 3)) > 0).long()

    def exact(self, images: Tensor) -> Tensor:
        """What each pixel adds to the label's logit, but for the scale: x, or -x for label 0."""
        return images[:, 0] * (2 * self.labels - 1)[:, None, None]

    def batch(self, model: nn.Module) -> Batch:
        """All points, as a protocol sees them."""
        seeds = tuple(derive(self.seed, "ties", str(point)) for point in range(self.points))
        intact = responses(model, self.images, self.labels)
        return Batch(self.images, self.labels, seeds, intact, chance=0.5)

    @cached_property
    def changes(self) -> dict[str, Change]:
        """The exact map as it is, and copies of it.

        remove: half of the predictive pixels get nothing. introduce: half of the others get
        between nothing and the largest value. The largest value stays, so that a protocol that
        divides by it changes nothing else. noise: as strong as the signal. shuffled: no signal.
        """
        own = self.exact(self.images)
        top = own.amax((1, 2), keepdim=True)
        (draws,) = uniform_draws((derive(self.seed, "changes"),), (3, self.points, *SHAPE))
        hit = (draws[0] < SHARE) & (own < top)
        given = draws[1] * top
        order = draws[2].flatten(1).argsort(1)
        generator = torch.Generator().manual_seed(derive(self.seed, "noise"))
        noise = torch.randn(own.shape, generator=generator)
        return {
            "exact": lambda maps: maps,
            "remove": lambda maps: maps.masked_fill(hit & (maps > 0), 0.0),
            "introduce": lambda maps: torch.where(hit & (maps <= 0), given, maps),
            "noise": lambda maps: maps + noise,
            "shuffled": lambda maps: maps.flatten(1).gather(1, order).view_as(maps),
        }
