"""The linear imputation: a missing pixel is the weighted mean of its eight neighbours.

All images and channels are solved at once, on a CPU as many as fit into its cache, by conjugate
gradients, each with step lengths of its own, from means of kept neighbours; a multigrid cycle is
the preconditioner. A cycle comes close to the solution by itself, so the guess that it makes from
the residual tells the error before a step. An image is stopped after the step whose guess is within
the tolerance, or within 1.5 times that if it fell to an eighth: with masks of all sorts, 1024 for
each of four sizes and tolerances, the error was then never above the tolerance, and less than an
eighth of it in the median.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attrcheck.removal._multigrid import Level, hierarchy

CHUNK = 1 << 18
"""Numbers that are solved at once on a CPU: enough to be worth a call, few enough for its cache."""
MOST_CYCLES = 100
AHEAD, FALL = 1.5, 8
"""So many times the tolerance will do before a step, if the step before made it so much less."""


def impute(images: Tensor, kept: Tensor, tolerance: float) -> Tensor:
    """Fill images [N, C, H, W] where kept [N, 1, H, W] is zero; with zero where nothing is kept.

    The error is within `tolerance`, in standard deviations of the kept pixels of the channel, as
    far as rounding allows. What an image becomes does not depend on the others.
    """
    if images.dtype != torch.float64:
        images, kept = images.float(), kept.float()
    on_cpu = images.device.type == "cpu"
    count = max(1, CHUNK // images.shape[1:].numel() if on_cpu else len(images))
    filled = torch.empty_like(images)
    for start in range(0, len(images), count):
        part = slice(start, start + count)
        _solve(images[part], kept[part], filled[part], tolerance)
    return filled


@torch.inference_mode()
def _solve(images: Tensor, kept: Tensor, filled: Tensor, tolerance: float) -> None:
    count = kept.sum((2, 3), keepdim=True).clamp(min=1)
    mean = (images * kept).sum((2, 3), keepdim=True) / count
    known = (images - mean).mul_(kept)
    spread = (known.square().sum((2, 3), keepdim=True) / count).sqrt()
    spread = spread.where(spread > 0, 1)
    level, local = hierarchy(kept, images.shape[1])
    # A channel that is not finite is lost with its mean, and must not spread to others.
    x = level.frame.flat(known.div_(spread).nan_to_num_(0, 0, 0))
    level.stencil(x)()
    x.addcmul_(level.sums, local)
    _descend(level, x, tolerance)
    torch.mul(level.frame.picture(x), spread, out=filled).add_(mean)  # `addcmul` is far slower


def _descend(level: Level, x: Tensor, tolerance: float) -> None:
    """Conjugate gradients, in place, from any missing pixels."""
    level.stencil(x)()
    torch.addcmul(level.sums, level.diagonal, x, value=-1, out=level.residual)
    nothing = torch.finfo(x.dtype).eps ** 3
    level.cycle()
    direction = level.guess.clone()
    apply = level.stencil(direction)
    product = level.dot(level.residual, level.guess)
    active = x.new_ones(*x.shape[:2], 1)
    last = torch.zeros_like(active)
    for _ in range(MOST_CYCLES):
        error = torch.abs(level.guess, out=level.sums).amax(-1, keepdim=True)
        apply()
        level.sums.addcmul_(level.diagonal, direction, value=-1)
        curvature = -level.dot(direction, level.sums)
        step = active * product / curvature.clamp(min=nothing)
        x.addcmul_(direction, step)
        active = active * (error > (last / FALL).clamp(tolerance, AHEAD * tolerance))
        if not active.any():
            return
        level.residual.addcmul_(level.sums, step)
        level.cycle()
        last, before = error, product.clamp(min=nothing)
        product = level.dot(level.residual, level.guess)
        torch.addcmul(level.guess, direction, product / before, out=direction)
    raise RuntimeError(
        f"the imputation is not within {tolerance:g} standard deviations after {MOST_CYCLES} "
        "cycles; raise the tolerance, or give images in float64"
    )
