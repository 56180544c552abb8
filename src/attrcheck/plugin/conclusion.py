"""What follows from a run: fuse what came in, decide the gates, say what is missing."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from attrcheck.engine.results import RunSettings
from attrcheck.engine.settings import cores
from attrcheck.errors import AttrcheckError, cut
from attrcheck.gate import Gate, GateResult
from attrcheck.plugin.selection import signature
from attrcheck.plugin.session import Session
from attrcheck.plugin.verdicts import PARTIAL, RunVerdict, incomplete
from attrcheck.report import causes, changes, exports, files, gating, summary, terminal, trust
from attrcheck.report import document as documents
from attrcheck.report.baselines import Baseline
from attrcheck.report.comparison import Comparison
from attrcheck.report.details import MAPS, Details
from attrcheck.report.text import for_terminal, one_line
from attrcheck.report.types import Document, Run, SettingsShown
from attrcheck.store.entries import Store, StoreError
from attrcheck.store.inventory import REPORT

PACKAGES = ("attrcheck", "torch", "captum", "numpy", "pytest", "pytest-xdist")
NOTHING = RunSettings("-", images=None, seed=0, device="-", methods=[], of_cases=0, of_methods=0)
"""The settings of a run in which no item got as far as to send any."""


def conclude(
    session: Session,
    gates: Sequence[Gate],
    gates_from: str,
    workers: int,
    baseline: Baseline | None = None,
) -> tuple[Document, list[RunVerdict], Comparison | None]:
    """The report, the verdicts on the run as a whole, and what it changed against a baseline."""
    document = documents.build(
        results=session.cases,
        checks=session.checks,
        laws=session.laws,
        settings=_settings(session),
        missing=session.missing,
        run=_run(session, gates_from, workers),
    )
    verdicts = incomplete(session.missing)
    comparison = baseline.compare(document, details(document, session)) if baseline else None
    before = baseline.document if baseline else None
    results = [
        _on_all(result, session) for result in gating.results(gates, document, comparison, before)
    ]
    verdicts += [RunVerdict(f"gate[{r.rule}]", r.passed, list(r.lines)) for r in results]
    moved = changes.gist(comparison) if comparison else []
    return replace(document, gates=results, baseline=moved), verdicts, comparison


def keep(
    document: Document, store: Path, details: Details, maps: Path
) -> tuple[list[Path], list[str]]:
    """Keep the report in the store, to be shown at any time: the files, or why there are none.

    maps: a folder of maps in full size, if there is one. Only a whole run takes the place of one.
    """
    place = store / REPORT
    if not _is_whole(document) and _has_whole(place / files.JSON):
        place /= PARTIAL
    try:
        Store(store).open()
        paths, problems = files.keep(document, place, details)
    except StoreError as error:
        paths, problems = [], [str(error)]
    if paths and maps.is_dir():
        problems += files.copy(maps, place / MAPS)
    return paths, [for_terminal(f"warning: {problem}") for problem in problems]


def publish(
    document: Document,
    folder: Path,
    details: Details | None = None,
    maps: Path | None = None,
    written: Iterable[Path] = (),
    comparison: Comparison | None = None,
) -> tuple[list[str], list[RunVerdict]]:
    """Write the report; returns the lines for the terminal, and a verdict if a format failed.

    details: what pictures are drawn from. maps: a folder of maps in full size, if there is one.
    written: files of the report that the store has already. comparison: with a baseline. The files
    come first: a run that lost its terminal has them still. A partial run leaves the report of a
    whole one alone, and has a folder inside its.
    """
    place = folder
    partial = document.settings.partial and not document.missing
    if partial and _has_whole(files.previous(folder / files.JSON)):
        place = folder / PARTIAL
        files.restore(folder)
    paths, problems = files.write(document, place, details, written, comparison)
    if maps is not None and maps.is_dir():
        problems += files.copy(maps, place / MAPS)
    try:
        lines = terminal.render(document).split("\n")
    except Exception as error:  # the files are there, and gates must still be decided
        lines = []
        problems.append(cut(f"the board cannot be shown: {type(error).__name__}: {error}"))
    if place != folder:
        lines.append(for_terminal(f"{folder} keeps the report of an EARLIER run, a whole one"))
    if paths:
        lines.append(for_terminal(f"written: {', '.join(str(path) for path in paths)}"))
    problems = [for_terminal(problem) for problem in problems]
    return lines, [RunVerdict("report", False, problems)] if problems else []


def summarise(document: Document, comparison: Comparison | None, file: str) -> list[str]:
    """Append a summary to the file that CI shows; a line for the terminal if that fails."""
    try:
        text = summary.render(document, comparison)
        with open(file, "a", encoding="utf-8") as page:
            page.write(f"{text}\n")
    except Exception as error:  # a summary is no reason for a run to fail
        why = f"warning: no summary in {file}: {type(error).__name__}: {error}"
        return [for_terminal(cut(why))]
    return []


def in_short(document: Document) -> list[str]:
    """What moved, what failed, what was found on a user's data: for a terminal without a report."""
    faults = [fault.line for fault in causes.faults(document)]
    lines = (*document.baseline, *faults, *trust.findings(document))
    return [for_terminal(one_line(line)) for line in lines]


def details(document: Document, session: Session) -> Details:
    """What the report's pictures are drawn from."""
    return Details.of(document.run.started, session.cases, session.exhibits)


def _has_whole(report: Path) -> bool:
    """Whether a file is the report of a whole run."""
    try:
        return _is_whole(exports.read_document(report))
    except AttrcheckError:
        return False


def _is_whole(document: Document) -> bool:
    return not document.settings.partial and not document.missing


def _on_all(result: GateResult, session: Session) -> GateResult:
    """A gate is decided on all that was collected, or it does not hold."""
    if not (without := [*session.missing, *session.skipped]):
        return result
    line = f"not decided on all that was collected: no result from {', '.join(without)}"
    return replace(result, passed=False, error=True, lines=(*result.lines, line))


def _settings(session: Session) -> SettingsShown:
    """The settings that the items ran with, and whether they are all there is."""
    sent = session.in_order
    settings, whole = (sent[0].settings, sent[0].whole) if sent else (NOTHING, "")
    ran = signature((result.case for result in session.cases), settings.methods)
    return SettingsShown(**vars(settings), partial=ran != whole)


def _run(session: Session, gates_from: str, workers: int) -> Run:
    threads = {sent.threads for sent in session.in_order}
    verified = [sent.verified for sent in session.in_order if sent.verified is not None]
    return Run(
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(session.started)),
        seconds=round(time.time() - session.started, 1),
        gates_from=gates_from,
        workers=workers,
        threads=max(threads, default=None),
        cores=cores(),
        machine=platform.platform(),
        python=sys.version.split()[0],
        versions={name: _version(name) for name in PACKAGES},
        verified=sum(verified) if verified else None,
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
