"""Run one check on one subject; a costly verdict is kept in the store like a record."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any

import torch

from attrcheck.attribution import MethodError
from attrcheck.bench import marks
from attrcheck.cases import Case, sample
from attrcheck.checks import Check, Verdict
from attrcheck.checks import check as checks
from attrcheck.fingerprint import digest, of_code, of_package
from attrcheck.guard import Snapshot
from attrcheck.lab import LEAST_IMAGES, Lab
from attrcheck.loading import Setup, load
from attrcheck.memory import limited_to
from attrcheck.methods import Method
from attrcheck.methods import method as methods
from attrcheck.protocols import protocol as protocols
from attrcheck.store import Entry

DECLARED_ON = "digits-resnet"
"""Where known failures of methods were seen, and must be seen again; elsewhere some do not fail."""


@dataclass(frozen=True)
class Subject:
    """What a check looks at: its name in the id of the item, and what `run` gets beside the lab."""

    name: str
    arguments: tuple[Any, ...] = ()
    protocol: str = ""


def subjects(check: Check, cases: list[Case], chosen: list[str], profile: str) -> Iterator[Subject]:
    """What a check is run on, in a fixed order; in smoke, all methods, and one of anything else."""
    every = _all_subjects(check, cases, chosen, profile)
    return islice(every, 1) if profile == "smoke" and check.over != "methods" else every


def _all_subjects(
    check: Check, cases: list[Case], chosen: list[str], profile: str
) -> Iterator[Subject]:

    def fits(protocol: str) -> bool:
        return check.fits(protocols.get(protocol).make(profile))

    fitting = {name for name in dict.fromkeys(case.protocol for case in cases) if fits(name)}
    asked = [case for case in cases if case.protocol in fitting]
    if check.sampled and profile != "full":
        asked = sample(asked)
    if check.over == "methods":
        yield from (Subject(name, (name,)) for name in chosen)
    elif check.over == "cases":
        yield from (Subject(case.id, (case,), case.protocol) for case in asked)
    elif check.over == "case_pairs":
        for one, other in combinations(asked, 2):
            if sum(a != b for a, b in zip(one.names, other.names, strict=True)) == 1:
                yield Subject(f"{one.id}-{other.id}", (one, other))
    elif check.over == "protocols":
        names = dict.fromkeys(case.protocol for case in asked)
        yield from (Subject(name, (name,), name) for name in names)
    elif check.over == "models":
        pairs = {case.pair: (case.dataset, case.model) for case in cases}
        yield from (Subject(pair, names) for pair, names in pairs.items())
    else:
        yield Subject("suite")


def run_check(check: str, subject: Subject, lab: Lab) -> dict[str, Any]:
    """Status `passed`, `failed`, `known_failure` or `not_applicable`, with figures and the reason.

    A failure that is known must happen, where there is but one item to see it in: a check that
    is then passed is a failure too.
    """
    torch.set_num_threads(lab.settings.threads)
    lab.store.open()
    judge = checks.get(check)
    if judge.over == "methods":
        return _of_method(judge, subject.name, lab)
    with limited_to(lab.settings.memory):
        if judge.over in ("protocols", "suite"):
            verdict = kept(judge, subject, lab)
        else:
            verdict = judge.run(lab, *subject.arguments)
    if judge.over == "cases" and (images := lab.bench(*subject.arguments).images) < LEAST_IMAGES:
        verdict = replace(verdict, passed=None, reason=f"{images} images are too few to judge by")
    why = judge.known_failures.get(subject.protocol or subject.name)
    if subject.protocol:
        why = why or protocols.get(subject.protocol).known_failures.get(judge.name)
    facts = {"check": judge.name, "over": judge.over, "subject": subject.name, "on": ""}
    judged = _judge(verdict, why, judge.over != "cases")
    known = "" if judge.sampled and lab.settings.profile != "full" else why  # may fail elsewhere
    return {**facts, "protocol": subject.protocol, "known": known or "", **judged}


def kept(check: Check, subject: Subject, lab: Lab) -> Verdict:
    """The verdict on a protocol, or on nothing in particular, from the store if it can be.

    What a user's own check depends on is not known here, so it is run every time.
    """
    if not check.run.__module__.startswith("attrcheck."):
        return check.run(lab, *subject.arguments)
    settings = lab.settings
    judge = protocols.get(subject.protocol).make(settings.profile) if subject.protocol else None
    code = (judge.code, repr(judge)) if judge else ""
    device = torch.device(settings.device).type
    fingerprint = digest(
        of_package(), code, settings.profile, settings.seed, torch.__version__, device
    )
    key = f"checks/{check.name}/{subject.name}"
    return _stored(lab, key, fingerprint, lambda: check.run(lab, *subject.arguments))


def _of_method(check: Check, name: str, lab: Lab) -> dict[str, Any]:
    """What is found on the first dataset x model to which it applies, those of the sample first."""
    method = methods.get(name)
    pairs = list({case.pair: case for case in lab.cases}.values())
    for case in dict.fromkeys([*sample(pairs), *pairs]):
        setup = lab.setup(case.dataset, case.model)
        if not method.applies(setup.network):
            break
    claims = dict(method.axioms), method.passes, lab.settings.seed
    fingerprint = digest(
        of_package(), setup.fingerprint, *marks(method), of_code(check.run), claims
    )

    def look() -> Verdict:
        with limited_to(lab.settings.memory):
            return _look(check, method, setup)

    verdict = _stored(lab, f"checks/{check.name}/{name}", fingerprint, look)
    return _told(check, method, setup, verdict)


def examine(check: Check, method: Method, setup: Setup) -> dict[str, Any]:
    """What a check of methods finds of one of them on a dataset x model."""
    return _told(check, method, setup, _look(check, method, setup))


def _look(check: Check, method: Method, setup: Setup) -> Verdict:
    if reason := method.applies(setup.network):
        return Verdict(None, {}, reason)
    before = Snapshot.of(setup.network)
    try:
        verdict = check.run(method, setup)
        spoilt = before.change(setup.network) is not None
    except MethodError as error:
        verdict, spoilt = Verdict(False, reason=str(error)), True
    if spoilt:
        load.cache_clear()  # `contract` says so; whoever comes next gets the model as it was
    return verdict


def _told(check: Check, method: Method, setup: Setup, verdict: Verdict) -> dict[str, Any]:
    facts = {"check": check.name, "over": "methods", "subject": method.name, "on": setup.pair}
    strict = setup.pair == DECLARED_ON
    why = _known(method).get(check.name)
    return {**facts, "protocol": "", "known": why or "", **_judge(verdict, why, strict)}


def _stored(lab: Lab, key: str, fingerprint: str, look: Callable[[], Verdict]) -> Verdict:
    def compute() -> Entry:
        verdict = look()
        passed = None if verdict.passed is None else bool(verdict.passed)
        figures = _plain(verdict.figures)
        return Entry({}, {"passed": passed, "figures": figures, "reason": verdict.reason})

    return Verdict(**lab.store.obtain(key, fingerprint, compute).info)


def _judge(verdict: Verdict, why: str | None, strict: bool) -> dict[str, Any]:
    facts = {"reason": verdict.reason, "figures": _plain(verdict.figures)}
    if verdict.passed is None:
        return {**facts, "status": "not_applicable"}
    if why is None or (verdict.passed and not strict):
        return {**facts, "status": "passed" if verdict.passed else "failed"}
    if verdict.passed:
        return {**facts, "status": "failed", "reason": f"passed, but is said to fail: {why}"}
    return {**facts, "status": "known_failure", "reason": f"{why} ({verdict.reason})"}


def _plain(figures: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON can hold them: what is not a number is None."""

    def plain(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, list | tuple):
            return [plain(each) for each in value]
        if isinstance(value, Mapping):
            return {name: plain(each) for name, each in value.items()}
        number = float(value)
        return number if math.isfinite(number) else None

    return {name: plain(value) for name, value in figures.items()}


def _known(method: Method) -> Mapping[str, str]:
    """The checks that a method is known to fail."""
    if method.dummy:
        return dict.fromkeys(("randomisation", "target_sensitivity"), "a dummy ignores the model")
    return method.known_failures
