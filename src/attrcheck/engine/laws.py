"""Which laws bind what a run selects, and whether one holds: scenes come from hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import torch

from attrcheck import metarank
from attrcheck.engine.attribution import not_applicable
from attrcheck.engine.finding import find
from attrcheck.engine.lab import Lab
from attrcheck.engine.pairs import Forms, Pair, forms_of, pair_of
from attrcheck.engine.results import LawKind, LawResult
from attrcheck.engine.settings import AFFORDABLE
from attrcheck.errors import MethodError
from attrcheck.laws import fusion, removals, strategies
from attrcheck.laws import methods as of_methods
from attrcheck.laws import protocols as of_protocols
from attrcheck.laws.networks import KINDS, SPECIAL, Kind, Network
from attrcheck.laws.trying import BrokenLawError, Effort, attempt
from attrcheck.methods import method as methods
from attrcheck.protocols import protocol as protocols
from attrcheck.removal import removal as registered_removals

FUSION = "fusion"
"""The subject of the laws of Meta-Rank."""
LEAST = 3
"""Scenes for the costliest methods."""
MADE = 50
"""Random networks that are kept: as many as there are, for all laws that follow."""
PREFIX = "law_"


@dataclass(frozen=True)
class Bound:
    """A law that binds something: its kind, its name, and the name of the law."""

    kind: LawKind
    subject: str
    law: str


def bound(protocol_names: Iterable[str], method_names: Iterable[str], profile: str) -> list[Bound]:
    """The laws that bind these protocols and methods, every removal, and the fusion."""
    return [
        *_named("protocol", protocol_names, lambda name: _protocol_laws(name, profile)),
        *_named("removal", registered_removals, _removal_laws),
        *_named("method", method_names, _method_laws),
        *_named("fusion", [FUSION], lambda name: _by_name(fusion.laws_of(metarank.fuse))),
    ]


def _named(
    kind: LawKind, subjects: Iterable[str], laws: Callable[[str], Mapping[str, Any]]
) -> Iterator[Bound]:
    for subject in subjects:
        yield from (Bound(kind, subject, law) for law in laws(subject))


def run_law(wanted: Bound, lab: Lab, effort: Effort) -> LawResult:
    """Whether a law holds in all scenes that were tried."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # scenes are too small to share
    try:
        return _run(wanted, lab, effort)
    finally:
        torch.set_num_threads(threads)


def _run(wanted: Bound, lab: Lab, effort: Effort) -> LawResult:
    if wanted.kind == "method":
        return _of_method(wanted, lab, effort)
    name = wanted.subject
    if wanted.kind == "protocol":
        profile = lab.settings.profile
        law = partial(_protocol_laws(name, profile)[wanted.law], protocols.get(name).make(profile))
        return _tried(wanted, law, strategies.scenes(), effort)
    if wanted.kind == "removal":
        law = partial(_removal_laws(name)[wanted.law], registered_removals.get(name))
        return _tried(wanted, law, strategies.cuts(), effort)
    law = partial(_by_name(fusion.laws_of(metarank.fuse))[wanted.law], metarank.fuse)
    return _tried(wanted, law, strategies.tables(), effort)


def _of_method(wanted: Bound, lab: Lab, effort: Effort) -> LawResult:
    """A costly method is tried less often; one that no random network suits, never."""
    method = find(wanted.subject)
    base = _base(lab) if methods.is_own(method.name) else None

    def reason(kind: Kind) -> str | None:
        return not_applicable(method, _pair(Network(kind), base))

    kinds: list[Kind] = [kind for kind in KINDS if not reason(kind)]
    kinds = kinds or [kind for kind in SPECIAL if not reason(kind)]
    if not kinds:
        return replace(_result(wanted, 0), status="not_applicable", reason=str(reason("plain")))
    law = _method_laws(method.name)[wanted.law]

    def hold(network: Network) -> None:
        law(method, _pair(network, base))

    share = AFFORDABLE / max(method.cost, AFFORDABLE)
    examples = min(effort.examples, max(LEAST, round(effort.examples * share)))
    return _tried(wanted, hold, strategies.networks(kinds), replace(effort, examples=examples))


def _base(lab: Lab) -> Pair | None:
    """A pair that processes of methods can load, if there are any."""
    if lab.loader.remote is None or not lab.cases:
        return None
    case = lab.cases[0]
    return lab.pair(case.dataset, case.model, 1)


@lru_cache(maxsize=MADE)
def _forms(scene: Network) -> Forms:
    return forms_of(scene.build(), scene.data(), "cpu")


def _pair(scene: Network, base: Pair | None) -> Pair:
    """A random network and its images, as a method gets them."""
    forms, data = _forms(replace(scene, count=1)), scene.data()
    if base is None:
        return replace(pair_of(forms.built, data, "random", "cpu"), forms=forms)
    return base.altered(
        repr(scene),
        dataset=data,
        model="random",
        network=forms.network,
        original=forms.original,
        predictor=forms.predictor,
    )


def _tried(wanted: Bound, law: Callable[[Any], None], scenes: Any, effort: Effort) -> LawResult:
    result = _result(wanted, effort.examples)
    try:
        attempt(law, scenes, effort)
    except BrokenLawError as broken:
        _forms.cache_clear()  # whoever comes next gets networks that nobody has changed
        seed = str(effort.seed)
        why, scene = broken.reason, broken.scene
        return replace(result, status="broken", reason=why, scene=scene, seed=seed)
    return result


def _result(wanted: Bound, examples: int) -> LawResult:
    return LawResult(wanted.kind, wanted.subject, wanted.law, "held", examples=examples)


def _protocol_laws(name: str, profile: str) -> dict[str, of_protocols.Law]:
    return _by_name(of_protocols.laws_of(protocols.get(name).make(profile)))


def _removal_laws(name: str) -> dict[str, removals.Law]:
    return _by_name(removals.laws_of(registered_removals.get(name)))


def _method_laws(name: str) -> dict[str, of_methods.Law]:
    """Those of a method; one that cannot be loaded fails at the first, and is not asked more."""
    try:
        method = find(name)
    except MethodError:
        return _by_name([of_methods.law_every_image_has_a_map])
    return _by_name(of_methods.laws_of(method))


def _by_name(laws: Iterable[Callable[..., None]]) -> dict[str, Any]:
    return {law.__name__.removeprefix(PREFIX): law for law in laws}
