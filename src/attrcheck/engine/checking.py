"""Run one check on one subject; a costly verdict is kept in the store like a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch

from attrcheck.checks import check as checks
from attrcheck.checks import known
from attrcheck.contracts import Case, Check, Method, Verdict
from attrcheck.engine import keys
from attrcheck.engine.applying import refusal
from attrcheck.engine.attribution import not_applicable, unchanged
from attrcheck.engine.cases import embedded, sample
from attrcheck.engine.lab import Lab
from attrcheck.engine.pairs import Pair
from attrcheck.engine.results import CheckResult, CheckStatus, plain_figures
from attrcheck.engine.shards import key_of
from attrcheck.errors import MethodError
from attrcheck.methods import method as methods
from attrcheck.protocols import protocol as protocols
from attrcheck.store.fingerprints import of_code
from attrcheck.tensors.batching import limited_to

ASK_THE_MODEL = ("data_randomisation", "emprt", "randomisation", "smprt", "target_sensitivity")
"""Checks that what ignores the model must fail."""
LEAST_IMAGES = 10
"""With fewer, a ranking is luck: a check of the case shows its figures, and gives no verdict."""
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
    elif check.over == "protocols":
        names = dict.fromkeys(case.protocol for case in asked)
        yield from (Subject(name, (name,), name) for name in names)
    elif check.over == "models":
        pairs = {case.pair: (case.dataset, case.model) for case in cases}
        yield from (Subject(pair, names) for pair, names in pairs.items())
    else:
        yield Subject("suite")


def run_check(check: Check, subject: Subject, lab: Lab) -> CheckResult:
    """What a check finds of a subject.

    A known failure must happen, where there is only one item to see it in, which does not depend on
    the protocols of the run as that of a model does: passing is then a failure too.
    """
    torch.set_num_threads(lab.settings.threads)
    lab.store.open()
    if check.over == "methods":
        return _of_method(check, methods.get(subject.name), lab)
    with limited_to(lab.settings.memory, lab.settings.sharers):
        if check.over in ("protocols", "suite"):
            verdict = lab.verdict(check, subject.protocol)
        elif check.over == "cases":
            verdict = lab.verdict_on(check, *subject.arguments)
        else:
            verdict = check.run(lab, *subject.arguments)
    if check.over == "cases" and (images := _images(lab, subject)) < LEAST_IMAGES:
        verdict = replace(verdict, passed=None, reason=f"{images} images are too few for a verdict")
    why = _why(check, subject)
    # Where a check is sampled, the known failure may be one of the cases that are left out.
    stated = "" if check.sampled and lab.settings.profile != "full" else why
    status, reason = _status(verdict, why, strict=check.over in ("protocols", "suite"))
    if status == "failed" and _on_own_data(check, subject, lab.cases):
        status = "finding"
    return CheckResult(
        check=check.name,
        over=check.over,
        subject=subject.name,
        protocol=subject.protocol,
        known=stated or "",
        status=status,
        reason=reason,
        figures=plain_figures(verdict.figures),
    )


def examine(check: Check, method: Method, pair: Pair) -> CheckResult:
    """What a check of methods finds of one of them on a dataset x model."""
    return _told(check, method, pair, _look(check, method, pair))


def _of_method(check: Check, method: Method, lab: Lab) -> CheckResult:
    """What is found on the first dataset x model to which it applies, those of the sample first."""
    pairs = list({case.pair: case for case in lab.cases}.values())
    for case in dict.fromkeys([*sample(pairs), *pairs]):
        pair = lab.pair(case.dataset, case.model, lab.settings.images)
        if not refusal(method, pair, lab.store):
            break
    key = keys.of_verdict(
        lab.code,
        pair=pair.key,
        method=key_of(method),
        check=(of_code(check.run), keys.of_depends(check.depends, check.run)),
        claims=[dict(method.axioms), method.passes],
        seed=lab.settings.seed,
    )

    def look() -> Verdict:
        with limited_to(lab.settings.memory, lab.settings.sharers):
            return _look(check, method, pair)

    verdict = lab.stored_verdict(f"checks/{check.name}/{method.name}", key, look)
    return _told(check, method, pair, verdict)


def _look(check: Check, method: Method, pair: Pair) -> Verdict:
    if reason := not_applicable(method, pair):
        return Verdict(None, {}, reason)
    try:
        with unchanged(method, pair, pair.network, pair.original):
            return check.run(method, pair)
    except MethodError as error:
        pair.spoilt()  # whoever comes next gets the model as it was
        return Verdict(False, reason=str(error))


def _told(check: Check, method: Method, pair: Pair, verdict: Verdict) -> CheckResult:
    why = _why_method(check, method)
    status, reason = _status(verdict, why, strict=pair.name == DECLARED_ON)
    return CheckResult(
        check=check.name,
        over="methods",
        subject=method.name,
        on=pair.name,
        known=why or "",
        status=status,
        reason=reason,
        figures=plain_figures(verdict.figures),
    )


def _status(verdict: Verdict, why: str | None, strict: bool) -> tuple[CheckStatus, str]:
    """The status of an item and its reason; `why` it is known to fail, if it is."""
    if verdict.passed is None:
        return "not_applicable", verdict.reason
    if why is None or (verdict.passed and not strict):
        return "passed" if verdict.passed else "failed", verdict.reason
    if verdict.passed:
        return "failed", f"passed, but is said to fail: {why}"
    return "known_failure", f"{why} ({verdict.reason})"


def _on_own_data(check: Check, subject: Subject, cases: Iterable[Case]) -> bool:
    """Whether a built-in check asks if a protocol can be trusted on a user's data or models."""
    if not checks.is_built_in(check.name) or check.over == "suite":
        return False
    if check.over == "protocols":
        if protocols.is_own(subject.protocol):
            return False  # its author wants to know
        return not any(case.protocol == subject.protocol and embedded(case) for case in cases)
    if check.over == "cases":
        return not embedded(*subject.arguments)
    dataset, model = subject.arguments
    return not embedded(Case(dataset, model, protocol=""))


def _why(check: Check, subject: Subject) -> str | None:
    """Why a subject that is not a method is known to fail a check; None if it is not."""
    name = subject.protocol or subject.name
    why = check.known_failures.get(name)
    if why is None and subject.protocol:
        why = protocols.get(subject.protocol).known_failures.get(check.name)
    return known.reason(check.name, name) if why is None else why


def _why_method(check: Check, method: Method) -> str | None:
    """Why a method is known to fail a check; None if it is not."""
    if method.dummy:
        return "a dummy ignores the model" if check.name in ASK_THE_MODEL else None
    why = method.known_failures.get(check.name)
    return known.reason(check.name, method.name) if why is None else why


def _images(lab: Lab, subject: Subject) -> int:
    return lab.evaluation(*subject.arguments).images
