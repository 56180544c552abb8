"""Run one check of one method; its verdict is kept in the store like a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from attrcheck.attribution import MethodError
from attrcheck.cases import Case
from attrcheck.checks import Check, Verdict
from attrcheck.checks import check as checks
from attrcheck.fingerprint import digest, of_code
from attrcheck.loading import Setup, load
from attrcheck.memory import limited_to
from attrcheck.methods import Method
from attrcheck.methods import method as methods
from attrcheck.settings import Settings
from attrcheck.store import Entry, Store


def run_check(
    check: str, method: str, cases: list[Case], settings: Settings, store: Store
) -> dict[str, Any]:
    """What `examine` finds on the first dataset x model to which the method applies."""
    torch.set_num_threads(settings.threads)
    store.open()
    subject, judge = methods.get(method), checks.get(check)
    for case in {case.pair: case for case in cases}.values():
        setup = load(case.dataset, case.model, settings.images, settings.device)
        if not subject.applies(setup.network):
            break
    fingerprint = digest(
        setup.fingerprint, method, of_code(subject.attribute), of_code(judge.run), settings.seed
    )

    def compute() -> Entry:
        with limited_to(settings.memory):
            return Entry({}, examine(judge, subject, setup))

    return store.obtain(f"checks/{check}/{method}", fingerprint, compute).info


def examine(check: Check, method: Method, setup: Setup) -> dict[str, Any]:
    """Status `passed`, `failed`, `known_failure` or `not_applicable`, with figures and the reason.

    A failure that the method declares must happen: a check that it then passes is a failure too.
    """
    facts: dict[str, Any] = {"check": check.name, "method": method.name, "on": setup.pair}
    if reason := method.applies(setup.network):
        return {**facts, "status": "not_applicable", "reason": reason, "figures": {}}
    try:
        verdict = check.run(method, setup)
    except MethodError as error:
        load.cache_clear()  # the method may have spoilt the model for the next one
        verdict = Verdict(False, reason=str(error))
    facts |= {"reason": verdict.reason, "figures": verdict.figures}
    why = _known(method).get(check.name)
    if why is None:
        return {**facts, "status": "passed" if verdict.passed else "failed"}
    if verdict.passed:
        return {**facts, "status": "failed", "reason": f"passed, but is said to fail: {why}"}
    return {**facts, "status": "known_failure", "reason": f"{why} ({verdict.reason})"}


def _known(method: Method) -> Mapping[str, str]:
    """The checks that a method is known to fail."""
    if method.dummy:
        return dict.fromkeys(("randomisation", "target_sensitivity"), "a dummy ignores the model")
    return method.known_failures
