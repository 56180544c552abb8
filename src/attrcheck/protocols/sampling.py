"""Take random sets of pixels away: does what a map gives them say what the model loses?

Sensitivity-n (Ancona et al. 2018), faithfulness correlation (Bhatt et al. 2020) and infidelity (Yeh
et al. 2019) differ in the sets and in the measure. No set depends on a map, so what the model loses
with each is observed once, for all methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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
from attrcheck.tensors.transfers import exact, fetched, sent

TIE = 1e-9
"""Relative to the largest sum of a map: sums of equal pixels differ by rounding alone."""
KEPT_BYTES = 2**27
"""The size of the sets that are remembered: enough for a block of 256 images of 224 x 224."""
SETS: dict[tuple[Sets, tuple[int, ...], int, int], NDArray[np.uint8]] = {}
"""Those of the batches that came last, as bits, [sets, N, pixels / 8]."""
Floats = NDArray[np.float64]


class Sets(ABC):
    """Random sets of pixels, drawn from the seeds of images."""

    @property
    @abstractmethod
    def key(self) -> str:
        """Its name in the store."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, height: int, width: int) -> NDArray[np.bool_]:
        """The sets of one image, [sets, H, W] with True where a pixel is taken away."""

    def masks(self, seeds: tuple[int, ...], height: int, width: int) -> tuple[Tensor, ...]:
        """One set after another, [N, H, W] each."""
        return drawn(self, seeds, height, width)


def drawn(sets: Sets, seeds: tuple[int, ...], height: int, width: int) -> tuple[Tensor, ...]:
    """The sets of a batch; each method asks for those of all batches, one after another."""
    key, pixels = (sets, seeds, height, width), height * width
    if key not in SETS:
        of_images = [
            sets.draw(np.random.default_rng(derive(seed, "sets")), height, width) for seed in seeds
        ]
        masks = np.stack(of_images, axis=1).reshape(-1, len(seeds), pixels)
        bits = SETS[key] = np.packbits(masks, axis=-1)
        while len(SETS) > max(1, KEPT_BYTES // bits.nbytes):
            del SETS[next(iter(SETS))]
    masks = np.unpackbits(SETS[key], axis=-1, count=pixels).view(np.bool_)
    return torch.from_numpy(masks.reshape(*masks.shape[:2], height, width)).unbind()


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

    def draw(self, rng: np.random.Generator, height: int, width: int) -> NDArray[np.bool_]:
        """The samples of one size, then those of the next, which hold them."""
        draws = rng.random((self.samples, height * width))
        last = [count - 1 for count in pixel_counts(height * width, self.at, self.of)]
        limits = np.partition(draws, [at for at in last if at >= 0], axis=1)
        gone = [
            draws <= limits[:, at, None] if at >= 0 else np.zeros_like(draws, bool) for at in last
        ]
        return np.concatenate(gone).reshape(-1, height, width)


@dataclass(frozen=True)
class Squares(Sets):
    """`samples` squares, 1 / of of the image's sides, anywhere inside it."""

    of: int
    samples: int

    @property
    def key(self) -> str:
        """All that decides the sets."""
        return f"squares.{self.of}.{self.samples}"

    def draw(self, rng: np.random.Generator, height: int, width: int) -> NDArray[np.bool_]:
        """One square after another."""
        down, right = (self._stretches(rng, side) for side in (height, width))
        return np.asarray(down[:, :, None] & right[:, None, :])

    def _stretches(self, rng: np.random.Generator, side: int) -> NDArray[np.bool_]:
        """Where the squares are along one side, [samples, side]."""
        length = max(1, side // self.of)
        start = rng.integers(side - length + 1, size=(self.samples, 1))
        places = np.arange(side)
        return np.asarray((places >= start) & (places < start + length))


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
        correlations = pearson(sums, losses, TIE).reshape(-1, self.sizes)
        known = np.isfinite(correlations)
        with np.errstate(invalid="ignore"):
            scores = np.where(known, correlations, 0).sum(axis=1) / known.sum(axis=1)
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
