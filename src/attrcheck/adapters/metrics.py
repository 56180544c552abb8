"""Metrics of other libraries as protocols: they score one image at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from attrcheck.adapters.libraries import Settings
from attrcheck.contracts import Batch, Need, Protocol, Reduction, Rows
from attrcheck.errors import AttrcheckError
from attrcheck.store.digests import digest
from attrcheck.tensors.draws import seeded


@dataclass(frozen=True)
class Trial:
    """One image [1, C, H, W] with its label, its map and its mask [1, H, W]."""

    image: Tensor
    label: Tensor
    map: Tensor
    mask: Tensor | None
    ask: Callable[[Tensor], Tensor]

    def explain(self, images: Tensor) -> Tensor:
        """The maps [K, H, W] that the method gives K versions of the image."""
        return self.map if torch.equal(images, self.image) else self.ask(images)


@dataclass(frozen=True)
class Metric(Protocol):
    """A metric of another library; the score is the mean over the images where it is defined.

    Settings may hold functions; their code is part of a record's key.
    """

    library: ClassVar[str]
    metric: str
    version: str
    higher_is_better: bool
    settings: Settings = field(default=(), repr=False)
    needs: tuple[Need, ...] = ()

    @property
    def name(self) -> str:
        """As it is asked for."""
        return f"{self.library}:{self.metric}"

    @abstractmethod
    def score(self, model: nn.Module, trial: Trial) -> float:
        """The score of one image, NaN where it has none."""

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """The `score` [N] of each image.

        A method explains a whole batch at once, so a metric that asks for further maps runs twice:
        first to note which images it wants explained, then, with their maps at hand, to score.
        """
        wanted: list[dict[str, Tensor]] = [{} for _ in batch.seeds]

        def note(place: int, images: Tensor) -> Tensor:
            wanted[place] |= {digest(image): image.detach().clone() for image in images}
            return maps[place].expand(len(images), -1, -1).clone()

        scores = self._scores(model, batch, maps, note)
        if any(wanted):
            known = self._explained(batch, wanted)

            def tell(place: int, images: Tensor) -> Tensor:
                keys = [digest(image) for image in images]
                if not known[place].keys() >= set(keys):
                    raise AttrcheckError(
                        f"{self.name} changes images depending on their maps, so what it wants "
                        "explained cannot be known beforehand"
                    )
                return torch.stack([known[place][key] for key in keys])

            scores = self._scores(model, batch, maps, tell)
        return {"score": np.array(scores, dtype=np.float64)}

    def reduce(self, rows: Rows) -> Reduction:
        """The mean, images without a score left out and counted."""
        return Reduction.mean(rows["score"])

    def _scores(
        self, model: nn.Module, batch: Batch, maps: Tensor, ask: Callable[[int, Tensor], Tensor]
    ) -> list[float]:
        """Scores of images, one at a time, the global generators seeded for each."""
        scores = []
        device = batch.images.device
        for place, seed in enumerate(batch.seeds):
            one = slice(place, place + 1)
            trial = Trial(
                image=batch.images[one].detach().clone(),
                label=batch.labels[one],
                map=maps[one],
                mask=None if batch.masks is None else batch.masks[one],
                ask=partial(ask, place),
            )
            try:
                with seeded(seed, [device] if device.type == "cuda" else []):
                    scores.append(self.score(model, trial))
            except AttrcheckError:
                raise
            except Exception as error:
                raise AttrcheckError(
                    f"{self.name} raised {type(error).__name__}: {error}; if it wants other "
                    f"settings, register it with attrcheck.{self.library}_protocol"
                ) from error
        return scores

    def _explained(self, batch: Batch, wanted: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
        """The map of every wanted image."""
        if batch.attribute is None:
            raise AttrcheckError(f"{self.name} needs `Batch.attribute` to explain changed images")
        known: list[dict[str, Tensor]] = [{} for _ in wanted]
        for turn in zip_longest(*(images.items() for images in wanted)):
            # An image that wants no more of them is explained as it is.
            images = [item[1] if item else batch.images[n] for n, item in enumerate(turn)]
            maps = batch.attribute(torch.stack(images))
            for maps_by_key, item, explained in zip(known, turn, maps, strict=True):
                maps_by_key |= {item[0]: explained} if item else {}
        return known
