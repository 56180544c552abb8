"""Cases: dataset x model x protocol, the units of ranking, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterable

from attrcheck.contracts import Case, Protocol
from attrcheck.datasets import dataset as datasets
from attrcheck.models import model as models
from attrcheck.protocols import protocol as protocols
from attrcheck.registry import RegistryError, asks

SAMPLE = ("resnet", "vit")
"""The embedded models that stand for all of them where time is short, in turn."""


def table(
    dataset: str = "", model: str = "", protocol: str = "", profile: str = "full"
) -> list[Case]:
    """The cases that comma-separated globs select, those of one dataset x model side by side.

    Without a protocol selected, those that the profile runs unasked; without a model, smoke takes
    only one of the embedded ones per dataset, in turn. Without a dataset selected, those that the
    profile takes unasked. A case whose protocol needs what its dataset or model does not offer is
    left out.
    """
    needs = {
        name: set(protocols.get(name).make(profile).needs)
        for name in selected_protocols(protocol, profile)
    }
    chosen_data = [
        spec
        for spec in map(datasets.get, datasets.select(dataset))
        if asks(dataset) or profile == "full" or spec.default
    ]
    chosen_models = [models.get(name) for name in models.select(model)]
    pairs = [
        (data, spec) for data in chosen_data for spec in chosen_models if spec.knows(data.name)
    ]
    if not pairs:
        raise RegistryError(
            "none of the models selected knows any of the datasets selected: "
            f"{_some(one.name for one in chosen_models)} on {_some(d.name for d in chosen_data)}; "
            "for data of your own, select a model of your own"
        )
    chosen = [
        Case(data.name, spec.name, name)
        for data, spec in pairs
        for name, needed in needs.items()
        if needed <= {*data.offers, *spec.offers}
    ]
    if not chosen:
        wanted = "; ".join(f"{name} needs {', '.join(sorted(n))}" for name, n in needs.items())
        raise RegistryError(f"no dataset and model selected offers what is needed: {wanted}")
    return sample(chosen) if profile == "smoke" and not asks(model) else chosen


def _some(names: Iterable[str]) -> str:
    first, *others = names
    return f"{first} and {len(others)} more" if others else first


def selected_protocols(wanted: str, profile: str) -> list[str]:
    """The protocols that globs select; without any, those that the profile runs unasked."""
    every = asks(wanted) or profile == "full"
    return [name for name in protocols.select(wanted) if every or protocols.get(name).default]


def embedded(case: Case) -> bool:
    """Whether dataset and model ship with attrcheck: else it is a case of a user's own data."""
    return datasets.is_built_in(case.dataset) and models.get(case.model).embedded


def families(cases: Iterable[Case], profile: str) -> dict[str, str]:
    """The family of each protocol: siblings are of one class, or of classes that come from one.

    It is called after the file of that class, by the prefix of a metric of another library, or
    `own` if it is a user's.
    """
    return {name: _family(name, profile) for name in sorted({case.protocol for case in cases})}


def _family(name: str, profile: str) -> str:
    made = protocols.get(name).make(profile)
    while made.parts:  # of the family whose rows it scores
        made = next(iter(made.parts.values()))
    classes = type(made).__mro__
    [first, *_] = [kind for kind in reversed(classes) if issubclass(kind, Protocol)][1:]
    if first.__module__.startswith(f"{protocols.package}."):
        return first.__module__.rpartition(".")[2]
    spec = protocols.spec_of(name)
    return "own" if spec is None else spec.prefix


def sample(cases: list[Case]) -> list[Case]:
    """Those of a user's own models, and of one embedded model for each dataset, in turn.

    Datasets that are asked for come last, so that they change nobody's turn.
    """
    known: dict[str, dict[str, None]] = {}
    for case in cases:
        if models.get(case.model).embedded:
            known.setdefault(case.dataset, {})[case.model] = None
    chosen = set()
    for turn, data in enumerate(sorted(known, key=lambda name: not datasets.get(name).default)):
        names = known[data]
        first = SAMPLE[turn % len(SAMPLE) :] + SAMPLE[: turn % len(SAMPLE)]
        chosen.add((data, next(name for name in (*first, *names) if name in names)))
    return [
        case
        for case in cases
        if (case.dataset, case.model) in chosen or not models.get(case.model).embedded
    ]
