"""Deleting one patch: does a map rank the cells of a grid as their deletion does?

In-domain single deletion asks a model that was fine-tuned with deleted cells, so that one is
nothing new to it (Hesse et al. 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.contracts import Batch, Need, Protocol, Reduction, Rows, Shared, Tuning
from attrcheck.protocols import protocol
from attrcheck.protocols.responses import losses
from attrcheck.ranks import spearman
from attrcheck.removal import removal as removals
from attrcheck.tensors.cells import cell_masks, cell_size
from attrcheck.tensors.transfers import exact

TIE = 1e-9
"""Relative to a map's largest cell: sums of equal pixels differ by rounding alone."""
IN_DOMAIN_IMAGES = {"default": 20}
"""Images per case, by profile; all where none are given: a fine-tuned model needs its own maps."""


@dataclass(frozen=True)
class Drops(Shared):
    """What the model loses with each cell of a grid: intact minus deleted, [N, grid * grid]."""

    grid: int
    removal: str

    @property
    def key(self) -> str:
        """One entry per grid and removal."""
        return f"drops.{self.removal}.{self.grid}"

    def observe(self, model: nn.Module, batch: Batch) -> Rows:
        """Drops of the label's logit and probability; one pass per cell."""
        remove = removals.get(self.removal).of(batch.images, batch.seeds)
        cells = cell_masks(self.grid, batch.images).unbind()
        kept = (remove(~cell.expand(len(batch.images), -1, -1)) for cell in cells)
        return {f"drop_{name}": rows for name, rows in losses(model, batch, kept).items()}


@dataclass(frozen=True)
class SingleDeletion(Protocol):
    """Mean over images of Spearman's correlation between a cell's attribution and its drop.

    In [-1, 1], higher is better. Attribution is the sum of the map over the cell, in float64; an
    image on which either side is constant has no score. `measure` is the output that drops.
    """

    grid: int = 4
    removal: str = "mean"
    measure: Literal["logit", "probability"] = "logit"
    tuning: Tuning | None = None
    most_images: int | None = None
    higher_is_better = True
    bounds = (-1.0, 1.0)

    @property
    def needs(self) -> tuple[Need, ...]:  # type: ignore[override]
        """Fine-tuning needs something to learn from."""
        return ("training",) if self.tuning else ()

    @property
    def shared(self) -> Drops:
        """No drop depends on a map."""
        return Drops(self.grid, self.removal)

    @property
    def observation(self) -> str:
        """Both outputs are observed, whichever is measured."""
        kind = "idsds" if self.tuning else "sds"
        return f"{kind}.{self.removal}.{self.grid}"

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """The attribution of every cell beside its drops, [N, cells]; no pass of the model."""
        size = cell_size(self.grid, batch.images)
        cells = F.avg_pool2d(exact(maps)[:, None], size, divisor_override=1)
        return {"attribution": cells.flatten(1).cpu().numpy(), **shared}

    def reduce(self, rows: Rows) -> Reduction:
        """Spearman's correlation, image by image."""
        return Reduction.mean(spearman(rows["attribution"], rows[f"drop_{self.measure}"], TIE))


def in_domain(profile: str, grid: int = 4, removal: str = "mean") -> SingleDeletion:
    """Single deletion on the model, fine-tuned with cells of the same grid and baseline deleted."""
    return SingleDeletion(
        grid, removal, tuning=Tuning(grid, removal), most_images=IN_DOMAIN_IMAGES.get(profile)
    )


@protocol("sds")
def sds() -> SingleDeletion:
    """Rank correlation of the cells' attributions with the drops of the logit; higher is better.

    One cell of a 4x4 grid at a time becomes the dataset's mean.
    """
    return SingleDeletion()


@protocol("sds_2", default=False)
def sds_2() -> SingleDeletion:
    """As `sds`, with 4 cells."""
    return SingleDeletion(grid=2)


@protocol("sds_8", default=False)
def sds_8() -> SingleDeletion:
    """As `sds`, with 64 cells."""
    return SingleDeletion(grid=8)


@protocol("sds_blur", default=False)
def sds_blur() -> SingleDeletion:
    """As `sds`, but a deleted cell is blurred."""
    return SingleDeletion(removal="blur")


@protocol("sds_random", default=False)
def sds_random() -> SingleDeletion:
    """As `sds`, but a deleted cell becomes U(-1, 1)."""
    return SingleDeletion(removal="uniform")


@protocol("idsds")
def idsds(profile: str = "full") -> SingleDeletion:
    """As `sds`, on the model fine-tuned so that a deleted cell is in its domain."""
    return in_domain(profile)


@protocol("idsds_2", default=False)
def idsds_2(profile: str = "full") -> SingleDeletion:
    """As `idsds`, with 4 cells."""
    return in_domain(profile, grid=2)


@protocol("idsds_8", default=False)
def idsds_8(profile: str = "full") -> SingleDeletion:
    """As `idsds`, with 64 cells."""
    return in_domain(profile, grid=8)


@protocol("idsds_blur", default=False)
def idsds_blur(profile: str = "full") -> SingleDeletion:
    """As `idsds`, but a deleted cell is blurred."""
    return in_domain(profile, removal="blur")


@protocol("idsds_random", default=False)
def idsds_random(profile: str = "full") -> SingleDeletion:
    """As `idsds`, but a deleted cell becomes U(-1, 1)."""
    return in_domain(profile, removal="uniform")
