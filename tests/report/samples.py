"""Parts of reports to try renderers on."""

from __future__ import annotations

from dataclasses import replace

from attrcheck.engine.results import CheckResult
from attrcheck.report.document import build
from attrcheck.report.types import Run, SettingsShown

RUN = Run(
    started="2024-01-01T00:00:00Z",
    seconds=1.0,
    gates_from="none",
    workers=0,
    threads=1,
    cores=2,
    machine="a machine",
    python="3.11.7",
    versions={"torch": "2.4"},
)


def settings(methods=(), **changes):
    """The settings of a run with these methods."""
    plain = SettingsShown(
        profile="default",
        images=8,
        seed=0,
        device="cpu",
        methods=list(methods),
        of_cases=0,
        of_methods=0,
        partial=False,
    )
    return replace(plain, **changes)


def empty(**changes):
    """A report without any result, and with these parts in place."""
    return replace(build([], [], settings(), [], RUN), **changes)


def check(name, over="cases", subject="a-x-up", status="passed", reason="", known="", **figures):
    """What a check found of a subject; methods are checked on a pair."""
    protocol = {"cases": subject.split("-")[-1], "protocols": subject}.get(over, "")
    return CheckResult(
        check=name,
        over=over,
        subject=subject,
        on="a-x" if over == "methods" else "",
        protocol=protocol,
        known=known,
        status=status,
        reason=reason,
        figures=figures,
    )
