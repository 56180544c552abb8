"""F-Fidelity: what is removed is random, bounded, and what the model was fine-tuned to lose
(Zheng et al. 2025)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Batch, Protocol, Reduction, Rows, Tuning
from attrcheck.protocols import protocol
from attrcheck.protocols.ablation import Measure
from attrcheck.protocols.order import pixel_counts, ranks_of
from attrcheck.protocols.responses import answers, stacked, standard_errors
from attrcheck.removal import removal as removals
from attrcheck.store.digests import digest
from attrcheck.store.seeds import derive
from attrcheck.tensors.draws import shuffles
from attrcheck.tensors.transfers import sent

IMAGES = {"smoke": 4, "default": 20}
"""Images per case, by profile; all where none are given: a fine-tuned model needs its own maps."""


@dataclass(frozen=True)
class FineTunedFidelity(Protocol):
    """FFid+ minus FFid-: what is lost with random pixels of the explained part, less with others.

    The explained part is the top k / of of a map, for each k in `at`. Of it, and then of the rest,
    random pixels are removed: a share of `alpha`, but never more than `beta` of the image; the mean
    over `samples` sets. The model was fine-tuned to lose up to `beta` of the pixels, so that none
    of this is new to it. In [-1, 1], 0 for a random map in the mean, higher is better. Published
    with accuracy, 50 samples and 20 sizes.
    """

    at: tuple[int, ...] = (1, 3, 5, 7, 9)
    of: int = 10
    samples: int = 8
    alpha: float = 0.5
    beta: float = 0.1
    removal: str = "mean"
    measure: Measure = "probability"
    most_images: int | None = None
    higher_is_better = True
    sees = "order"
    needs = ("training",)

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Those of a difference."""
        return (-np.inf, np.inf) if self.measure == "logit" else (-1.0, 1.0)

    @property
    def tuning(self) -> Tuning:  # type: ignore[override]
        """Random masks that remove no more than is removed here."""
        return Tuning(removal=self.removal, share=self.beta)

    @property
    def observation(self) -> str:
        """All settings but those of the reduction."""
        settings = digest(self.at, self.of, self.samples, self.alpha, self.beta)
        return f"f_fidelity.{self.removal}.{settings}"

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """Responses [N, samples * sizes * 2]: without pixels of the part, without others."""
        remove = removals.get(self.removal).of(batch.images, batch.seeds)
        gone = self.removed(ranks_of(maps, batch.seeds), batch.seeds)
        return stacked(
            answers(model, remove(~one.to(batch.images.device)), batch.labels) for one in gone
        )

    def removed(self, ranks: Tensor, seeds: tuple[int, ...]) -> Iterator[Tensor]:
        """Where pixels are removed, [N, H, W], in the order of the rows."""
        pixels = ranks[0].numel()
        parts = pixel_counts(pixels, self.at, self.of)
        for number in range(self.samples):
            drawn = tuple(derive(seed, "f_fidelity", str(number)) for seed in seeds)
            order = sent(shuffles(drawn, pixels), ranks.device)
            shuffled = ranks.flatten(1).gather(1, order)
            for part in parts:
                explained = shuffled >= pixels - part
                for inside, size in ((explained, part), (~explained, pixels - part)):
                    most = min(int(self.alpha * size), int(self.beta * pixels))
                    first = inside & (inside.cumsum(1, dtype=torch.int32) <= most)
                    yield torch.empty_like(first).scatter_(1, order, first).view_as(ranks)

    def reduce(self, rows: Rows) -> Reduction:
        """The difference, image by image; the curve is over the sizes of the explained part."""
        values = rows[self.measure].astype(np.float64)
        left: NDArray[np.float64] = values.reshape(len(values), self.samples, len(self.at), 2)
        gains = (left[..., 1] - left[..., 0]).mean(axis=1)
        per_image = gains.mean(axis=1)
        return Reduction(
            score=float(per_image.mean()),
            curve=([k / self.of for k in self.at], gains.mean(axis=0).tolist()),
            per_image=per_image,
            errors=standard_errors(gains),
        )


@protocol("f_fidelity", default=False)
def f_fidelity(profile: str = "full") -> FineTunedFidelity:
    """Probability lost with random pixels of the explained part, less with others; on a model that
    was fine-tuned to lose as many."""
    return FineTunedFidelity(most_images=IMAGES.get(profile))
