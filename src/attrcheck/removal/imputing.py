"""Replace removed pixels by means of their neighbours, and noise: the imputation of ROAD.

All images and channels are solved at once, on a CPU as many as fit into its cache, by conjugate
gradients, each with step lengths of its own, from means of kept neighbours; a multigrid cycle is
the preconditioner. A cycle comes close to the solution by itself, so the guess that it makes from
the residual tells the error before a step. An image is stopped after the step whose guess is within
the tolerance, or within 1.5 times that if it fell to an eighth: with masks of all sorts, 1024 for
each of four sizes and tolerances, the error was then never above the tolerance, and less than an
eighth of it in the median.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from attrcheck.removal import removal
from attrcheck.removal._multigrid import Level, hierarchy
from attrcheck.tensors.draws import normal_draws_on

CHUNK = 1 << 18
"""Numbers that are solved at once on a CPU: enough to be worth a call, few enough for its cache."""
MOST_CYCLES = 100
AHEAD, FALL = 1.5, 8
"""So many times the tolerance will do before a step, if the step before made it so much less."""


@removal("noisy_linear")
def noisy_linear(
    images: Tensor,
    keep: Tensor,
    noise: float = 0.01,
    generator: Generator | None = None,
    *,
    seeds: Sequence[int] | None = None,
    tolerance: float = 1e-3,
) -> Tensor:
    """Make each removed pixel the mean of its eight neighbours, edges twice corners, plus noise.

    Gaussian noise, independent in each removed pixel and channel, with the standard deviation
    `noise` in the units of the images given; ROAD as published works on pixels from 0 to 1. It is
    drawn from the seeds, one per image, or from the generator, or else from torch's global one.
    An image of which nothing is kept becomes zero, the dataset's mean once images are normalised.
    The means are right to `tolerance`, in standard deviations of the channel's kept pixels.
    """
    _check(images, keep, seeds, tolerance)
    kept = keep.bool()[:, None].to(images.dtype)
    filled = impute(images.detach(), kept, tolerance)
    if noise:
        filled.add_(_draw(images, generator, seeds), alpha=noise)
    return filled.to(images.dtype).lerp(images, kept)  # as `where`, but several times faster


def _check(images: Tensor, keep: Tensor, seeds: Sequence[int] | None, tolerance: float) -> None:
    if images.dim() != 4 or not images.is_floating_point():
        raise ValueError(
            f"noisy_linear wants images [N, C, H, W] of floats, not {list(images.shape)} "
            f"of {images.dtype}"
        )
    if keep.shape != images[:, 0].shape:
        raise ValueError(
            f"noisy_linear wants keep [N, H, W], 1 where a pixel is kept: for images "
            f"{list(images.shape)} that is {list(images[:, 0].shape)}, not {list(keep.shape)}"
        )
    if seeds is not None and len(seeds) != len(images):
        raise ValueError(
            f"noisy_linear wants one seed per image: {len(images)} of them, not {len(seeds)}"
        )
    if not tolerance > 0:
        raise ValueError(f"noisy_linear wants a tolerance above zero, not {tolerance:g}")


def _draw(images: Tensor, generator: Generator | None, seeds: Sequence[int] | None) -> Tensor:
    """N(0, 1) for every pixel, so that what a pixel gets does not depend on which are removed."""
    if seeds is not None:
        return normal_draws_on(images.device, images.dtype, tuple(seeds), tuple(images.shape[1:]))
    device = images.device if generator is None else generator.device
    return torch.randn(images.shape, generator=generator, device=device).to(images)


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
    undone = torch.zeros((), dtype=torch.int64, device=x.device)
    for cycle in range(1, MOST_CYCLES + 1):
        error = torch.abs(level.guess, out=level.sums).amax(-1, keepdim=True)
        apply()
        level.sums.addcmul_(level.diagonal, direction, value=-1)
        curvature = -level.dot(direction, level.sums)
        step = active * product / curvature.clamp(min=nothing)
        x.addcmul_(direction, step)
        active = active * (error > (last / FALL).clamp(tolerance, AHEAD * tolerance))
        undone += active.any()
        if cycle >= level.due and (cycles := int(undone) + 1) <= cycle:
            level.took(cycles)
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
