"""The papers' own suites: what each is made of, read from a TOML file of its name.

Nothing here looks for data or weights, or imports torch; `papers.arranging` does.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attrcheck.errors import AttrcheckError, suggest

FOLDER = Path(__file__).parent
WEIGHTS = "weights"
"""The folder of weights in a data folder: `weights/DATASET/MODEL.safetensors`."""


class SuiteError(AttrcheckError):
    """A suite that is not known, or for which nothing is there."""


@dataclass(frozen=True)
class Place:
    """Where a dataset may lie in a data folder: its spec, and a path without which it does not."""

    spec: str
    needs: str


@dataclass(frozen=True)
class Source:
    """A dataset of a suite: the places to look, best first, and how to get it.

    train: the path without which there is nothing to fine-tune or train on.
    """

    name: str
    places: tuple[Place, ...]
    get: str
    train: str = ""


@dataclass(frozen=True)
class Network:
    """A model of a suite, and the datasets that it is run on.

    spec: the architecture, as in `torchvision:resnet18`; none for one that a project registers.
    public: specs with public weights, by dataset; weights for others are trained, or given.
    get: how to come by what has no public weights and no architecture here.
    """

    name: str
    datasets: tuple[str, ...]
    spec: str = ""
    public: Mapping[str, str] = field(default_factory=dict)
    get: str = ""


@dataclass(frozen=True)
class Suite:
    """A named selection; the first fields are what options of the same names say otherwise."""

    name: str
    paper: str
    protocols: tuple[str, ...]
    methods: tuple[str, ...]
    checks: tuple[str, ...]
    sources: tuple[Source, ...]
    networks: tuple[Network, ...]
    profile: str = "full"
    images: int | None = None
    tuned: tuple[str, ...] = ()

    @property
    def pairs(self) -> list[tuple[Source, Network]]:
        """Dataset x model, those of one dataset side by side."""
        return [
            (source, network)
            for source in self.sources
            for network in self.networks
            if source.name in network.datasets
        ]

    @property
    def cases(self) -> list[str]:
        """The ids of all cases of the paper, whether or not their data are here."""
        return [
            f"{source.name}-{network.name}-{protocol}"
            for source, network in self.pairs
            for protocol in self.protocols
        ]

    def settings(self) -> dict[str, Any]:
        """Values of options: names joined by commas, profile and images."""
        joined = {
            "datasets": [source.name for source in self.sources],
            "models": [network.name for network in self.networks],
            "protocols": self.protocols,
            "methods": self.methods,
            "checks": self.checks,
        }
        texts = {kind: ",".join(names) for kind, names in joined.items()}
        return {**texts, "profile": self.profile, "images": self.images}


def names() -> list[str]:
    """The suites that there are."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


@functools.cache
def load(name: str) -> Suite:
    """The suite of this name."""
    if name not in names():
        raise SuiteError(f"no suite is called {name!r}; {suggest(name, names())}")
    table = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    sources = tuple(
        Source(
            key,
            tuple(Place(**place) for place in entry.pop("places")),
            **entry,
        )
        for key, entry in table.pop("datasets").items()
    )
    networks = tuple(
        Network(key, tuple(entry.pop("datasets")), **entry)
        for key, entry in table.pop("models").items()
    )
    lists = {key: tuple(value) for key, value in table.items() if isinstance(value, list)}
    return Suite(name, sources=sources, networks=networks, **{**table, **lists})
