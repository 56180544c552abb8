"""What a case came to, kept in the store: scored anew only if something has changed since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from attrcheck.contracts import Case
from attrcheck.engine import keys
from attrcheck.engine.evaluation import Evaluation, Progress, announce, run_case
from attrcheck.engine.lab import Lab
from attrcheck.engine.resampling import condense
from attrcheck.engine.results import CaseResult, Provenance
from attrcheck.engine.wire import apart, plain, revive, together
from attrcheck.errors import MethodError
from attrcheck.protocols import protocol as protocols
from attrcheck.store.encoding import Entry, Key
from attrcheck.store.entries import UnsureError
from attrcheck.store.locking import BusyError


def score_case(
    lab: Lab,
    case: Case,
    progress: Progress = lambda text: None,
    tell: Progress = lambda text: None,
    before: Callable[[], None] = lambda: None,
) -> CaseResult:
    """The result of a case, condensed, from the store if nothing has changed.

    before: called if there is something to do. Where a method or a write fails the result is not
    kept, as the next run may do better.
    """
    evaluation = lab.evaluation(case)
    scored: list[CaseResult] = []

    def score() -> CaseResult:
        before()
        scored.append(condense(run_case(evaluation, progress, tell)))
        return scored[-1]

    def compute() -> Entry:
        result = score()
        if result.problems or any(one.status == "error" for one in result.outcomes.values()):
            raise UnsureError(result)
        return _entry(result)

    if (key := _key(lab, evaluation)) is None:
        return score()
    lab.store.open()
    try:
        entry = lab.store.obtain(f"results/{case.pair}/{case.protocol}", key, compute, wait=False)
    except UnsureError as unsure:
        return cast(CaseResult, unsure.value)
    except BusyError:  # another run is at it: there may be methods that it has not come to
        return score()
    if scored:
        return scored[-1]
    result = _result(entry)
    announce(evaluation, result.accuracy, tell)
    return result


def _key(lab: Lab, evaluation: Evaluation) -> Key | None:
    """All that decides a result; None where that is not known, as of a user's own protocol."""
    if protocols.is_own(evaluation.case.protocol) or evaluation.ended:
        return None
    settings = lab.settings
    try:
        observed = evaluation.key
    except MethodError:  # its outcome will say why
        return None
    accepted = settings.accept_accuracy
    return {**observed, **keys.of_verdict(lab.code, seed=settings.seed, accepted=accepted)}


def _entry(result: CaseResult) -> Entry:
    """A result as the store keeps it; whoever reads it finds that all of it was stored."""
    created = [replace(origin, stored=True) for origin in result.provenance]
    facts, arrays = apart(replace(result, provenance=[]))
    return Entry(arrays, {"result": facts, "created": plain(created)})


def _result(entry: Entry) -> CaseResult:
    """The inverse of `_entry`."""
    result = together(CaseResult, entry.info["result"], entry.arrays)
    return replace(result, provenance=revive(list[Provenance], entry.info["created"]))
