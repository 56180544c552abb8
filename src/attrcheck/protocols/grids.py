"""Grids of images: does a map point at the one that has the class? (Boehle et al. 2021, Rao et al.
2022)

The truth is known by construction, from labels alone, so any dataset will do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Batch, Dataset, Need, Pair, Rows
from attrcheck.errors import NotApplicableError
from attrcheck.protocols import protocol
from attrcheck.protocols.ground_truth import RelevanceMass
from attrcheck.store.seeds import derive
from attrcheck.tensors.batching import quick_size

POOL = 256
"""Images of the dataset that the other cells are chosen from."""
IMAGES = {"default": 40}
"""Images per case, by profile; all where none are given: grids need maps of their own."""


@dataclass(frozen=True)
class Pool:
    """Images that a model is sure of, with their labels and ids."""

    images: Tensor
    labels: NDArray[np.int64]
    ids: tuple[str, ...]

    def one_of(self, label: int, rng: np.random.Generator, but: str = "") -> Tensor | None:
        """An image of a class, not the one of this id; None if there is no other."""
        known = [at for at in np.flatnonzero(self.labels == label) if self.ids[at] != but]
        return self.images[int(rng.choice(known))] if known else None

    def others(self, label: int, count: int, rng: np.random.Generator) -> list[Tensor]:
        """An image of each of some other classes."""
        classes = np.unique(self.labels[self.labels != label])
        chosen = rng.choice(classes, count, replace=False)
        return [shown for one in chosen if (shown := self.one_of(int(one), rng)) is not None]


@dataclass(frozen=True)
class Grid(RelevanceMass):
    """The share of positive attribution inside one cell of a grid of images.

    Only images whose class the model gives at least this `confidence` to take part, alone and as
    others. In [0, 1], 1 / side^2 for a random map, higher is better; a map without positive values
    has no score.
    """

    side: int = 2
    confidence: float = 0.9
    needs: tuple[Need, ...] = ()
    most_images: int | None = None
    arranges = True

    @abstractmethod
    def fill(
        self, image: Tensor, name: str, label: int, pool: Pool
    ) -> tuple[Sequence[Tensor], int]:
        """What the cells of a grid show, row by row, and which of them is to be pointed at."""

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """The share in each grid; NaN where the model does not know the image."""
        scores = super().observe(model, batch, maps, shared)["score"]
        sure = batch.intact["probability"].astype(np.float64) >= self.confidence
        known = batch.intact["correct"].astype(bool) & sure
        return {"score": np.where(known, scores, np.nan)}

    def arrange(self, pair: Pair) -> Dataset:
        """The grids, with masks of the cells that are to be pointed at."""
        data, pool = pair.dataset, self._pool(pair)
        images = data.images[:]
        height, width = images.shape[2:]
        grids = images.new_empty(*images.shape[:2], self.side * height, self.side * width)
        masks = torch.zeros(len(grids), *grids.shape[2:], dtype=torch.bool)
        for at, name in enumerate(data.ids):
            cells, own = self.fill(images[at], name, int(data.labels[at]), pool)
            for cell, shown in enumerate(cells):
                top, left = height * (cell // self.side), width * (cell % self.side)
                place = (slice(top, top + height), slice(left, left + width))
                grids[at, :, *place] = shown
                masks[at, *place] = cell == own
        return replace(data, images=grids, masks=masks)

    def _pool(self, pair: Pair) -> Pool:
        pool = pair.reference.head(POOL)
        images, labels = pool.images[:], pool.labels
        normalised = pool.normalise(images).to(pair.images.device)
        with torch.inference_mode():
            parts = [
                pair.predictor(part) for part in torch.split(normalised, quick_size(normalised))
            ]
        chances = torch.cat(parts).softmax(1).cpu().gather(1, labels[:, None].cpu())[:, 0]
        sure = chances >= self.confidence
        if len(np.unique(labels[sure].numpy())) < self.side**2:
            raise NotApplicableError(
                f"too few classes of {pair.dataset.name!r} are recognised with a probability of "
                f"{self.confidence:g}: a grid shows {self.side**2} of them"
            )
        ids = tuple(pool.ids[at] for at in sure.nonzero()[:, 0].tolist())
        return Pool(images[sure], labels[sure].numpy(), ids)


@dataclass(frozen=True)
class GridPointing(Grid):
    """The share of positive attribution inside the cell of a grid that shows the class.

    An image and side^2 - 1 others, of other classes, are laid out as a grid in their full size, at
    places that its id decides. The model is asked for the class of the image.
    """

    def fill(
        self, image: Tensor, name: str, label: int, pool: Pool
    ) -> tuple[Sequence[Tensor], int]:
        """The image among those of other classes."""
        rng = np.random.default_rng(derive(0, "grid", name))
        cells = pool.others(label, self.side**2 - 1, rng)
        own = int(rng.integers(self.side**2))
        return [*cells[:own], image, *cells[own:]], own

    def arrange(self, pair: Pair) -> Dataset:
        """The grids, if the model takes images of their size."""
        arranged = super().arrange(pair)
        self._try(pair, arranged.images[:1])
        return arranged

    def _try(self, pair: Pair, grids: Tensor) -> None:
        """An error if the model does not take images of this size."""
        try:
            with torch.inference_mode():
                pair.predictor(pair.dataset.normalise(grids).to(pair.images.device))
        except Exception as error:
            size = " x ".join(map(str, grids.shape[2:]))
            raise NotApplicableError(
                f"the model does not take images of {size}, such as a grid of {self.side} x "
                f"{self.side} of its images"
            ) from error


@protocol("grid_pointing", default=False)
def grid_pointing(profile: str = "full") -> GridPointing:
    """The share of positive attribution in the cell of a 2x2 grid that shows the class."""
    return GridPointing(most_images=IMAGES.get(profile))
