"""Protocols, the judges: observe what the model does for each image, then reduce to a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from attrcheck.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

Rows: TypeAlias = "dict[str, NDArray[np.generic]]"
"""What was observed, by name; the first axis of every array is the image."""


@dataclass(frozen=True)
class Batch:
    """Some images of a case: normalised, with labels and a seed each to break ties.

    intact: `correct`, `probability` and `logit` of the images as they are, observed once.
    masks: the ground truth [N, H, W], where the dataset has one.
    """

    images: Tensor
    labels: Tensor
    seeds: tuple[int, ...]
    intact: Rows
    masks: Tensor | None = None


@dataclass(frozen=True)
class Reduction:
    """A score, the curve behind it and, where the score is their mean, the scores of the images.

    A score that is not defined is NaN: it is left out of the ranking, and counted.
    """

    score: float
    curve: tuple[list[float], list[float]] | None = None
    per_image: NDArray[np.float64] | None = None


class Protocol(ABC):
    """Two pure functions: `observe` never looks across images, `reduce` never sees the model.

    Subclasses are frozen dataclasses: their fields are the settings, and part of every record.
    """

    higher_is_better: bool

    @property
    def shared_key(self) -> str:
        """Protocols with the same key share what `shared` observes; empty: nothing to share."""
        return ""

    @property
    def code(self) -> str:
        """A fingerprint of the code that observes."""
        from attrcheck.fingerprint import of_code

        return of_code(type(self))

    def shared(self, model: nn.Module, batch: Batch) -> Rows:
        """Rows that do not depend on the maps: observed once for all methods."""
        return {}

    @abstractmethod
    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """Rows of what the model does when `maps` [N, H, W] guide the removal."""

    @abstractmethod
    def reduce(self, rows: Rows) -> Reduction:
        """The score of all rows together."""


@dataclass(frozen=True)
class ProtocolSpec:
    """A registered protocol: a name and the function that makes it."""

    name: str
    build: Callable[[], Protocol]


protocol = Registry("protocol", ProtocolSpec, __name__)
