"""A protocol on chosen images of an embedded pair, for maps that no method would return."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from attrcheck.bench import Bench, find
from attrcheck.cases import Case
from attrcheck.lab import Lab
from attrcheck.loading import Setup, load
from attrcheck.outcomes import joined, outcome
from attrcheck.protocols import Batch, Protocol, Rows
from attrcheck.protocols._values import normalised


@dataclass(frozen=True)
class Panel:
    """Some images of a pair, by index, in the batches that its protocols see."""

    setup: Setup
    chosen: Tensor
    seed: int

    def observe(self, protocol: Protocol, maps: Tensor) -> Rows:
        """The rows of maps [N, H, W], one for each image chosen."""
        found = []
        for part, batch in self._batches:
            shared = protocol.observe_shared(self.setup.judge, batch)
            found.append(protocol.observe(self.setup.judge, batch, maps[part], shared))
        return joined(found)

    @cached_property
    def _batches(self) -> list[tuple[slice, Batch]]:
        setup, chosen = self.setup, self.chosen
        seeds = setup.seeds(slice(None), self.seed, "ties")
        batches = []
        for part in setup.slices(len(chosen)):
            images, labels = setup.images[chosen[part]], setup.labels[chosen[part]]
            batch = Batch(
                images,
                labels,
                seeds=tuple(seeds[int(index)] for index in chosen[part]),
                intact=outcome(setup.judge, images, labels),
                chance=1 / setup.dataset.classes,
            )
            batches.append((part, batch))
        return batches

    @property
    def seeds(self) -> tuple[int, ...]:
        """One an image, as the protocols get them."""
        return tuple(seed for _, batch in self._batches for seed in batch.seeds)


def unit_maps(lab: Lab, dataset: str, model: str, images: int, method: str) -> tuple[Panel, Tensor]:
    """A method's maps in [0, 1], float64, and the images on which they are not constant.

    Made by whatever run asks, or found in its store; other methods of the run do not matter.
    """
    settings = replace(lab.settings, images=images)
    bench = Bench(Case(dataset, model, "morf"), settings, lab.store)
    setup = load(dataset, model, images, settings.device)
    maps = torch.from_numpy(bench.maps(find(method)).arrays["maps"]).to(setup.images.device)
    values = normalised(maps, "max")
    chosen = values.isfinite().all(2).all(1).nonzero()[:, 0]
    return Panel(setup, chosen, settings.seed), values[chosen]
