"""A protocol on chosen images of an embedded pair, for maps that no method returns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from attrcheck.contracts import Batch, Lab, Pair, Protocol, Rows
from attrcheck.protocols.responses import joined, responses
from attrcheck.protocols.values import normalised


@dataclass(frozen=True)
class Panel:
    """Some images of a pair, by index, in the batches that its protocols see."""

    pair: Pair
    chosen: Tensor
    seed: int

    def observe(self, protocol: Protocol, maps: Tensor) -> Rows:
        """The rows of maps [N, H, W], one for each image chosen."""
        rows = []
        for part, batch in self._batches:
            shared = protocol.observe_shared(self.pair.predictor, batch)
            some = maps[part].to(batch.images.dtype)  # as methods give them
            rows.append(protocol.observe(self.pair.predictor, batch, some, shared))
        return joined(rows)

    @cached_property
    def _batches(self) -> list[tuple[slice, Batch]]:
        pair, chosen = self.pair, self.chosen
        seeds = pair.seeds(slice(None), self.seed, "ties")
        batches = []
        for part in pair.slices(len(chosen)):
            images, labels = pair.images[chosen[part]], pair.labels[chosen[part]]
            batch = Batch(
                images,
                labels,
                seeds=tuple(seeds[int(index)] for index in chosen[part]),
                intact=responses(pair.predictor, images, labels),
                chance=1 / pair.dataset.classes,
            )
            batches.append((part, batch))
        return batches

    @property
    def seeds(self) -> tuple[int, ...]:
        """One per image, as the protocols get them."""
        return tuple(seed for _, batch in self._batches for seed in batch.seeds)


def unit_maps(lab: Lab, dataset: str, model: str, images: int, method: str) -> tuple[Panel, Tensor]:
    """A method's maps in [0, 1], float64, and the images on which they are not constant.

    From the store, or computed now, whatever methods the run has.
    """
    pair = lab.pair(dataset, model, images)
    maps = torch.from_numpy(lab.maps(pair, method)).to(pair.images.device)
    values = normalised(maps, "max")
    chosen = values.isfinite().all(2).all(1).nonzero()[:, 0]
    return Panel(pair, chosen, lab.settings.seed), values[chosen]
