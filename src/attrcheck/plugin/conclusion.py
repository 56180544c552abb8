"""The end of a run: fuse what came in, judge the gates, say what is missing."""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from attrcheck import gate
from attrcheck.engine.results import CaseResult
from attrcheck.engine.settings import cores
from attrcheck.plugin.session import Session, selection
from attrcheck.report import document as documents
from attrcheck.report import files, terminal

PACKAGES = ("attrcheck", "torch", "captum", "numpy", "pytest", "pytest-xdist")

NOTHING: dict[str, Any] = {
    "profile": "-",
    "images": None,
    "seed": 0,
    "methods": [],
    "of_cases": 0,
    "of_methods": 0,
    "whole": "",
}
"""The settings of a run in which no item got as far as to send any."""


@dataclass(frozen=True)
class Verdict:
    """One thing that the run as a whole kept or broke, shown like a test."""

    name: str
    passed: bool
    lines: list[str] = field(default_factory=list)


def conclude(
    session: Session, rules: list[gate.Rule], workers: int
) -> tuple[dict[str, Any], list[Verdict]]:
    """The report's document, and what the run as a whole is to be told."""
    payloads = session.of_kind("case")
    settings = _settings(session)
    document = documents.build(
        results=[CaseResult.of(payload["result"]) for payload in payloads],
        checks=[payload["result"] for payload in session.of_kind("check")],
        settings=settings,
        missing=session.missing,
        run=_run(session, workers),
    )
    verdicts = []
    if session.missing:
        lines = [f"no result from {item}" for item in session.missing]
        advice = "what was computed is in the store: run again to complete it"
        verdicts.append(Verdict("complete", False, [*lines, advice]))
    figures = _figures(document)
    judgements = [gate.judge(rule, figures) for rule in rules]
    document["gates"] = [asdict(judgement) for judgement in judgements]
    for each in judgements:
        verdicts.append(Verdict(f"gate[{each.rule}]", each.passed, list(each.lines)))
    return document, verdicts


def publish(document: dict[str, Any], folder: Path) -> tuple[list[str], list[Verdict]]:
    """Write the report; returns the lines for the terminal, and a verdict if writing failed."""
    lines = terminal.render(document).splitlines()
    try:
        paths = files.write(document, folder)
    except OSError as error:
        why = f"the report cannot be written to {folder} ({error.strerror}): try --attr-report-dir"
        return lines, [Verdict("report", False, [why])]
    return [*lines, f"written: {', '.join(str(path) for path in paths)}"], []


def _settings(session: Session) -> dict[str, Any]:
    """The settings that the items ran with, and whether they are all there is."""
    sent = [session.payloads[item]["settings"] for item in sorted(session.payloads)]
    settings: dict[str, Any] = dict(sent[0] if sent else NOTHING)
    ran = selection((payload["id"] for payload in session.of_kind("case")), settings["methods"])
    whole = settings.pop("whole")
    return {**settings, "partial": ran != whole}


def _figures(document: dict[str, Any]) -> dict[str, gate.Figures]:
    """What gates may ask of each method and of each protocol."""
    methods: dict[str, dict[str, gate.Figure | None]] = {}
    for entry in document["leaderboard"]:
        own = {name: entry[name] for name in gate.METHOD_FIGURES if name in entry}
        counts = entry["beats_random"]
        methods[entry["method"]] = {**own, "beats_random": (counts["cases"], counts["of"])}
    for verdict in document["method_verdicts"]:
        if verdict["judged"]:
            counts = (verdict["passed"], verdict["judged"])
            methods.setdefault(verdict["method"], {})["checks"] = counts
    protocols = {
        judge["protocol"]: {
            name: judge["checks"][name]["figure"]
            for name in gate.PROTOCOL_FIGURES
            if judge["checks"].get(name, {}).get("judged")
        }
        for judge in document["judges"]
    }
    return {"method": methods, "protocol": protocols}


def _run(session: Session, workers: int) -> dict[str, Any]:
    threads = {payload["run"]["threads"] for payload in session.payloads.values()}
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(session.started)),
        "seconds": round(time.time() - session.started, 1),
        "workers": workers,
        "threads": max(threads, default=None),
        "cores": cores(),
        "machine": platform.platform(),
        "python": sys.version.split()[0],
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
