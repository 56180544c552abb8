"""Multigrid over the missing pixels of a batch of images: from a residual, a guess of the error.

The equations are those of the noisy linear imputation times 12. At a missing pixel `d x - K x = 0`:
K sums 3 x 3 pixels with the weights [1 2 1] each way, the pixel's own 4 among them, and `d` is the
sum of the weights that lie inside the image. A coarser grid has the same equation for squares of
2 x 2 pixels, all of them free, but tied to zero: the tighter, the more pixels below are kept.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

LONG = 1.9
"""The step that goes with each plain Jacobi step, of length 1. No eigenvalue is above 1, as K has
none below 0: the two leave a seventh of an error from 2/5 up, and coarser grids see to the rest."""
TIE = 6.75
"""Of one kept pixel, on all coarser grids; found by trial, and twice as much is hardly worse."""
COARSEST = 16
"""So many pixels are solved exactly."""
DUE = 6
"""The cycle after which a GPU is first asked whether all is done: to ask is to wait."""


class Frame:
    """How a picture lies in a row of numbers: with even sides and zeros about it.

    So a neighbour is always at the same distance, for all images of a batch at once.
    """

    def __init__(self, height: int, width: int) -> None:
        self.height, self.width = height, width
        self.rows, self.stride = height + height % 2 + 2, width + width % 2 + 1
        self.size = self.rows * self.stride

    def flat(self, picture: Tensor) -> Tensor:
        """[..., height, width] to [..., size]."""
        return pad(picture, (1, self.width % 2, 1, 1 + self.height % 2)).flatten(-2)

    def even(self, flat: Tensor) -> Tensor:
        """View [..., size] as a picture with even sides."""
        return flat.view(*flat.shape[:-1], self.rows, self.stride)[..., 1:-1, 1:]

    def picture(self, flat: Tensor) -> Tensor:
        """View [..., size] as [..., height, width]."""
        return self.even(flat)[..., : self.height, : self.width]


class Stencil:
    """Put K x into `out`: bound to its tensors once, run often."""

    def __init__(self, x: Tensor, out: Tensor, between: Tensor, stride: int) -> None:
        x, out, between = x.view(-1), out.view(-1), between.view(-1)
        end = len(x) - stride
        vertical = (x[: end - stride], x[2 * stride :], x[stride:end], between[stride:end])
        left, right = between[stride : end - 1], between[stride + 2 : end + 1]
        self._passes = (vertical, (left, right, between[stride + 1 : end], out[stride + 1 : end]))

    def __call__(self) -> None:
        for before, after, here, out in self._passes:
            torch.add(before, after, out=out).add_(here, alpha=2)


@functools.lru_cache(maxsize=32)
def matrix(height: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """K, row by row of a picture."""

    def along(side: int) -> Tensor:
        """[1 2 1] about the diagonal."""
        off = torch.ones(side - 1, dtype=dtype, device=device)
        centre = torch.full((side,), 2.0, dtype=dtype, device=device)
        return torch.diag(centre) + torch.diag(off, 1) + torch.diag(off, -1)

    return torch.kron(along(height), along(width))


@functools.lru_cache(maxsize=32)
def weights(height: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """`d` at each pixel: 16, and less at the border."""
    rows, columns = (
        torch.full((side,), 4.0, dtype=dtype, device=device) for side in (height, width)
    )
    for side in (rows, columns):
        side[0] -= 1
        side[-1] -= 1
    return torch.outer(rows, columns)


def halve(x: Tensor) -> Tensor:
    """Sums of 2 x 2 pixels."""
    if x.shape[-1] % 2 or x.shape[-2] % 2:
        x = pad(x, (0, x.shape[-1] % 2, 0, x.shape[-2] % 2))
    x = x[..., ::2, :] + x[..., 1::2, :]
    return x[..., ::2] + x[..., 1::2]


class Level:
    """One grid: `cycle` turns the `residual` into a `guess` of the error, both flat.

    It is made for images of a shape, and told which of their pixels are kept as often as need be.
    The ends of its tensors, where no stencil gets to, are zero and stay so.
    """

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> None:
        """The shape is [N, channels, height, width]."""
        *batch, height, width = shape
        self.frame = frame = Frame(height, width)
        buffers = torch.zeros(4, *batch, frame.size, dtype=dtype, device=device)
        self.residual, self.guess, self.sums, self._between = buffers
        self._inside = _inside(height, width, dtype, device)
        self._apply = self.stencil(self.guess)
        self._sums, self._guesses = self._rows_of(self.sums), self._rows_of(self.guess)
        self._rows = torch.empty_like(self._sums[0])
        self._columns = self._rows[..., ::2], self._rows[..., 1::2]
        self.inlet, self.outlet = frame.picture(self.residual), frame.picture(self.guess)
        half = (height + 1) // 2, (width + 1) // 2
        self._patient = device.type != "cpu"
        self.due = DUE if self._patient else 1
        kind = Coarsest if math.prod(half) <= COARSEST else Level
        self._coarser = kind((*batch, *half), dtype, device)

    def took(self, cycles: int) -> None:
        """Ask no sooner next time, where asking costs more than a cycle too many."""
        if self._patient:
            self.due = cycles + 1

    def hold(self, mask: Tensor, diagonal: Tensor, kept: Tensor, area: Tensor) -> None:
        """Where the mask, flat, is zero, ignore the residual and guess zero.

        The others are [N or 1, 1, height, width]. Below a pixel lie `area` pixels, of which `kept`
        are kept.
        """
        self.diagonal = self.frame.flat(diagonal)
        self._inverse = mask / self.diagonal.clamp(min=1)
        self._masks = self._rows_of(mask)
        self._coarser.tie(halve(kept), halve(area))

    def tie(self, kept: Tensor, area: Tensor) -> None:
        """Let all pixels be free, but tied to zero."""
        self.hold(self._inside, _tied(kept, area), kept, area)

    def stencil(self, x: Tensor) -> Stencil:
        """Puts K x into `sums`."""
        return Stencil(x, self.sums, self._between, self.frame.stride)

    def _rows_of(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """The first of each two rows, and the second."""
        even = self.frame.even(flat)
        return even[..., ::2, :], even[..., 1::2, :]

    def dot(self, a: Tensor, b: Tensor) -> Tensor:
        """The inner product of each channel; `torch.linalg.vecdot` takes new memory each time."""
        return torch.mul(a, b, out=self._between).sum(-1, keepdim=True)

    def cycle(self) -> None:
        """A plain and a long Jacobi step, the coarser grid's correction, the steps in reverse."""
        torch.mul(self.residual, self._inverse, out=self.guess)
        self._apply()  # the plain step from zero leaves K x for a residual: the long one goes on
        self.guess.addcmul_(self.sums, self._inverse, value=LONG)
        self._correct()
        self._long_step()
        self._gather()
        torch.mul(self.sums, self._inverse, out=self.guess)

    def _gather(self) -> None:
        """Into `sums`, the next guess of a Jacobi step, times the diagonal."""
        self._apply()
        self.sums.add_(self.residual)

    def _long_step(self) -> None:
        self._gather()
        self.guess.mul_(1 - LONG).addcmul_(self.sums, self._inverse, value=LONG)

    def _correct(self) -> None:
        self._gather()
        self.sums.addcmul_(self.diagonal, self.guess, value=-1)
        torch.mul(self._sums[0], self._masks[0], out=self._rows)
        self._rows.addcmul_(self._sums[1], self._masks[1])
        torch.add(*self._columns, out=self._coarser.inlet)
        self._coarser.cycle()
        for columns in self._columns:
            columns.copy_(self._coarser.outlet)
        for guess, mask in zip(self._guesses, self._masks, strict=True):
            guess.addcmul_(self._rows, mask)


class Coarsest:
    """The last grid, of a few pixels: `cycle` multiplies by the inverse matrix."""

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> None:
        self.inlet, self.outlet = torch.zeros(2, *shape, dtype=dtype, device=device)
        self._flat = self.inlet.flatten(2), self.outlet.flatten(2)

    def tie(self, kept: Tensor, area: Tensor) -> None:
        """Let all pixels be free, but tied to zero."""
        sums = matrix(*kept.shape[-2:], kept.dtype, kept.device)
        system = torch.diag_embed(_tied(kept, area).flatten(1)) - sums
        self._inverse = _inverse(system)

    def cycle(self) -> None:
        """Solve."""
        torch.matmul(self._flat[0], self._inverse, out=self._flat[1])


def _inverse(system: Tensor) -> Tensor:
    """Of symmetric matrices whose diagonal outweighs the rest, so that nothing need be checked."""
    factor = torch.linalg.cholesky_ex(system).L
    if factor.device.type == "cpu":
        return torch.cholesky_inverse(factor)
    # `cholesky_inverse` would wait there.
    unit = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    half: Tensor = torch.linalg.solve_triangular(factor, unit.expand_as(factor), upper=False)
    return half.mT @ half


def _weights(like: Tensor) -> Tensor:
    return weights(*like.shape[-2:], like.dtype, like.device).expand(1, 1, -1, -1)


@functools.lru_cache(maxsize=32)
def _inside(height: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """One in the picture and zero about it, flat."""
    return Frame(height, width).flat(torch.ones(1, 1, height, width, dtype=dtype, device=device))


def _tied(kept: Tensor, area: Tensor) -> Tensor:
    """The diagonal of a coarser grid."""
    tie = kept / (1 - kept / area).clamp_(min=1e-3)
    return _weights(kept) + tie.mul_(TIE).clamp_(min=1e-4)


@functools.lru_cache(maxsize=2)
def _finest(thread: int, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Level:
    """A level to be used again: one for each thread, as its tensors are written to."""
    return Level(shape, dtype, device)


def hierarchy(kept: Tensor, channels: int) -> tuple[Level, Tensor]:
    """The finest level for kept pixels [N, 1, height, width], 1 or 0, with all that is below it.

    And, flat, what K x times makes means of kept neighbours: zero where a pixel is kept. The level
    is good until the next one of its shape is asked for.
    """
    n, _, height, width = kept.shape
    shape = n, channels, height, width
    level = _finest(threading.get_ident(), shape, kept.dtype, kept.device)
    flat = level.frame.flat(kept)
    mask = _inside(height, width, kept.dtype, kept.device) - flat
    near, between = flat.new_zeros(2, *flat.shape)
    Stencil(flat, near, between, level.frame.stride)()
    area = kept.new_ones(1, 1, height, width)
    # Near a kept pixel is nearly kept: ties this smooth save up to a fifth of the cycles.
    level.hold(mask, _weights(area), level.frame.picture(near) / 16, area)
    return level, torch.div(mask, near.clamp_(min=1), out=near)
