"""Verdicts: what the checks of a run say of each judge and of each method, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

Results = Sequence[dict[str, Any]]
"""What checks found: check, over, subject, on, protocol, known, status, reason and figures."""

STABILITY = ("measured_output", "attributed_output", "seed", "half_images")
CHANGES = ("other_removal", "other_grid", "checkpoints")
FIGURES = {
    "dummy_floor": "unreliability",
    **dict.fromkeys(STABILITY, "rank_correlation"),
    **dict.fromkeys(CHANGES, ""),
    "value_sensitivity": "hausdorff",
}
"""The figure that speaks for a check of judges; where none is named, the mean of its numbers."""
JUDGED = ("passed", "failed", "known_failure")


def judges(protocols: Iterable[str], checks: Results) -> list[dict[str, Any]]:
    """One entry a protocol, the one to trust most first.

    `trust` is the share of its items that passed, check by check, and then the mean over checks.
    A known failure is no pass, what is not applicable does not count. Among equals, dummies decide.
    """
    cases = list(protocols)
    of_judges = [result for result in checks if result["over"] in ("cases", "protocols")]
    names = dict.fromkeys([*cases, *(result["protocol"] for result in of_judges)])
    found = [
        _judge(name, cases.count(name), [r for r in of_judges if r["protocol"] == name])
        for name in names
    ]
    return sorted(found, key=_least_trusted_last)


def methods(names: Sequence[str], checks: Results) -> list[dict[str, Any]]:
    """One entry a method that was checked, in the order given; the others behind."""
    of_methods = [result for result in checks if result["over"] == "methods"]
    subjects = {result["subject"] for result in of_methods}
    order = [name for name in dict.fromkeys([*names, *sorted(subjects)]) if name in subjects]
    return [_method(name, [r for r in of_methods if r["subject"] == name]) for name in order]


def checkpoints(checks: Results) -> list[tuple[str, str, float]]:
    """Rank correlations along the training of one model: case, share of the training, value."""
    return [
        (result["subject"], name, value)
        for result in checks
        if result["check"] == "checkpoints"
        for name, value in result["figures"].items()
        if name.startswith("at_") and isinstance(value, float)
    ]


def _judge(name: str, cases: int, results: Results) -> dict[str, Any]:
    by_check: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        by_check.setdefault(result["check"], []).append(result)
    found = {check: _tally(check, own) for check, own in sorted(by_check.items())}
    shares = [each["passed"] / each["judged"] for each in found.values() if each["judged"]]
    trust = fmean(shares) if shares else None
    return {"protocol": name, "cases": cases, "trust": trust, "checks": found}


def _tally(check: str, results: Results) -> dict[str, Any]:
    figures = [figure for result in results if (figure := _figure(check, result)) is not None]
    return {
        "figure": fmean(figures) if figures else None,
        "passed": sum(result["status"] == "passed" for result in results),
        "judged": sum(result["status"] in JUDGED for result in results),
        "known_failures": sum(result["status"] == "known_failure" for result in results),
    }


def _figure(check: str, result: dict[str, Any]) -> float | None:
    if check not in FIGURES:
        return None
    chosen = [v for k, v in result["figures"].items() if FIGURES[check] in ("", k)]
    numbers = [value for value in chosen if isinstance(value, int | float)]
    return fmean(numbers) if numbers else None


def _least_trusted_last(judge: dict[str, Any]) -> tuple[float, float, str]:
    trust, floor = judge["trust"], judge["checks"].get("dummy_floor", {}).get("figure")
    return 1.0 if trust is None else -trust, 1.0 if floor is None else floor, judge["protocol"]


def _method(name: str, results: Results) -> dict[str, Any]:
    def told(status: str) -> list[dict[str, str]]:
        chosen = [result for result in results if result["status"] == status]
        return [{key: result[key] for key in ("check", "on", "reason")} for result in chosen]

    return {
        "method": name,
        "passed": sum(result["status"] == "passed" for result in results),
        "judged": sum(result["status"] in JUDGED for result in results),
        "failures": told("failed"),
        "known_failures": told("known_failure"),
        "not_applicable": sum(result["status"] == "not_applicable" for result in results),
    }
