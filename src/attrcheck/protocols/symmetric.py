"""Symmetric relevance gain: both orders of removal against each other (Bluecher et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Batch, Protocol, Reduction, Rows
from attrcheck.protocols import ProtocolSpec, protocol
from attrcheck.protocols.ablation import TENTHS, Ablation, Emptied, Measure
from attrcheck.protocols.responses import named, standard_errors
from attrcheck.removal import removal as removals


@dataclass(frozen=True)
class SymmetricGain(Protocol):
    """Area under the label's probability, least relevant first, minus that, most relevant first.

    A removal that drives images out of the model's domain lowers both curves, and what it lowers
    both by is gone from the difference. In [-1, 1], 0 for a random map in the mean, higher is
    better. The rows are those of `lerf` and `morf`.
    """

    removal: str = "mean"
    at: tuple[int, ...] = TENTHS
    of: int = 10
    measure: Measure = "probability"
    most_images: int | None = None
    higher_is_better = True
    sees = "order"

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Those of a difference of areas."""
        return (-np.inf, np.inf) if self.measure == "logit" else (-1.0, 1.0)

    @property
    def parts(self) -> Mapping[str, Ablation]:
        """Both orders."""
        return {"lerf": self._ordered(most_first=False), "morf": self._ordered(most_first=True)}

    @property
    def shared(self) -> Emptied | None:
        """Both orders end alike."""
        return self.parts["lerf"].shared

    @property
    def observation(self) -> str:
        """Both of its parts."""
        return ".and.".join(part.observation for part in self.parts.values())

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """What the parts observe, side by side."""
        parts = self.parts.items()
        return named({name: part.observe(model, batch, maps, shared) for name, part in parts})

    def reduce(self, rows: Rows) -> Reduction:
        """The difference, image by image."""
        gains = self._values(rows, "lerf") - self._values(rows, "morf")
        weights, total = self.parts["lerf"].weights()
        per_image = gains @ weights / total
        return Reduction(
            score=float(per_image.mean()),
            curve=([k / self.of for k in self.at], gains.mean(axis=0).tolist()),
            per_image=per_image,
            errors=standard_errors(gains),
        )

    def _values(self, rows: Rows, part: str) -> NDArray[np.float64]:
        return rows[f"{part}_{self.measure}"].astype(np.float64)

    def _ordered(self, most_first: bool) -> Ablation:
        return Ablation(
            most_relevant_first=most_first,
            higher_is_better=not most_first,
            removal=self.removal,
            at=self.at,
            of=self.of,
            measure=self.measure,
        )


@protocol("srg", default=False)
def srg(removal: str = "mean") -> SymmetricGain:
    """Area under the probability by `lerf` minus that by `morf`, from their rows."""
    return SymmetricGain(removal)


def resolve_srg(removal: str) -> ProtocolSpec:
    """`srg:blur` is `srg` with another removal."""
    known = removals.get(removal).name
    return ProtocolSpec(f"srg:{known}", lambda: srg(known))
