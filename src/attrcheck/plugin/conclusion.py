"""What follows from a run: fuse what came in, decide the gates, say what is missing."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from attrcheck import gate
from attrcheck.engine.results import RunSettings
from attrcheck.engine.settings import cores
from attrcheck.errors import AttrcheckError, cut
from attrcheck.plugin.selection import signature
from attrcheck.plugin.session import Session
from attrcheck.plugin.verdicts import PARTIAL, RunVerdict, incomplete
from attrcheck.report import document as documents
from attrcheck.report import exports, files, terminal, trust
from attrcheck.report.details import MAPS, Details
from attrcheck.report.text import for_terminal
from attrcheck.report.types import Document, Run, SettingsShown

PACKAGES = ("attrcheck", "torch", "captum", "numpy", "pytest", "pytest-xdist")
MOST_CASES = 12
"""Names of cases in one line."""
NOTHING = RunSettings("-", images=None, seed=0, device="-", methods=[], of_cases=0, of_methods=0)
"""The settings of a run in which no item got as far as to send any."""


def conclude(
    session: Session, gates: Sequence[gate.Gate], gates_from: str, workers: int
) -> tuple[Document, list[RunVerdict]]:
    """The report, and the verdicts on the run as a whole."""
    document = documents.build(
        results=session.cases,
        checks=session.checks,
        settings=_settings(session),
        missing=session.missing,
        run=_run(session, gates_from, workers),
    )
    verdicts = incomplete(session.missing)
    figures = _figures(document)
    results = [
        _on_all(_with_cases(gate.decide(wanted, figures), wanted, document), session)
        for wanted in gates
    ]
    verdicts += [RunVerdict(f"gate[{r.rule}]", r.passed, list(r.lines)) for r in results]
    return replace(document, gates=results), verdicts


def publish(
    document: Document, folder: Path, details: Details | None = None, maps: Path | None = None
) -> tuple[list[str], list[RunVerdict]]:
    """Write the report; returns the lines for the terminal, and a verdict if a format failed.

    details: what pictures are drawn from. maps: a folder of maps in full size, if there is one.
    The files come first: a run that lost its terminal has them still. A partial run leaves the
    report of a whole one alone, and has a folder inside its.
    """
    place = folder
    partial = document.settings.partial and not document.missing
    if partial and _is_whole(files.previous(folder / files.JSON)):
        place = folder / PARTIAL
        files.restore(folder)
    paths, problems = files.write(document, place, details)
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


def findings(document: Document) -> list[str]:
    """What was found on a user's own data, for a terminal that shows no report."""
    return [for_terminal(line) for line in trust.findings(document)]


def details(document: Document, session: Session) -> Details:
    """What the report's pictures are drawn from."""
    return Details.of(document.run.started, session.cases, session.exhibits)


def _is_whole(report: Path) -> bool:
    """Whether a report that was set aside is of a whole run."""
    try:
        document = exports.read_document(report)
    except AttrcheckError:
        return False
    return not document.settings.partial and not document.missing


def _with_cases(result: gate.GateResult, wanted: gate.Gate, document: Document) -> gate.GateResult:
    """A broken gate on `beats_random` names the cases in which a method does not."""
    if result.passed or wanted.figure != "beats_random":
        return result
    lines = []
    for method in wanted.select({entry.method: {} for entry in document.leaderboard}):
        cases = [case.id for case in document.cases if case.scores[method].beats_random is False]
        more = f" and {len(cases) - MOST_CASES} more" if len(cases) > MOST_CASES else ""
        if cases:
            lines.append(f"{method} does not beat random in {', '.join(cases[:MOST_CASES])}{more}")
    return replace(result, lines=(*result.lines, *lines))


def _on_all(result: gate.GateResult, session: Session) -> gate.GateResult:
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


def _figures(document: Document) -> dict[str, gate.Figures]:
    """What gates may ask of each method and of each protocol."""
    methods: dict[str, dict[str, gate.Figure | None]] = {}
    for entry in document.leaderboard:
        board = {name: value for name, value in vars(entry).items() if name in gate.METHOD_FIGURES}
        beaten = entry.beats_random
        methods[entry.method] = {**board, "beats_random": (beaten.cases, beaten.of)}
    for verdict in document.method_verdicts:
        if verdict.decided:
            methods.setdefault(verdict.method, {})["checks"] = (verdict.passed, verdict.decided)
    protocols = {
        trust.protocol: {
            name: trust.checks[name].figure
            for name in gate.PROTOCOL_FIGURES
            if name in trust.checks and trust.checks[name].decided
        }
        for trust in document.protocol_verdicts
    }
    return {"method": methods, "protocol": protocols}


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
