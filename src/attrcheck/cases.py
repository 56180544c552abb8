"""Cases: dataset x model x protocol, the units of ranking, in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attrcheck.datasets import dataset as datasets
from attrcheck.models import ModelSpec
from attrcheck.models import model as models
from attrcheck.protocols import protocol as protocols
from attrcheck.registry import Registry, RegistryError, asks

SAMPLE = ("resnet", "vit")
"""The embedded models that stand for all of them where time is short."""


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
    def names(self) -> tuple[str, str, str]:
        """Dataset, model and protocol."""
        return self.dataset, self.model, self.protocol

    @property
    def pair(self) -> str:
        """Dataset and model: what is loaded, cached and resampled together."""
        return f"{self.dataset}-{self.model}"


def table(
    dataset: str = "", model: str = "", protocol: str = "", profile: str = "full"
) -> list[Case]:
    """The cases that comma-separated globs select, those of one dataset x model side by side.

    Without a protocol selected, those that the profile runs unasked; without a model, smoke takes
    but one of the embedded ones for each dataset, in turn. A case whose protocol needs what its
    dataset or model does not offer is left out.
    """
    judges = {name: protocols.get(name) for name in protocols.select(protocol)}
    needs = {
        name: set(spec.make(profile).needs)
        for name, spec in judges.items()
        if asks(protocol) or profile == "full" or spec.default
    }
    chosen_models = [models.get(name) for name in models.select(model)]
    pairs = []
    for place, data in enumerate(datasets.select(dataset)):
        known = [spec for spec in chosen_models if spec.knows(data)]
        if profile == "smoke" and not asks(model):
            known = _one_embedded(known, place)
        pairs += [(datasets.get(data), spec) for spec in known]
    if not pairs:
        raise RegistryError("none of the models selected knows any of the datasets selected")
    chosen = [
        Case(data.name, spec.name, judge)
        for data, spec in pairs
        for judge, needed in needs.items()
        if needed <= {*data.offers, *spec.offers}
    ]
    if not chosen:
        wanted = "; ".join(f"{name} needs {', '.join(sorted(n))}" for name, n in needs.items())
        raise RegistryError(f"no dataset and model selected offers what is needed: {wanted}")
    return chosen


def _one_embedded(known: list[ModelSpec], turn: int) -> list[ModelSpec]:
    """A user's own models, and one of the embedded: of the sample, in turn, if it can be."""
    names = [spec.name for spec in known if spec.embedded]
    sample = [SAMPLE[(turn + place) % len(SAMPLE)] for place in range(len(SAMPLE))]
    chosen = next((name for name in (*sample, *names) if name in names), None)
    return [spec for spec in known if not spec.embedded or spec.name == chosen]


def in_sample(model: str) -> bool:
    """Whether a model is one of the sample, or a user's own."""
    return model in SAMPLE or not models.get(model).embedded


def is_case(text: str) -> bool:
    """Whether this is the id of a case whose three names are known."""
    parts = text.split("-")
    kinds: tuple[Registry[Any], ...] = (datasets, models, protocols)
    return len(parts) == 3 and all(name in kind for name, kind in zip(parts, kinds, strict=True))
