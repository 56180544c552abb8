"""Maps with attribution taken away or added: values change, much of the order stays."""

from __future__ import annotations

import torch
from torch import Tensor

from attrcheck.protocols.order import ranks_of
from attrcheck.tensors.draws import uniform_draws

SHIFT = 0.6
SCHEMES = ("constant", "random", "partial")


def modified(scheme: str, values: Tensor, seeds: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Maps [N, H, W] of values in [0, 1] by a scheme of Li et al. 2024: removed, introduced.

    constant: every value shifted by -.6 or +.6. random: each by its own draw from U(-.6, 0) or
    U(0, .6). partial: of P values in rising order, those of rank .6 P to .8 P become 0, or those
    of rank 0 to .4 P become the .8 quantile. Values stay in [0, 1].
    """
    if scheme == "constant":
        return _shifted(values, SHIFT, SHIFT)
    if scheme == "random":
        draws = uniform_draws(seeds, (2, *values.shape[1:])).to(values) * SHIFT
        return _shifted(values, draws[:, 0], draws[:, 1])
    ranks, pixels = ranks_of(values, seeds), values[0].numel()
    high = torch.quantile(values.flatten(1), 0.8, dim=1)[:, None, None]
    fall = (ranks >= 0.6 * pixels) & (ranks <= 0.8 * pixels)
    return values.masked_fill(fall, 0.0), torch.where(ranks <= 0.4 * pixels, high, values)


def _shifted(values: Tensor, down: Tensor | float, up: Tensor | float) -> tuple[Tensor, Tensor]:
    return (values - down).clamp(min=0), (values + up).clamp(max=1)
