"""Run one check of one method; its verdict is kept in the store like a record."""

from __future__ import annotations

from typing import Any

import torch

from attrcheck.attribution import MethodError
from attrcheck.cases import Case
from attrcheck.checks import check as checks
from attrcheck.fingerprint import digest, of_code
from attrcheck.loading import load
from attrcheck.methods import method as methods
from attrcheck.settings import Settings
from attrcheck.store import Entry, Store


def run_check(
    check: str, method: str, case: Case, settings: Settings, store: Store
) -> dict[str, Any]:
    """Status `passed`, `failed` or `not_applicable`, with figures and the reason."""
    torch.set_num_threads(settings.threads)
    store.open()
    setup = load(case.dataset, case.model, settings.images, settings.device)
    subject, judge = methods.get(method), checks.get(check)
    facts = {"check": check, "method": method, "on": case.pair, "figures": {}}
    if reason := subject.applies(setup.network):
        return {**facts, "status": "not_applicable", "reason": reason}

    def compute() -> Entry:
        verdict = judge.run(subject, setup)
        status = "passed" if verdict.passed else "failed"
        return Entry({}, {"status": status, "figures": verdict.figures, "reason": verdict.reason})

    fingerprint = digest(
        setup.fingerprint, method, of_code(subject.attribute), of_code(judge.run), settings.seed
    )
    try:
        return {**facts, **store.obtain(f"checks/{check}/{method}", fingerprint, compute).info}
    except MethodError as error:
        load.cache_clear()  # the method may have spoilt the model for the next one
        return {**facts, "status": "failed", "reason": str(error)}
