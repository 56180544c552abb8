"""Verdicts: what the checks of a run say of each protocol and of each method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from attrcheck.engine.results import CheckResult, CheckStatus
from attrcheck.report.types import Failure, MethodVerdict, ProtocolTrust, Tally

STABILITY = ("measured_output", "attributed_output", "seed", "half_images")
CHANGES = ("other_removal", "other_grid", "checkpoints")
FIGURES = {
    "dummy_floor": "unreliability",
    **dict.fromkeys(STABILITY, "rank_correlation"),
    **dict.fromkeys(CHANGES, ""),
    "value_sensitivity": "hausdorff",
}
"""The figure that speaks for a check of protocols; where none is named, the mean of its numbers."""
DECIDED = ("passed", "failed", "known_failure", "finding")


def of_protocols(protocols: Iterable[str], checks: Sequence[CheckResult]) -> list[ProtocolTrust]:
    """One entry per protocol, the one to trust most first; `protocols` has one name per case.

    `trust` is the share of its items that passed, check by check, and then the mean over checks.
    A known failure is not a pass, what is not applicable does not count. Among equals, dummies
    decide.
    """
    cases = list(protocols)
    relevant = [result for result in checks if result.over in ("cases", "protocols")]
    names = dict.fromkeys([*cases, *(result.protocol for result in relevant)])
    verdicts = [
        _protocol(name, cases.count(name), [r for r in relevant if r.protocol == name])
        for name in names
    ]
    return sorted(verdicts, key=_least_trusted_last)


def of_methods(names: Sequence[str], checks: Sequence[CheckResult]) -> list[MethodVerdict]:
    """One entry per method that was checked, in the order given; the others follow."""
    relevant = [result for result in checks if result.over == "methods"]
    subjects = {result.subject for result in relevant}
    order = [name for name in dict.fromkeys([*names, *sorted(subjects)]) if name in subjects]
    return [_method(name, [r for r in relevant if r.subject == name]) for name in order]


def checkpoints(checks: Sequence[CheckResult]) -> list[tuple[str, str, float]]:
    """Rank correlations along the training of one model: case, share of the training, value."""
    return [
        (result.subject, name, value)
        for result in checks
        if result.check == "checkpoints"
        for name, value in result.figures.items()
        if name.startswith("at_") and isinstance(value, float)
    ]


def _protocol(name: str, cases: int, results: Sequence[CheckResult]) -> ProtocolTrust:
    by_check: dict[str, list[CheckResult]] = {}
    for result in results:
        by_check.setdefault(result.check, []).append(result)
    tallies = {check: _tally(items) for check, items in sorted(by_check.items())}
    shares = [tally.passed / tally.decided for tally in tallies.values() if tally.decided]
    return ProtocolTrust(name, cases, fmean(shares) if shares else None, tallies)


def _tally(results: Sequence[CheckResult]) -> Tally:
    figures = [figure for result in results if (figure := _figure(result)) is not None]
    return Tally(
        figure=fmean(figures) if figures else None,
        passed=_count(results, "passed"),
        decided=_count(results, *DECIDED),
        known_failures=_count(results, "known_failure"),
    )


def _figure(result: CheckResult) -> float | None:
    if result.check not in FIGURES:
        return None
    speaks = FIGURES[result.check]
    chosen = [value for name, value in result.figures.items() if speaks in ("", name)]
    numbers = [value for value in chosen if isinstance(value, int | float)]
    return fmean(numbers) if numbers else None


def _least_trusted_last(verdict: ProtocolTrust) -> tuple[float, float, str]:
    trust, tally = verdict.trust, verdict.checks.get("dummy_floor")
    floor = None if tally is None else tally.figure
    return 1.0 if trust is None else -trust, 1.0 if floor is None else floor, verdict.protocol


def _method(name: str, results: Sequence[CheckResult]) -> MethodVerdict:
    def failures(status: CheckStatus) -> list[Failure]:
        return [Failure(r.check, r.on, r.reason) for r in results if r.status == status]

    return MethodVerdict(
        method=name,
        passed=_count(results, "passed"),
        decided=_count(results, *DECIDED),
        failures=failures("failed"),
        known_failures=failures("known_failure"),
        not_applicable=_count(results, "not_applicable"),
    )


def _count(results: Sequence[CheckResult], *statuses: str) -> int:
    return sum(result.status in statuses for result in results)
