"""Laws: how many held, and which are broken, with the simplest scene that breaks each."""

from __future__ import annotations

from attrcheck.report.text import Table, one_line, shorten
from attrcheck.report.types import Document

MOST_SHOWN = 10
MOST_IN_REASON = 300
STATUSES = ("held", "broken", "not_applicable")
NOTE = "Each was tried on small worlds that hypothesis invented; see docs/explanation/laws.md."
HEADERS = ("law", "of", "reason", "counterexample", "seed")


def summary(document: Document) -> list[str]:
    """How many laws held, then a line for each broken one; none if none was tried."""
    if not document.laws:
        return []
    counts = {
        status: sum(law.status == status for law in document.laws) for status in ("held", "broken")
    }
    head = f"laws: {counts['held']} held" + (
        f", {counts['broken']} BROKEN" * (counts["broken"] > 0)
    )
    broken = [
        f"law broken: {law} of {subject}: {reason}; counterexample: {scene}"
        for law, subject, reason, scene, _ in _broken(document)
    ]
    hidden = len(broken) - MOST_SHOWN
    return [head, *broken[:MOST_SHOWN], *([f"... and {hidden} more"] if hidden > 0 else [])]


def tables(document: Document) -> list[Table]:
    """How many laws held, by what they bind, and the broken ones; nothing if none was tried."""
    if not document.laws:
        return []
    counts: dict[str, list[int]] = {}
    for law in document.laws:
        counts.setdefault(law.kind, [0, 0, 0])[STATUSES.index(law.status)] += 1
    rows: list[list[str | int]] = [[kind, *numbers] for kind, numbers in counts.items()]
    shown = [Table("Laws", ["of a", "held", "broken", "not applicable"], rows, NOTE)]
    if broken := _broken(document):
        shown.append(Table("Broken laws", list(HEADERS), [list(row) for row in broken]))
    return shown


def _broken(document: Document) -> list[tuple[str, ...]]:
    return [
        (
            result.law,
            f"{result.kind} {result.subject}",
            shorten(one_line(result.reason), MOST_IN_REASON),
            shorten(one_line(result.scene), MOST_IN_REASON),
            result.seed,
        )
        for result in document.laws
        if result.status == "broken"
    ]
