"""Grids of which the network sees one cell: what a map shows outside of it is wrong by construction
(Rao et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from torch import Tensor, nn

from attrcheck.contracts import Batch, Disconnection, Protocol, Reduction, Rows
from attrcheck.protocols import protocol
from attrcheck.protocols.grids import IMAGES, Grid, Pool
from attrcheck.protocols.responses import named
from attrcheck.store.seeds import derive

Corner: TypeAlias = Literal["first", "last"]


@dataclass(frozen=True)
class Disconnected(Grid):
    """The share of positive attribution inside the only cell of a grid that the network classifies.

    The image is in a corner of the grid, another one of its class in the opposite corner, others of
    other classes are between them. The network has a head for the cell of the image, and no other
    one. cut: `full`: each cell goes through the network by itself, so that nothing outside of the
    cell can matter; `part`: the grid goes through it up to its last stage, and the head sees what
    lies there in the cell. corner: None: each in turn, and the mean of both.
    """

    cut: Literal["full", "part"] = "full"
    corner: Corner | None = None

    @property
    def parts(self) -> Mapping[str, Protocol]:
        """Both corners."""
        corners: tuple[Corner, ...] = () if self.corner else ("first", "last")
        return {corner: replace(self, corner=corner) for corner in corners}

    @property
    def observation(self) -> str:
        """The corners differ in all that is observed."""
        return f"disconnected.{self.cut}.{self.side}.{self.confidence:g}.{self.corner}"

    @property
    def _cell(self) -> int:
        return self.side**2 - 1 if self.corner == "last" else 0

    def fill(
        self, image: Tensor, name: str, label: int, pool: Pool
    ) -> tuple[Sequence[Tensor], int]:
        """Opposite corners of one class."""
        rng = np.random.default_rng(derive(0, "disconnected", name))
        other = pool.one_of(label, rng, but=name)
        between = pool.others(label, self.side**2 - 2, rng)
        cells = [image, *between, image if other is None else other]
        return cells[:: -1 if self._cell else 1], self._cell

    @property
    def disconnection(self) -> Disconnection:
        """A head for the cell of the image."""
        return Disconnection(self.side, self._cell, apart=self.cut == "full")

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """The share in each grid, of each corner where both are scored."""
        if not self.parts:
            return super().observe(model, batch, maps, shared)
        parts = self.parts.items()
        return named({name: part.observe(model, batch, maps, shared) for name, part in parts})

    def reduce(self, rows: Rows) -> Reduction:
        """The mean over images; of an image, that over the corners that have a score."""
        if not self.parts:
            return super().reduce(rows)
        scores = np.stack([rows[f"{corner}_score"] for corner in self.parts]).astype(np.float64)
        known = np.isfinite(scores)
        with np.errstate(invalid="ignore"):
            return Reduction.mean(np.where(known, scores, 0).sum(axis=0) / known.sum(axis=0))


@protocol("difull", default=False)
def difull(profile: str = "full") -> Disconnected:
    """The share of positive attribution in the cell of a grid that alone can influence the logits.

    Each cell goes through the network by itself; higher is better.
    """
    return Disconnected(most_images=IMAGES.get(profile))


@protocol("dipart", default=False)
def dipart(profile: str = "full") -> Disconnected:
    """As `difull`, but only the head is by itself: the cells meet at their edges before it."""
    return Disconnected(most_images=IMAGES.get(profile), cut="part")
