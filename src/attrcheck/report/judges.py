"""Which judge to trust, which methods stood the trial, and what failed: tables of `report.md`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrcheck.report.text import inline, number, shorten, table

COLUMNS = (
    *("dummy_floor", "measured_output", "attributed_output", "seed", "half_images"),
    *("other_removal", "other_grid", "value_sensitivity", "linear_ground_truth"),
)
"""The checks of judges that the table has a column for; all others share the last one."""
LEGEND = (
    "A cell is the mean figure of a check, and in brackets how many of its items passed. Dummy "
    "floor: the share of comparisons won by methods that ignore the model, 0 at best. Outputs, "
    "seed, half images, removal and grid: rank correlation with the ranking that follows when this "
    "is changed, 1 at best. Value sensitivity: least Hausdorff distance between the curves of a "
    "map and of copies with other values, 0 for a judge that sees but the order. Trust: the share "
    "of items passed, mean over so many checks; a known failure is no pass."
)
KNOWN = "known_failure"
TOLD = {"failed": "failed", KNOWN: "known failure", "passed": "said to fail, but passed"}
MOST_ROWS = 40
MOST_CHARACTERS = 100


def sections(document: dict[str, Any]) -> list[str]:
    """The tables of judges and of methods; without checks there are none."""
    return [*_judges(document["judges"]), *_methods(document["method_verdicts"])]


def summary(document: dict[str, Any]) -> list[str]:
    """Whom to trust most and least, in one line; none without checks."""
    known = [judge for judge in document["judges"] if judge["trust"] is not None]
    if not known:
        return []
    most, least = known[0], known[-1]
    if len(known) > 1 and _trust(most) + _floor(most) == _trust(least) + _floor(least):
        return [f"judges to trust: all {len(known)} alike ({_trust(most)} of checks{_floor(most)})"]
    line = f"judge to trust: {_name(most)} ({_trust(most)} of checks{_floor(most)})"
    other = f"; least: {_name(least)} ({_trust(least)}{_floor(least)})"
    return [line + other if len(known) > 1 else line]


def failures(document: dict[str, Any]) -> list[str]:
    """What is said against judges, models and the suite; methods have their own table."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for result in document["checks"]:
        told = result["status"] in ("failed", KNOWN) or result["known"]
        if result["over"] != "methods" and told:
            about = result["protocol"] or result["subject"] or "the suite"
            groups.setdefault((result["status"], result["check"], about), []).append(result)
    rows = [
        [check, about, TOLD[status], len(own), inline(_of_first(own, about), MOST_CHARACTERS)]
        for (status, check, about), own in sorted(groups.items())
        # What is known to fail in some case may pass in others, but not in all.
        if status in TOLD and (status != "passed" or (KNOWN, check, about) not in groups)
    ]
    if not rows:
        return []
    shown = table(rows[:MOST_ROWS], ["check", "of", "verdict", "items", "reason"])
    hidden = len(rows) - MOST_ROWS
    more = [f"... and {hidden} more: see `checks` in `report.json`."] if hidden > 0 else []
    return ["## Failed checks, those of methods aside", shown, *more]


def _judges(judges: Sequence[dict[str, Any]]) -> list[str]:
    if not any(judge["checks"] for judge in judges):
        return []
    rows = [
        [
            judge["protocol"],
            _trust(judge) + _of(judge),
            judge["cases"],
            *(_cell(judge["checks"].get(check)) for check in COLUMNS),
            _others(judge),
        ]
        for judge in judges
    ]
    headers = ["judge", "trust", "cases", *(name.replace("_", " ") for name in COLUMNS), "others"]
    return ["## Which judge to trust", table(rows, headers), LEGEND]


def _methods(verdicts: Sequence[dict[str, Any]]) -> list[str]:
    if not verdicts:
        return []
    rows = [
        [
            verdict["method"],
            f"{verdict['passed']}/{verdict['judged']}" if verdict["judged"] else "-",
            _reasons(verdict["failures"], 80),
            _reasons(verdict["known_failures"], 50),
        ]
        for verdict in verdicts
    ]
    headers = ["method", "checks passed", "failed", "known to fail"]
    return ["## Methods on trial", table(rows, headers)]


def _reasons(failures: Sequence[dict[str, str]], most: int) -> str:
    return inline("; ".join(f"{f['check']}: {shorten(f['reason'], most)}" for f in failures))


def _of_first(results: Sequence[dict[str, Any]], about: str) -> str:
    where = "" if results[0]["subject"] in (about, "") else f"{results[0]['subject']}: "
    return f"{where}{results[0]['reason'] or results[0]['known']}"


def _cell(tally: dict[str, Any] | None) -> str:
    if not tally or not tally["judged"]:
        return "-"
    passed = f"{tally['passed']}/{tally['judged']}"
    return passed if tally["figure"] is None else f"{number(tally['figure'])} ({passed})"


def _others(judge: dict[str, Any]) -> str:
    rest = [tally for check, tally in judge["checks"].items() if check not in COLUMNS]
    return _cell({"figure": None, **{k: sum(t[k] for t in rest) for k in ("passed", "judged")}})


def _trust(judge: dict[str, Any]) -> str:
    return "-" if judge["trust"] is None else f"{judge['trust']:.0%}"


def _of(judge: dict[str, Any]) -> str:
    """How many checks there are behind the trust in a judge."""
    count = sum(tally["judged"] > 0 for tally in judge["checks"].values())
    return f" of {count}" if count else ""


def _floor(judge: dict[str, Any]) -> str:
    figure = judge["checks"].get("dummy_floor", {}).get("figure")
    return "" if figure is None else f", floor {figure:.2f}"


def _name(judge: dict[str, Any]) -> str:
    return shorten(judge["protocol"], 14)
