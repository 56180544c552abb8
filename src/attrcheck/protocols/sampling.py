"""Take random sets of pixels away: does what a map gives them say what the model loses?

Sensitivity-n (Ancona et al. 2018), faithfulness correlation (Bhatt et al. 2020) and infidelity (Yeh
et al. 2019) differ in the sets and in the measure. No set depends on a map, so what the model loses
with each is observed once, for all methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Batch, Protocol, Reduction, Rows, Shared
from attrcheck.protocols import protocol
from attrcheck.protocols.order import pixel_counts
from attrcheck.protocols.responses import losses
from attrcheck.ranks import pearson
from attrcheck.removal import removal as removals
from attrcheck.store.seeds import derive
from attrcheck.tensors.draws import shuffles, uniform_draws
from attrcheck.tensors.transfers import exact, fetched, sent

TIE = 1e-9
"""Relative to the largest sum of a map: sums of equal pixels differ by rounding alone."""
Floats = NDArray[np.float64]


class Sets(ABC):
    """Random sets of pixels, drawn from the seeds of images."""

    @property
    @abstractmethod
    def key(self) -> str:
        """Its name in the store."""

    @abstractmethod
    def masks(self, seeds: tuple[int, ...], height: int, width: int) -> Iterator[Tensor]:
        """One set after another, [N, H, W] with True where a pixel is taken away."""


@dataclass(frozen=True)
class Pixels(Sets):
    """For each k in `at`, `samples` sets of k / of of the pixels, any of them."""

    at: tuple[int, ...]
    of: int
    samples: int

    @property
    def key(self) -> str:
        """All that decides the sets."""
        return f"pixels.{'_'.join(map(str, self.at))}.{self.of}.{self.samples}"

    def masks(self, seeds: tuple[int, ...], height: int, width: int) -> Iterator[Tensor]:
        """The samples of one size, then those of the next, which hold them."""
        counts = pixel_counts(height * width, self.at, self.of)
        for count in counts:
            for orders in _samples(seeds, self.samples):
                gone = torch.zeros(len(seeds), height * width, dtype=torch.bool)
                gone.scatter_(1, shuffles(orders, height * width)[:, :count], True)
                yield gone.view(-1, height, width)


@dataclass(frozen=True)
class Squares(Sets):
    """`samples` squares, 1 / of of the image's sides, anywhere inside it."""

    of: int
    samples: int

    @property
    def key(self) -> str:
        """All that decides the sets."""
        return f"squares.{self.of}.{self.samples}"

    def masks(self, seeds: tuple[int, ...], height: int, width: int) -> Iterator[Tensor]:
        """One square after another."""
        for places in _samples(seeds, self.samples):
            draws = uniform_draws(places, (2,))
            down, right = (
                self._stretch(draw, side)
                for draw, side in zip(draws.T, (height, width), strict=True)
            )
            yield down[:, :, None] & right[:, None, :]

    def _stretch(self, draws: Tensor, side: int) -> Tensor:
        """Where the square is along one side, [N, side]."""
        length = max(1, side // self.of)
        start = (draws * (side - length + 1)).long()[:, None]
        places = torch.arange(side)
        return (places >= start) & (places < start + length)


def _samples(seeds: tuple[int, ...], count: int) -> Iterator[tuple[int, ...]]:
    """Seeds of each image, for one draw after another."""
    for number in range(count):
        yield tuple(derive(seed, "set", str(number)) for seed in seeds)


@dataclass(frozen=True)
class Losses(Shared):
    """What the model loses with each set: intact minus what is left, [N, sets]."""

    sets: Sets
    removal: str

    @property
    def key(self) -> str:
        """One entry for these sets and this removal."""
        return f"losses.{self.removal}.{self.sets.key}"

    def observe(self, model: nn.Module, batch: Batch) -> Rows:
        """Losses of the label's logit and probability; one pass for each set."""
        remove = removals.get(self.removal).of(batch.images, batch.seeds)
        masks = self.sets.masks(batch.seeds, *batch.images.shape[2:])
        kept = (remove(~sent(gone, batch.images.device)) for gone in masks)
        return {f"loss_{name}": rows for name, rows in losses(model, batch, kept).items()}


@dataclass(frozen=True)
class Sampled(Protocol):
    """Compares the sums of a map over random sets with what the model loses with each."""

    sets: Sets
    removal: str = "mean"
    measure: Literal["logit", "probability"] = "logit"
    most_images: int | None = None

    @property
    def shared(self) -> Losses:
        """No loss depends on a map."""
        return Losses(self.sets, self.removal)

    @property
    def observation(self) -> str:
        """Both outputs are observed, whichever is measured."""
        return f"sampled.{self.removal}.{self.sets.key}"

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """The attribution of every set beside its losses, [N, sets]; no pass of the model."""
        values = exact(maps)
        sums = [
            (values * sent(gone, values.device)).sum((1, 2))
            for gone in self.sets.masks(batch.seeds, *maps.shape[1:])
        ]
        return {**fetched({"attribution": torch.stack(sums, 1)}), **shared}

    def _sides(self, rows: Rows) -> tuple[Floats, Floats]:
        return rows["attribution"].astype(np.float64), rows[f"loss_{self.measure}"].astype(
            np.float64
        )


@dataclass(frozen=True)
class Correlation(Sampled):
    """Mean over images, and sizes of sets, of Pearson's correlation of sums and losses.

    In [-1, 1], higher is better. A size for which either side is constant does not count; an image
    without any other has no score.
    """

    sizes: int = 1
    higher_is_better = True
    bounds = (-1.0, 1.0)

    def reduce(self, rows: Rows) -> Reduction:
        """The correlations of each size, and their mean."""
        sums, losses = (side.reshape(len(side) * self.sizes, -1) for side in self._sides(rows))
        found = pearson(sums, losses, TIE).reshape(-1, self.sizes)
        known = np.isfinite(found)
        with np.errstate(invalid="ignore"):
            scores = np.where(known, found, 0).sum(axis=1) / known.sum(axis=1)
        return Reduction.mean(scores)


@dataclass(frozen=True)
class Infidelity(Sampled):
    """Mean over images of the mean square of (b * sum - loss), b >= 0 the best scale of the map.

    With its own scale, a map would be scored by its units; with any, its sign would not count.
    Lower is better, 0 for a map that adds up what is lost.
    """

    higher_is_better = False
    bounds = (0.0, np.inf)

    def reduce(self, rows: Rows) -> Reduction:
        """The error that is left, image by image."""
        sums, losses = self._sides(rows)
        squares = (sums * sums).sum(axis=1, keepdims=True)
        products = (sums * losses).sum(axis=1, keepdims=True)
        scale = products.clip(min=0) / np.where(squares > 0, squares, 1)
        return Reduction.mean(((scale * sums - losses) ** 2).mean(axis=1))


@protocol("sensitivity_n", default=False)
def sensitivity_n() -> Correlation:
    """Correlation of sums over random pixels, 1/16 to 3/4 of them, with the loss of the logit."""
    at = (1, 2, 4, 8, 12)
    return Correlation(Pixels(at, 16, samples=16), sizes=len(at))


@protocol("faithfulness_correlation", default=False)
def faithfulness_correlation() -> Correlation:
    """Correlation of sums over random sixteenths of the pixels with the loss of the logit."""
    return Correlation(Pixels((1,), 16, samples=64))


@protocol("infidelity", default=False)
def infidelity() -> Infidelity:
    """Square error of sums over random squares against the loss of the logit; lower is better."""
    return Infidelity(Squares(4, samples=64))
