"""`attrcheck list`: what is registered, and what is known of it."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrcheck.contracts import Method
from attrcheck.datasets import dataset as datasets
from attrcheck.engine.settings import PROFILES, affords
from attrcheck.errors import AttrcheckError
from attrcheck.models import ModelSpec
from attrcheck.models import model as models
from attrcheck.plugin.selection import KINDS
from attrcheck.protocols import ProtocolSpec
from attrcheck.registry import Registry, summary
from attrcheck.removal import removal
from attrcheck.report.text import Align, plain_table, table
from attrcheck.training.weights import read_about

if TYPE_CHECKING:
    from torch import nn

    from attrcheck.cli.parsing import Commands

FAMILIES = (
    *("gradient", "propagation", "cam", "perturbation", "transformer", "self-explaining", "own"),
    "dummy",
)
"""Of methods, in the order of their list."""
LISTED: dict[str, Registry[Any]] = {**KINDS, "removals": removal}


def add(commands: Commands) -> None:
    """`list`."""
    lister = commands.add_parser("list", help="print what is registered, one line each")
    lister.add_argument("kind", choices=list(LISTED))
    lister.add_argument("--markdown", action="store_true", help="as a Markdown table")
    lister.set_defaults(run=list_kind)


def list_kind(chosen: argparse.Namespace) -> None:
    """Print the names of a kind, with what is known of each and the first line of its docstring."""
    registry = LISTED[chosen.kind]
    missing: dict[str, str] = {}
    things = [thing for name in registry if (thing := _got(registry, name, missing)) is not None]
    if chosen.kind == "methods":
        things.sort(key=lambda method: (_place(method.family), method.name))
    facts = FACTS.get(chosen.kind, {})
    rows = [
        [thing.name, *(fact(thing) for fact in facts.values()), summary(thing)] for thing in things
    ]
    rows += [[name, *("" for _ in facts), why] for name, why in missing.items()]
    headers = [chosen.kind[:-1], *facts, "what it is"]
    align: list[Align] = ["left"] * len(headers)
    show = table if chosen.markdown else plain_table
    print(show(rows, headers, align))


def _got(registry: Registry[Any], name: str, missing: dict[str, str]) -> Any:
    """What is registered; None, with the reason, for a name whose files are not there."""
    try:
        return registry.get(name)
    except AttrcheckError as error:
        missing[name] = f"missing: {error}"
        return None


def passes(method: Method) -> str:
    """What a map costs, e.g. `50 fwd + 50 bwd`."""
    counted = zip(method.passes, ("fwd", "bwd"), strict=True)
    return " + ".join(f"{count} {kind}" for count, kind in counted if count) or "none"


def applies_to(method: Method) -> str:
    """The embedded models on which a method is right, or those on which it is not, if fewer."""
    networks = _embedded()
    fit = [name for name, network in networks.items() if not method.not_applicable(network)]
    misfit = [name for name in networks if name not in fit]
    if not misfit:
        return "all"
    return ", ".join(fit) if len(fit) <= len(misfit) else f"all but {', '.join(misfit)}"


@functools.cache
def _embedded() -> dict[str, nn.Module]:
    """Every embedded model, prepared; weights do not matter to what applies."""
    from attrcheck.graph.preparing import prepare

    data = datasets.get("digits").load()
    specs = [models.get(name) for name in models]
    return {spec.name: prepare(spec.network(data)) for spec in specs if spec.embedded}


def images(spec: ProtocolSpec) -> str:
    """How many images it scores in the default profile."""
    if not spec.default:
        return "if asked"
    return str(spec.make("default").most_images or PROFILES["default"])


def learnt(spec: ModelSpec) -> dict[str, dict[str, Any]]:
    """By dataset, what is on record about the weights of an embedded model."""
    known = [name for name in datasets if spec.embedded and spec.knows(name)]
    return {name: read_about(name, spec.name) for name in known}


def parameters(spec: ModelSpec) -> str:
    """Of an embedded model, to a thousand; the first and the last layer depend on the dataset."""
    counts = [about["parameters"] for about in learnt(spec).values()]
    return f"{round(max(counts), -3):,}" if counts else ""


def accuracy(spec: ModelSpec) -> str:
    """On the held-out images of every dataset that an embedded model knows."""
    return ", ".join(f"{name} {about['accuracy']:.1%}" for name, about in learnt(spec).items())


FACTS: dict[str, dict[str, Callable[[Any], str]]] = {
    "datasets": {"offers": lambda spec: ", ".join(spec.offers)},
    "models": {"parameters": parameters, "accuracy": accuracy},
    "methods": {
        "family": lambda method: method.family,
        "passes": passes,
        "runs": lambda method: "" if affords(method) else "if asked",
        "applies to": applies_to,
        "reference": lambda method: method.reference,
    },
    "protocols": {
        "better": lambda spec: "higher" if spec.make().higher_is_better else "lower",
        "needs": lambda spec: ", ".join(spec.make().needs),
        "images": images,
    },
    "checks": {
        "over": lambda check: check.over.replace("_", " "),
        "runs": lambda check: "" if check.default else "if asked",
    },
}
"""What is printed of a kind beside names and summaries."""


def _place(family: str) -> int:
    return FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)
