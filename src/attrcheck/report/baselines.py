"""Baselines: a report that runs are compared with, and how one is accepted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attrcheck.engine.wire import dumps
from attrcheck.errors import AttrcheckError
from attrcheck.report import changes, comparing, exports, files
from attrcheck.report.comparison import Comparison
from attrcheck.report.details import Details
from attrcheck.report.types import Document
from attrcheck.store.files import write_whole

MOST_PROBLEMS = 5


@dataclass(frozen=True)
class Baseline:
    """A report to compare a run with; name: what to call it."""

    name: str
    document: Document
    details: Details

    @classmethod
    def read(cls, path: Path, name: str = "") -> Baseline:
        """The one in a file or folder; AttrcheckError says what is wrong with it."""
        if not path.exists():
            raise AttrcheckError(
                f"there is no baseline at {path}: make it with `attrcheck baseline update --to "
                f"{path}` from the report of a run without one (--attr-baseline= --attr-report)"
            )
        return cls(name or str(path), *exports.read(path))

    def compare(self, document: Document, details: Details) -> Comparison:
        """What a run changed."""
        known = (self.document, self.details)
        return comparing.compare(known, (document, details), (self.name, "this run"))


def accept(report: Path, to: Path, force: bool = False) -> str:
    """Make a report the baseline; returns what that changes against the one before, as text.

    `to` gets the whole `report.json`, and beside it `.details.json` the scores of single images,
    without pictures and maps: what pairing needs. Both are plain JSON. A report that is partial,
    incomplete or red is refused, unless by force.
    """
    document, details = exports.read(report)
    before = Baseline.read(to) if to.exists() else None
    if not force and (problems := _problems(document, before)):
        hidden = len(problems) - MOST_PROBLEMS
        more = f"; and {hidden} more" if hidden > 0 else ""
        raise AttrcheckError(
            f"{report} is not accepted: {'; '.join(problems[:MOST_PROBLEMS])}{more}; "
            "--force accepts it as it is"
        )
    told = "there was no baseline before\n"
    if before is not None:
        known = (before.document, before.details)
        told = changes.render(comparing.compare(known, (document, details), (str(to), str(report))))
    beside = exports.details_of(to)
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        write_whole(to, files.as_json(document).encode())
        write_whole(beside, (dumps(_without_pictures(details)) + "\n").encode())
    except OSError as error:
        raise AttrcheckError(f"{to} cannot be written ({error.strerror})") from error
    return f"{told}\nwritten: {to}, {beside}\n"


def _problems(document: Document, before: Baseline | None) -> list[str]:
    """Why a report should not be what others are compared with."""
    problems = []
    if document.missing:
        problems.append(f"it is incomplete, without {', '.join(document.missing[:MOST_PROBLEMS])}")
    if missing := _left_out(document, before):
        problems.append(missing)
    problems += [f"gate broken: {gate.rule}" for gate in document.gates if not gate.passed]
    failed = {
        method: case.id
        for case in document.cases
        for method, score in case.scores.items()
        if score.status == "error"
    }
    problems += [f"{method} failed in {case}" for method, case in failed.items()]
    problems += [
        f"check {check.check} failed of {check.subject}"
        for check in document.checks
        if check.status == "failed"
    ]
    return problems


def _left_out(document: Document, before: Baseline | None) -> str:
    """What makes a report partial: less than the baseline before it, else than its profile."""
    if before is None:
        settings = document.settings
        chosen = settings.suite or f"profile {settings.profile}"
        partial = f"it is partial: other cases or methods than {chosen} has"
        return partial if settings.partial else ""
    old, new = (
        [*(case.id for case in one.cases), *one.settings.methods]
        for one in (before.document, document)
    )
    gone = [name for name in old if name not in new]
    some = ", ".join(gone[:MOST_PROBLEMS])
    return f"it is partial, without {some} of {before.name}" if gone else ""


def _without_pictures(details: Details) -> Details:
    none = np.empty((0, 0), dtype=np.float32)
    cases = {name: replace(case, curve_errors=none) for name, case in details.cases.items()}
    return replace(details, cases=cases, exhibits=[])
