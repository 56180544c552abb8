"""Gradients integrated along paths that are not straight: blurs, and the way of least slope."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._rules import backpropagate
from attrcheck.tensors.batching import in_batches, in_equal_batches
from attrcheck.tensors.images import gaussian_weights
from attrcheck.tensors.transfers import exact, sent

BLURS = 50
"""Sides of the polygon through blurred images."""
SIDE, SIGMA = 299, 50.0
"""The strongest blur has sigma 50 for images of 299 pixels, and scales with them."""
TRUNCATE = 4
"""Sigmas at which a Gaussian ends."""
STEPS = 200
FRACTION = 0.25
"""Of the pixels of the least slope, that move before others do."""
APART = 0.02
"""How far a pixel may be from where it is on the straight path, as a share of its whole way."""


@method(
    "blur_ig",
    default=False,
    axioms=dict.fromkeys(
        ("dummy_feature", "symmetry", "implementation_invariance", "scaling"), 1e-3
    ),
    family="gradient",
    passes=(BLURS, BLURS),
    reference="Xu et al. 2020",
)
def blur_ig(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels and steps of (x_k+1 - x_k) * df/dx between the two, x_k ever less blurred.

    Gaussian blurs, from sigma 50 for 299 pixels down to none in 50 equal steps; beyond its border
    an image is zero. The map sums to f(x) - f(x_0).
    """
    count = len(images)
    sigmas = _sigmas(min(images.shape[2:]))
    down, right = (sent(blurring(side, sigmas), images)[:, None] for side in images.shape[2:])

    def work(part: slice) -> Tensor:
        flat = torch.arange(part.start, part.stop, device=images.device)
        rows, steps = flat // BLURS, flat % BLURS
        here, next_ = (down[step] @ images[rows] @ right[step].mT for step in (steps, steps + 1))
        return ((next_ - here) * backpropagate(model, (here + next_) / 2, targets[rows])).sum(1)

    parts = list(in_batches(work, count * BLURS, model, images))
    return torch.cat(parts).view(count, BLURS, *images.shape[2:]).sum(1)


def _sigmas(side: int) -> tuple[float, ...]:
    most = SIGMA * side / SIDE
    return tuple(most * (1 - step / BLURS) for step in range(BLURS + 1))


@cache
def blurring(side: int, sigmas: tuple[float, ...]) -> Tensor:
    """Matrices that blur `side` places, one for each sigma: [sigmas, side, side]."""
    places = torch.arange(side)
    distances = (places - places[:, None]).abs()
    matrices = []
    for sigma in sigmas:
        radius = int(TRUNCATE * sigma + 0.5)
        half = gaussian_weights(radius, sigma)[radius:] if radius else torch.ones(1)
        weights = torch.zeros(side, dtype=torch.float64)
        weights[: len(half)] = half[:side]
        matrices.append(weights[distances])
    return torch.stack(matrices)


@method(
    "guided_ig",
    default=False,
    axioms={"completeness": 0.05, "dummy_feature": 1e-3, "scaling": 1e-3},
    family="gradient",
    passes=(STEPS, STEPS),
    reference="Kapishnikov et al. 2021",
)
def guided_ig(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels and 200 steps of (x_k+1 - x_k) * df/dx_k, on a way from zero to x.

    In each step the sum of |x - x_k| falls by the same. The quarter of all values with the least
    |df/dx| moves first, then the next, none farther from the straight path than by .02 of its whole
    way. The map sums to f(x) - f(0).
    """
    images = images.detach()

    def maps(rows: Tensor) -> Tensor:
        some, chosen = images[rows], targets[rows]
        ways = exact(some.flatten(1))
        lengths = ways.abs()
        places, total = torch.zeros_like(ways), torch.zeros_like(ways)
        for step in range(1, STEPS + 1):
            points = sent((places * ways).view(some.shape), some)
            slopes = backpropagate(model, points, chosen).flatten(1).to(ways.device)
            moved = advance(places, slopes, lengths, step / STEPS)
            total += (moved - places).mul_(ways).mul_(exact(slopes))
            places = moved
        return sent(total.view(some.shape).sum(1), some)

    return in_equal_batches(maps, model, images)


def advance(
    places: Tensor, slopes: Tensor, lengths: Tensor, mean: float, apart: float = APART
) -> Tensor:
    """Where values are on their ways, from 0 to 1, once the mean of all ways is `mean`: [N, P].

    Those of the least slope go first; none is farther than `apart` from the mean. lengths: of ways.
    """
    low, high = max(mean - apart, 0.0), min(mean + apart, 1.0)
    places = places.clamp(min=low)
    missing = (mean - places).mul_(lengths).sum(1, keepdim=True).clamp_(min=0)
    rooms = (high - places).mul_(lengths)
    slopes = slopes.abs().where(rooms > 0, math.inf)
    sizes, ranked, last = exact(slopes), _ascending(slopes), slopes.shape[1] - 1
    group, tiny = int(FRACTION * last), torch.finfo(rooms.dtype).tiny
    done = torch.zeros_like(missing, dtype=torch.int64)
    within, spare = torch.empty_like(sizes), torch.empty_like(sizes)
    chosen, shares = torch.zeros_like(sizes), torch.zeros_like(sizes)
    for _ in range(math.ceil(1 / FRACTION)):
        bound = ranked.gather(1, (done + group).clamp_(max=last))
        # Ones and zeros of the same type take a fraction of the time of booleans. Those that cannot
        # move are chosen with the last: they have no room.
        torch.le(sizes, exact(bound), out=within)
        torch.sub(within, chosen, out=chosen)
        room = torch.mul(rooms, chosen, out=spare).sum(1, keepdim=True)
        shares.addcmul_(chosen, (missing / room.clamp(min=tiny)).clamp_(max=1))
        missing = (missing - room).clamp_(min=0)
        done = torch.searchsorted(ranked, bound, right=True)
        chosen, within = within, chosen
    return places.lerp_(spare.fill_(high), shares)


def _ascending(rows: Tensor) -> Tensor:
    """The values of each row [N, P] in order; numpy is several times as fast as torch at it."""
    if rows.device.type == "cpu":
        return torch.from_numpy(np.sort(rows.numpy(), 1))
    return rows.sort(1).values
