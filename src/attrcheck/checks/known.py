"""What built-in methods, protocols and pairs are known to fail: read from `known_failures.toml`.

Users declare those of their own where they register something, with `known_failures=`.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("known_failures.toml")
MOVED = 1
"""By how many the number of failing cases may change: one may tip over on another machine."""


@dataclass(frozen=True)
class KnownFailure:
    """A check that a subject fails, why, and the figure it was seen with; see the file's header."""

    check: str
    subject: str
    reason: str
    figure: str
    value: float
    profile: str
    on: str = ""
    failing: int = 1
    of: int = 1
    tolerance: float = 0.05

    def __str__(self) -> str:
        return f"{self.check} of {self.subject}"


def parse(text: str) -> tuple[KnownFailure, ...]:
    """The failures that a file states."""
    return tuple(KnownFailure(**table) for table in tomllib.loads(text)["failure"])


@functools.cache
def known_failures() -> tuple[KnownFailure, ...]:
    """Those of the package."""
    return parse(FILE.read_text(encoding="utf-8"))


def reason(check: str, subject: str) -> str | None:
    """Why a built-in subject is known to fail a check; None if it is not."""
    return _reasons().get((check, subject))


@functools.cache
def _reasons() -> dict[tuple[str, str], str]:
    return {(failure.check, failure.subject): failure.reason for failure in known_failures()}


def drift(report: Mapping[str, Any], failures: Sequence[KnownFailure] | None = None) -> list[str]:
    """What a report (the content of report.json) says otherwise than the file, one line each.

    Only failures that were seen in the report's profile count, and only if their check was run.
    """
    profile = report["settings"]["profile"]
    lines = []
    for failure in known_failures() if failures is None else failures:
        results = [
            result
            for result in report["checks"]
            if result["check"] == failure.check
            and (result.get("protocol") or result["subject"]) == failure.subject
            and result["status"] != "not_applicable"
        ]
        if results and failure.profile == profile:
            lines += [f"{failure}: {what}" for what in _drift(failure, results)]
    return lines


def _drift(failure: KnownFailure, results: Sequence[Mapping[str, Any]]) -> list[str]:
    """How one failure differs from the results of its check of its subject."""
    failing = sum(result["status"] == "known_failure" for result in results)
    if not failing:
        return ["no longer fails"]
    lines = []
    if len(results) == failure.of and abs(failing - failure.failing) > MOVED:
        lines.append(f"{failing} of {failure.of} fail, on file {failure.failing}")
    for result in results:
        if failure.on in ("", result.get("on", ""), result["subject"].rpartition("-")[0]):
            value = result["figures"].get(failure.figure)
            if value is None or abs(value - failure.value) > failure.tolerance:
                lines.append(f"{failure.figure} is {value}, on file {failure.value}")
    return lines
