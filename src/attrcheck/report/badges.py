"""Small JSON for others to draw: a badge of shields.io, and trends of github-action-benchmark."""

from __future__ import annotations

import json

from attrcheck.report import notable, summary, terminal
from attrcheck.report.details import Details
from attrcheck.report.text import for_json, for_terminal
from attrcheck.report.types import BoardEntry, Document

LABEL = "attrcheck"


def badge(document: Document, details: Details) -> str:
    """The verdict, or if all is well the place of the best method of one's own, for shields.io."""
    green = summary.is_green(document)
    best = next(
        (entry for entry in document.leaderboard if entry.method in notable.own(document)), None
    )
    message = terminal.verdict(document)
    if green and best is not None:
        message = f"{best.method} {best.meta_rank:+.2f}, {_place(document, best)}"
    colour = "brightgreen" if green else "red"
    return _json(
        {
            "schemaVersion": 1,
            "label": LABEL,
            "message": for_terminal(message),
            "color": "yellow" if green and document.settings.partial else colour,
        }
    )


def trend(document: Document, details: Details) -> str:
    """Meta-Ranks as `customBiggerIsBetter`: of one's own methods, or of all."""
    names = notable.own(document) or [entry.method for entry in document.leaderboard]
    return _json(
        [
            {
                "name": for_terminal(entry.method),
                "unit": "Meta-Rank",
                "value": round(entry.meta_rank, 4),
                "range": "" if entry.low is None else f"{entry.low:+.2f} to {entry.high:+.2f}",
                "extra": _place(document, entry),
            }
            for entry in document.leaderboard
            if entry.method in names
        ]
    )


def _place(document: Document, entry: BoardEntry) -> str:
    return f"rank {entry.rank} of {len(document.leaderboard)}"


def _json(value: object) -> str:
    return for_json(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"
