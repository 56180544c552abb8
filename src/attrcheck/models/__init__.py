"""Models: a network for a dataset, its weights, and its preparation for attribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrcheck.registry import Registry, select
from attrcheck.training import WEIGHTS

if TYPE_CHECKING:
    from torch import nn

    from attrcheck.contracts import Dataset


@dataclass(frozen=True)
class ModelSpec:
    """A registered model: `build(dataset)` returns a network that maps [N, C, H, W] to logits.

    An embedded one is built without weights and gets those that ship with the package; any other
    comes with its own. `datasets` are comma-separated globs of the datasets that it knows.
    offers: `gradients`, unless it is said that the network cannot be differentiated. An embedded
    one also offers its `architecture`, to be trained anew.
    """

    name: str
    build: Callable[[Dataset], nn.Module]
    embedded: bool = False
    datasets: str = "*"
    offers: tuple[str, ...] = ("gradients",)

    def __post_init__(self) -> None:
        if self.embedded:
            object.__setattr__(self, "offers", (*self.offers, "architecture"))

    def knows(self, dataset: str) -> bool:
        """Whether there is such a model for this dataset."""
        if self.embedded:
            return (WEIGHTS / f"{dataset}-{self.name}").is_dir()
        return bool(select([dataset], [part.strip() for part in self.datasets.split(",")]))


model = Registry("model", ModelSpec, __name__)
