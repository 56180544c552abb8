"""Verdicts on the run as a whole, shown like tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest

PREFIX = "attrcheck::"
"""How their node ids begin."""
PARTIAL = "partial"
"""The folder of a partial run's report, inside that of a whole one."""


@dataclass(frozen=True)
class RunVerdict:
    """One thing that the run as a whole kept or broke."""

    name: str
    passed: bool
    lines: list[str] = field(default_factory=list)

    def report(self) -> pytest.TestReport:
        """As pytest shows it."""
        return pytest.TestReport(
            nodeid=f"{PREFIX}{self.name}",
            location=("attrcheck", None, self.name),
            keywords={},
            outcome="passed" if self.passed else "failed",
            longrepr=None if self.passed else "\n".join(self.lines),
            when="call",
        )


def undecided(rules: Iterable[str], why: str) -> list[RunVerdict]:
    """A gate that nobody can decide is broken, never passed over."""
    return [RunVerdict(f"gate[{rule}]", False, [f"not decided: {why}"]) for rule in rules]


def incomplete(missing: Sequence[str]) -> list[RunVerdict]:
    """A run without the results of some items is broken, and can be completed."""
    if not missing:
        return []
    lines = [f"no result from {item}" for item in missing]
    advice = "what was computed is in the store: run again to complete it"
    return [RunVerdict("complete", False, [*lines, advice])]
