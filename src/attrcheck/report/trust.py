"""Which protocol to trust, how methods did in their checks, and what failed."""

from __future__ import annotations

from collections.abc import Sequence

from attrcheck.engine.results import CheckResult
from attrcheck.errors import cause
from attrcheck.report.text import Table, number, one_line, shorten
from attrcheck.report.types import Document, Failure, MethodVerdict, ProtocolTrust, Tally

COLUMNS = (
    *("dummy_floor", "measured_output", "attributed_output", "seed", "half_images"),
    *("other_removal", "other_grid", "value_sensitivity", "linear_ground_truth"),
)
"""The checks of protocols that the table has a column for; all others share the last one."""
LEGEND = (
    "A cell is the mean figure of a check, and in brackets how many of its items passed. Dummy "
    "floor: the share of comparisons won by methods that ignore the model, 0 at best. Outputs, "
    "seed, half images, removal and grid: rank correlation with the ranking that follows when this "
    "is changed, 1 at best. Value sensitivity: least Hausdorff distance between the curves of a "
    "map and of copies with other values, 0 for a protocol that sees only the order. Trust: the "
    "share of items passed, mean over so many checks; a known failure is not a pass. Without "
    "verdicts of three checks, and twenty images in each case, nothing is said of it."
)
KNOWN = "known_failure"
SHOWN = {
    "failed": "failed",
    "finding": "finding",
    KNOWN: "known failure",
    "passed": "said to fail, but passed",
}
MOST_FINDINGS = 6
MOST_CHARACTERS = 300
LEAST_CHECKS, LEAST_IMAGES = 3, 20
"""With fewer, nothing is said of how far a protocol is to be trusted."""


def tables(document: Document) -> list[Table]:
    """What failed of methods, and of all else; without checks there are none."""
    return [*_methods(document.method_verdicts), *_failures(document.checks)]


def protocols(document: Document) -> list[Table]:
    """Which protocol to trust; nothing without checks."""
    verdicts = document.protocol_verdicts
    if not any(verdict.checks for verdict in verdicts):
        return []
    rows = [
        [
            verdict.protocol,
            _trust(verdict) + _of(verdict) if _is_founded(document, verdict) else "-",
            verdict.cases,
            *(_cell(verdict.checks.get(check)) for check in COLUMNS),
            _others(verdict),
        ]
        for verdict in verdicts
    ]
    checks = [name.replace("_", " ") for name in COLUMNS]
    headers = ["protocol", "trust", "cases", *checks, "others"]
    return [Table("Which protocol to trust", headers, rows, LEGEND)]


def summary(document: Document) -> list[str]:
    """The protocols to trust most and least, in one line; none without checks."""
    checked = [verdict for verdict in document.protocol_verdicts if verdict.trust is not None]
    if not checked:
        return []
    known = [verdict for verdict in checked if _is_founded(document, verdict)]
    if not known:
        return [
            "no protocol is called trustworthy: that takes verdicts of "
            f"{LEAST_CHECKS} checks, and {LEAST_IMAGES} images in each case"
        ]
    most, least = known[0], known[-1]
    if len(known) > 1 and _trust(most) + _floor(most) == _trust(least) + _floor(least):
        equal = f"all {len(known)} alike ({_trust(most)} of checks{_floor(most)})"
        return [f"protocols to trust: {equal}"]
    line = f"protocol to trust: {_name(most)} ({_trust(most)} of checks{_floor(most)})"
    other = f"; least: {_name(least)} ({_trust(least)}{_floor(least)})"
    return [line + other if len(known) > 1 else line]


def findings(document: Document) -> list[str]:
    """What was found of protocols on a user's own data, in one line; none if all is well."""
    counts: dict[str, int] = {}
    for result in document.checks:
        if result.status == "finding":
            about = f"{result.check} of {result.protocol or result.subject}"
            counts[about] = counts.get(about, 0) + 1
    if not counts:
        return []
    some = ", ".join(f"{about} ({count})" for about, count in list(counts.items())[:MOST_FINDINGS])
    more = ", ..." if len(counts) > MOST_FINDINGS else ""
    return [
        f"{sum(counts.values())} finding(s) on protocols and your data, which fail the run only if "
        f"a gate asks for it: {some}{more}"
    ]


def _failures(checks: Sequence[CheckResult]) -> list[Table]:
    """What failed of protocols, models and the suite; methods have their own table."""
    groups: dict[tuple[str, str, str], list[CheckResult]] = {}
    for result in checks:
        failed = result.status in ("failed", "finding", KNOWN) or result.known
        if result.over != "methods" and failed:
            about = result.protocol or result.subject or "the suite"
            groups.setdefault((result.status, result.check, about), []).append(result)
    rows = [
        [check, about, SHOWN[status], len(items), shorten(_of_first(items, about), MOST_CHARACTERS)]
        for (status, check, about), items in sorted(groups.items())
        # What is known to fail in some case may pass in others, but not in all.
        if status in SHOWN and (status != "passed" or (KNOWN, check, about) not in groups)
    ]
    headers = ["check", "of", "verdict", "items", "reason"]
    return [Table("Failed checks, those of methods aside", headers, rows)] if rows else []


def _methods(verdicts: Sequence[MethodVerdict]) -> list[Table]:
    if not verdicts:
        return []
    rows = [
        [
            verdict.method,
            f"{verdict.passed}/{verdict.decided}" if verdict.decided else "-",
            _reasons(verdict.failures),
            _reasons(verdict.known_failures),
        ]
        for verdict in verdicts
    ]
    headers = ["method", "checks passed", "failed", "known to fail"]
    return [Table("Methods and their checks", headers, rows)]


def _reasons(failures: Sequence[Failure]) -> str:
    checks: dict[str, list[Failure]] = {}
    for failure in failures:
        checks.setdefault(cause(failure.reason), []).append(failure)
    return "; ".join(
        f"{', '.join(failure.check for failure in alike)}: "
        + shorten(one_line(alike[0].reason), MOST_CHARACTERS)
        for alike in checks.values()
    )


def _of_first(results: Sequence[CheckResult], about: str) -> str:
    where = "" if results[0].subject in (about, "") else f"{results[0].subject}: "
    return one_line(f"{where}{results[0].reason or results[0].known}")


def _cell(tally: Tally | None) -> str:
    if tally is None or not tally.decided:
        return "-"
    passed = f"{tally.passed}/{tally.decided}"
    return passed if tally.figure is None else f"{number(tally.figure)} ({passed})"


def _others(verdict: ProtocolTrust) -> str:
    rest = [tally for check, tally in verdict.checks.items() if check not in COLUMNS]
    passed, decided = sum(tally.passed for tally in rest), sum(tally.decided for tally in rest)
    return f"{passed}/{decided}" if decided else "-"


def _is_founded(document: Document, verdict: ProtocolTrust) -> bool:
    """Whether there is enough to call a protocol more trustworthy than another."""
    images = [case.images for case in document.cases if case.protocol == verdict.protocol]
    enough = min(images, default=LEAST_IMAGES) >= LEAST_IMAGES
    return enough and _deciding(verdict) >= LEAST_CHECKS


def _deciding(verdict: ProtocolTrust) -> int:
    return sum(tally.decided > 0 for tally in verdict.checks.values())


def _trust(verdict: ProtocolTrust) -> str:
    return "-" if verdict.trust is None else f"{verdict.trust:.0%}"


def _of(verdict: ProtocolTrust) -> str:
    """How many checks the trust in a protocol comes from."""
    count = _deciding(verdict)
    return f" of {count}" if count else ""


def _floor(verdict: ProtocolTrust) -> str:
    tally = verdict.checks.get("dummy_floor")
    return "" if tally is None or tally.figure is None else f", floor {tally.figure:.2f}"


def _name(verdict: ProtocolTrust) -> str:
    return shorten(verdict.protocol, 12)
