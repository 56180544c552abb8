"""Cases: dataset x model x protocol, the units of ranking, in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attrcheck.datasets import dataset as datasets
from attrcheck.models import model as models
from attrcheck.protocols import protocol as protocols
from attrcheck.registry import Registry, RegistryError


@dataclass(frozen=True)
class Case:
    """One protocol on one model for one dataset; ranks all methods."""

    dataset: str
    model: str
    protocol: str

    @classmethod
    def of(cls, text: str) -> Case:
        """The case with this id."""
        return cls(*text.split("-"))

    @property
    def id(self) -> str:
        """Names joined by hyphens, which no name contains."""
        return f"{self.dataset}-{self.model}-{self.protocol}"

    @property
    def pair(self) -> str:
        """Dataset and model: what is loaded, cached and resampled together."""
        return f"{self.dataset}-{self.model}"


def table(dataset: str = "", model: str = "", protocol: str = "") -> list[Case]:
    """The cases that comma-separated globs select, those of one dataset x model side by side."""
    chosen_protocols = protocols.select(protocol)
    chosen_models = [models.get(name) for name in models.select(model)]
    chosen = [
        Case(data, spec.name, judge)
        for data in datasets.select(dataset)
        for spec in chosen_models
        if spec.knows(data)
        for judge in chosen_protocols
    ]
    if not chosen:
        raise RegistryError("none of the models selected knows any of the datasets selected")
    return chosen


def is_case(text: str) -> bool:
    """Whether this is the id of a case whose three names are known."""
    parts = text.split("-")
    kinds: tuple[Registry[Any], ...] = (datasets, models, protocols)
    return len(parts) == 3 and all(name in kind for name, kind in zip(parts, kinds, strict=True))
