"""Ablation in order: remove ever more pixels, ranked by a map, and watch the model.

MoRF and LeRF, deletion and insertion as RISE has them (Petsiuk et al. 2018), ROAD (Rong et al.
2022) and incremental deletion as in the IDSDS paper (Hesse et al. 2024) differ in the order, the
removal, the steps and the measure.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Batch, Protocol, Reduction, Rows, Shared
from attrcheck.protocols import ProtocolSpec, protocol
from attrcheck.protocols.order import least, most, pixel_counts, ranks_of
from attrcheck.protocols.responses import answers, responses, stacked, standard_errors
from attrcheck.removal import removal as removals
from attrcheck.store.digests import digest

Measure: TypeAlias = Literal["correct", "probability", "logit"]

TENTHS = tuple(range(11))
ROAD_TENTHS = (0, 1, 2, 3, 4, 5, 7, 9)
"""The published fractions, and the intact image, from which areas start."""
IDS_STEPS = 32
IMAGES = {"default": 40}
"""Images per case, by profile, where a removal is slow; all where none are given."""
IDS_IMAGES = {"default": 20}


@dataclass(frozen=True)
class Emptied(Shared):
    """Responses with every pixel removed, where every order ends."""

    removal: str

    @property
    def key(self) -> str:
        """One entry per removal."""
        return f"emptied.{self.removal}"

    def observe(self, model: nn.Module, batch: Batch) -> Rows:
        """Responses with nothing kept."""
        keep = torch.zeros_like(batch.images[:, 0], dtype=torch.bool)
        empty = removals.get(self.removal)(batch.images, keep, seeds=batch.seeds)
        return responses(model, empty, batch.labels)


@dataclass(frozen=True)
class Ablation(Protocol):
    """Area under a measure of the model against the removed fractions k / of, for k in `at`.

    measure: accuracy (`correct`), or the label's `probability` or `logit`. The area is that of
    trapezoids, divided by the width of the fractions, or the plain `mean` over them; so it lies in
    [0, 1], logits aside. The intact and the fully removed image need no map: methods share them.
    """

    most_relevant_first: bool
    higher_is_better: bool
    removal: str = "mean"
    at: tuple[int, ...] = TENTHS
    of: int = 10
    measure: Measure = "correct"
    area: Literal["trapezoid", "mean"] = "trapezoid"
    most_images: int | None = None
    sees = "order"

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Those of the measure."""
        return (-inf, inf) if self.measure == "logit" else (0.0, 1.0)

    @property
    def shared(self) -> Emptied | None:
        """Both orders end alike."""
        return Emptied(self.removal) if self.of in self.at else None

    @property
    def observation(self) -> str:
        """All settings but those of the reduction."""
        order = "morf" if self.most_relevant_first else "lerf"
        steps = digest(self.at, self.of) if self.at != tuple(range(self.of + 1)) else self.of
        return f"{order}.{self.removal}.{steps}"

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """Responses [N, steps] at every removed fraction."""
        ranks = ranks_of(maps, batch.seeds)
        gone = most if self.most_relevant_first else least
        remove = removals.get(self.removal).of(batch.images, batch.seeds)
        known = {0: batch.intact, self.of: shared}
        counts = pixel_counts(ranks[0].numel(), self.at, self.of)
        return stacked(
            known[k] if k in known else answers(model, remove(~gone(ranks, count)), batch.labels)
            for k, count in zip(self.at, counts, strict=True)
        )

    def reduce(self, rows: Rows) -> Reduction:
        """Accuracies are summed in whole numbers, so that equal areas are equal."""
        kind = np.int64 if self.measure == "correct" else np.float64
        values = rows[self.measure].astype(kind)
        weights, total = self.weights()
        areas = values @ weights
        n = len(values)
        return Reduction(
            score=areas.sum().item() / (total * n),
            curve=([k / self.of for k in self.at], [x.item() / n for x in values.sum(axis=0)]),
            per_image=areas.astype(np.float64) / total,
            errors=standard_errors(values),
        )

    def weights(self) -> tuple[NDArray[np.int64], int]:
        """The weight of each step in the area, in whole numbers, and their sum."""
        if self.area == "mean":
            return np.ones(len(self.at), dtype=np.int64), len(self.at)
        widths = np.diff(self.at)
        weights = np.concatenate([widths, [0]]) + np.concatenate([[0], widths])
        return weights, int(weights.sum())


@protocol("morf")
def morf(removal: str = "mean") -> Ablation:
    """Most relevant first: accuracy should fall at once; lower is better."""
    return Ablation(most_relevant_first=True, higher_is_better=False, removal=removal)


@protocol("lerf")
def lerf(removal: str = "mean") -> Ablation:
    """Least relevant first: accuracy should hold as long as it can; higher is better."""
    return Ablation(most_relevant_first=False, higher_is_better=True, removal=removal)


def resolve_morf(removal: str) -> ProtocolSpec:
    """`morf:blur` is `morf` with another removal."""
    known = removals.get(removal).name
    return ProtocolSpec(f"morf:{known}", lambda: morf(known))


def resolve_lerf(removal: str) -> ProtocolSpec:
    """`lerf:blur` is `lerf` with another removal."""
    known = removals.get(removal).name
    return ProtocolSpec(f"lerf:{known}", lambda: lerf(known))


@protocol("deletion")
def deletion() -> Ablation:
    """Most relevant first: area under the label's probability; lower is better.

    The rows are those of `morf`, in tenths; only the reduction differs. RISE itself takes the class
    that the model predicts, and a step for each row of pixels.
    """
    return Ablation(most_relevant_first=True, higher_is_better=False, measure="probability")


@protocol("insertion")
def insertion(profile: str = "full") -> Ablation:
    """Onto a blurred image, most relevant first: area under the label's probability.

    Higher is better. What has not been inserted is what least relevant first removes, so the
    curve is that of removal, read from its end. RISE blurs 224 pixels by a sigma of 5, which would
    hide nothing in images as small as the embedded ones: the blur here is `blur`, a strong one.
    """
    return Ablation(
        most_relevant_first=False,
        higher_is_better=True,
        removal="blur",
        measure="probability",
        most_images=IMAGES.get(profile),
    )


@protocol("road_morf")
def road_morf(profile: str = "full") -> Ablation:
    """As `morf`, but removed pixels are imputed from their neighbours; lower is better."""
    return Ablation(
        most_relevant_first=True,
        higher_is_better=False,
        removal="noisy_linear",
        at=ROAD_TENTHS,
        most_images=IMAGES.get(profile),
    )


@protocol("road_lerf")
def road_lerf(profile: str = "full") -> Ablation:
    """As `lerf`, but removed pixels are imputed from their neighbours; higher is better."""
    return Ablation(
        most_relevant_first=False,
        higher_is_better=True,
        removal="noisy_linear",
        at=ROAD_TENTHS,
        most_images=IMAGES.get(profile),
    )


@protocol("ids")
def ids(profile: str = "full") -> Ablation:
    """Mean probability of the label over removed fractions k / 32, k = 0 .. 31; higher is better.

    Least relevant first, by the map of the intact image.
    """
    return Ablation(
        most_relevant_first=False,
        higher_is_better=True,
        at=tuple(range(IDS_STEPS)),
        of=IDS_STEPS,
        measure="probability",
        area="mean",
        most_images=IDS_IMAGES.get(profile),
    )
