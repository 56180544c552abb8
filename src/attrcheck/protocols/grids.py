"""Grids of images: does a map point at the one that has the class? (Boehle et al. 2021, Rao et al.
2022)

The truth is known by construction, from labels alone, so any dataset will do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
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
class GridPointing(RelevanceMass):
    """The share of positive attribution inside the cell of a grid that shows the class.

    An image and side^2 - 1 others, of other classes, are laid out as a grid in their full size, at
    places that its id decides. The model is asked for the class of the image. Only images whose
    class the model gives at least this `confidence` to take part, alone and as others. In [0, 1],
    1 / side^2 for a random map, higher is better; a map without positive values has no score.
    """

    side: int = 2
    confidence: float = 0.9
    needs: tuple[Need, ...] = ()
    most_images: int | None = None
    arranges = True

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """The share in each grid; NaN where the model does not know the image."""
        scores = super().observe(model, batch, maps, shared)["score"]
        sure = batch.intact["probability"].astype(np.float64) >= self.confidence
        known = batch.intact["correct"].astype(bool) & sure
        return {"score": np.where(known, scores, np.nan)}

    def arrange(self, pair: Pair) -> Dataset:
        """The grids, with masks of the cells that show their classes."""
        data, pool, labels = pair.dataset, *self._pool(pair)
        images = data.images[:]
        height, width = images.shape[2:]
        grids = images.new_empty(*images.shape[:2], self.side * height, self.side * width)
        masks = torch.zeros(len(grids), *grids.shape[2:], dtype=torch.bool)
        for at, name in enumerate(data.ids):
            rng = np.random.default_rng(derive(0, "grid", name))
            others = iter(self._others(labels, int(data.labels[at]), rng))
            own = int(rng.integers(self.side**2))
            for cell in range(self.side**2):
                top, left = height * (cell // self.side), width * (cell % self.side)
                place = (slice(top, top + height), slice(left, left + width))
                shown = images[at] if cell == own else pool[next(others)]
                grids[at, :, *place] = shown
                masks[at, *place] = cell == own
        self._try(pair, grids)
        return replace(data, images=grids, masks=masks)

    def _pool(self, pair: Pair) -> tuple[Tensor, Tensor]:
        """Images of the dataset that the model is sure of, and their labels."""
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
        return images[sure], labels[sure]

    def _others(self, labels: Tensor, own: int, rng: np.random.Generator) -> list[int]:
        """Places in the pool: one image of each of some other classes."""
        known = labels.numpy()
        classes = np.unique(known[known != own])
        chosen = rng.choice(classes, self.side**2 - 1, replace=False)
        return [int(rng.choice(np.flatnonzero(known == label))) for label in chosen]

    def _try(self, pair: Pair, grids: Tensor) -> None:
        """An error if the model does not take images of this size."""
        try:
            with torch.inference_mode():
                pair.predictor(pair.dataset.normalise(grids[:1]).to(pair.images.device))
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
