"""The leaderboard for the terminal, at most 100 columns wide."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tabulate as tables
from tabulate import tabulate

from attrcheck.report import consistency, judges
from attrcheck.report.text import shorten


def render(document: dict[str, Any]) -> str:
    """What stands above the board, the board, and what stands below it."""
    below = [*consistency.summary(document), *judges.summary(document), *footer(document)]
    return "\n".join([*remarks(document), "", board(document, "simple"), "", *below])


def remarks(document: dict[str, Any]) -> list[str]:
    """What a reader must know before believing the board."""
    settings, missing = document["settings"], document["missing"]
    cases, methods = len(document["cases"]), len(settings["methods"])
    lines = [
        f"{cases} cases x {methods} methods, profile {settings['profile']}, "
        f"{_images(document)} images a case, seed {settings['seed']}"
    ]
    if missing:
        lines.append(f"INCOMPLETE: no result from {len(missing)} item(s): {_some(missing)}")
    if settings["partial"]:
        all_cases, all_methods = settings["of_cases"], settings["of_methods"]
        ran = f"{cases} of {all_cases} cases, {methods} of {all_methods} methods"
        if (cases, methods) == (all_cases, all_methods):
            ran = f"other cases or methods than those of the profile {settings['profile']}"
        lines.append(f"PARTIAL: {ran}: {_some(settings['methods'])}")
    return lines


def board(document: dict[str, Any], style: str) -> str:
    """The leaderboard as a table in one of tabulate's styles."""
    if not document["leaderboard"]:
        return f"no leaderboard: {document['leaderboard_problem'] or 'no method has a score'}"
    seconds = document["run"]["seconds_per_image"]
    rows = [
        [
            entry["rank"],
            shorten(entry["method"]) if style == "simple" else entry["method"],
            f"{entry['meta_rank']:+.2f}",
            _interval(entry),
            f"{entry['mean_rank']:.1f}",
            _share(entry["wins"]),
            _beaten(entry["beats_random"]),
            _seconds(seconds[entry["method"]]),
        ]
        for entry in document["leaderboard"]
    ]
    headers = [
        "rank",
        "method",
        "Meta-Rank",
        "95% interval",
        "mean rank",
        "wins",
        "> random",
        "s/image",
    ]
    aligned = ("right", "left", *["right"] * 6)
    with _tight():
        return str(tabulate(rows, headers, style, disable_numparse=True, colalign=aligned))


def footer(document: dict[str, Any]) -> list[str]:
    """Methods without a score and why, a line for each reason."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for case in document["cases"]:
        for method, outcome in case["scores"].items():
            if outcome["status"] != "ok":
                # What went wrong comes first, what does not apply last.
                key = (outcome["status"], method, " ".join(outcome["reason"].split()))
                places.setdefault(key, []).append(case["id"])
    lines = []
    for (status, method, reason), ids in sorted(places.items()):
        where = ids[0] if len(ids) == 1 else f"{len(ids)} cases, first {ids[0]}"
        lines.append(f"{method} in {where}: {status.replace('_', ' ')}: {reason}")
    return lines[:20] + ([f"... and {len(lines) - 20} more"] if len(lines) > 20 else [])


@contextmanager
def _tight() -> Iterator[None]:
    """Columns as wide as what stands in them; tabulate pads headers by two otherwise."""
    before, tables.MIN_PADDING = tables.MIN_PADDING, 0
    try:
        yield
    finally:
        tables.MIN_PADDING = before


def _images(document: dict[str, Any]) -> str:
    """`100`, or `12 to 100` where costly protocols take fewer."""
    counts = sorted({case["images"] for case in document["cases"]})
    return " to ".join(dict.fromkeys(str(count) for count in (counts[:1] + counts[-1:]))) or "no"


def _some(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _interval(entry: dict[str, Any]) -> str:
    if entry["low"] is None or entry["high"] is None:
        return "-"
    return f"[{entry['low']:+.2f}, {entry['high']:+.2f}]"


def _share(wins: float | None) -> str:
    return "-" if wins is None else f"{wins:.0%}"


def _beaten(counts: dict[str, int]) -> str:
    return f"{counts['cases']}/{counts['of']}" if counts["of"] else "-"


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.4f}"
