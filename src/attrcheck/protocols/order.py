"""The order in which a map removes pixels, ranked once for all protocols that need it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from attrcheck.store.digests import digest
from attrcheck.tensors.draws import shuffles
from attrcheck.tensors.transfers import sent

KEPT_BYTES = 2**24
"""The size of the ranks that are remembered: enough for all methods on 100 embedded images."""
RANKS: OrderedDict[str, Tensor] = OrderedDict()
"""By the maps and seeds that they were made from, the least recently used first."""


def pixel_counts(pixels: int, at: tuple[int, ...], of: int) -> list[int]:
    """How many pixels are removed at each step: pixels * k / of, rounded half up, exactly."""
    return [(2 * pixels * k + of) // (2 * of) for k in at]


def ranks_of(maps: Tensor, seeds: tuple[int, ...]) -> Tensor:
    """The place [N, H, W] of each pixel in rising order, ties in a seeded order, as int32.

    The least relevant n pixels are those of a rank below n, so that removed sets are nested.
    """
    if maps.is_cuda:  # sorts them sooner than they could be copied and hashed
        return _rank(maps, seeds)
    key = digest(maps, seeds, str(maps.device))
    if key in RANKS:
        RANKS.move_to_end(key)
        return RANKS[key]
    ranks = RANKS[key] = _rank(maps, seeds)
    # As many as there is room for if all were of this size, which saves adding up.
    while len(RANKS) > max(1, KEPT_BYTES // ranks.nbytes):
        RANKS.popitem(last=False)
    return ranks


def _rank(maps: Tensor, seeds: tuple[int, ...]) -> Tensor:
    flat = maps.flatten(1) + 0.0  # turns -0.0 into 0.0, which some sorts tell apart
    order = _order(flat, seeds)
    places = torch.arange(flat.shape[1], device=flat.device, dtype=torch.int32).expand_as(order)
    ranks = torch.empty(order.shape, device=flat.device, dtype=torch.int32)
    return ranks.scatter_(1, order, places).view_as(maps)


def _order(flat: Tensor, seeds: tuple[int, ...]) -> Tensor:
    """Rising order in each row, ties in a seeded order."""
    if flat.is_cuda:  # to ask whether there are any would be to wait
        return _broken(flat, sent(shuffles(seeds, flat.shape[1]), flat.device))
    order = _argsort(flat)
    rising = flat.gather(1, order)
    tied = (rising[:, 1:] == rising[:, :-1]).any(1).nonzero()[:, 0]
    if len(tied):
        shuffle = shuffles(seeds, flat.shape[1]).to(flat.device)[tied]
        order[tied] = _broken(flat[tied], shuffle)
    return order


def _broken(flat: Tensor, shuffle: Tensor) -> Tensor:
    """Rising order in each row, ties in the order of a shuffle."""
    again = flat.gather(1, shuffle).argsort(dim=1, stable=True)
    return shuffle.gather(1, again)


def _argsort(flat: Tensor) -> Tensor:
    """Rising order in each row, ties in any; on a CPU numpy is three times as fast as torch."""
    if flat.device.type == "cpu":
        return torch.from_numpy(np.argsort(flat.numpy(), axis=1))
    return flat.argsort(dim=1)


def least(ranks: Tensor, count: int) -> Tensor:
    """Where the `count` least relevant pixels are."""
    return ranks < count


def most(ranks: Tensor, count: int) -> Tensor:
    """Where the `count` most relevant pixels are."""
    return ranks >= ranks.shape[1:].numel() - count


def sums_from(values: Tensor, ranks: Tensor, counts: Sequence[int]) -> Tensor:
    """Sums [N, counts] of the values of all pixels but the `count` least relevant."""
    rising = torch.empty_like(values.flatten(1))
    rising.scatter_(1, ranks.flatten(1).long(), values.flatten(1))
    sums = pad(rising.flip(1).cumsum(1), (1, 0))
    wanted = torch.tensor([rising.shape[1] - count for count in counts])
    return sums[:, sent(wanted, sums.device)]
