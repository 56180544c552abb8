"""What fails, each cause once: a method that raises in sixteen cases has one fault, not sixteen."""

from __future__ import annotations

from dataclasses import dataclass, field

from attrcheck.errors import cause
from attrcheck.report.text import counted, one_line, shorten
from attrcheck.report.types import Document

MOST_NAMED = 3
MOST_IN_REASON = 400


@dataclass(frozen=True)
class Fault:
    """One cause for which a method fails, where it does, and the reason that was seen first."""

    method: str
    reason: str
    cases: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        """How many cases and checks, and the first few of them."""
        kinds = (("case", self.cases), ("check", self.checks))
        return " and ".join(
            f"{counted(len(names), kind)} ({_some(names)})" for kind, names in kinds if names
        )

    @property
    def line(self) -> str:
        """The fault in one line; not escaped yet."""
        return f"{self.method} fails in {self.where}: {shorten(self.reason, MOST_IN_REASON)}"


def faults(document: Document) -> list[Fault]:
    """The faults of all methods, those with the most cases first."""
    known: dict[tuple[str, str], Fault] = {}

    def fault(method: str, reason: str) -> Fault:
        return known.setdefault((method, cause(reason)), Fault(method, one_line(reason)))

    for case in document.cases:
        for method, score in case.scores.items():
            if score.status == "error":
                fault(method, score.reason).cases.append(case.id)
    for result in document.checks:
        if result.over == "methods" and (result.subject, cause(result.reason)) in known:
            fault(result.subject, result.reason).checks.append(result.check)
    return sorted(known.values(), key=lambda fault: (-len(fault.cases), fault.method))


def _some(names: list[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
