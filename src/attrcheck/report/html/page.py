"""Put the page together: what everybody can read, and what scripts add to it."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from attrcheck.report import consistency, groups, laws, notable, protocols, terminal, trust
from attrcheck.report.details import Details
from attrcheck.report.html import board, critical, data
from attrcheck.report.text import for_terminal
from attrcheck.report.types import Document, Run

SCRIPTS = (
    *("core.js", "colours.js", "charts.js", "paper.js", "filters.js", "fuse.js", "board.js"),
    *("heatmap.js", "pictures.js", "case.js", "method.js", "gallery.js", "compare.js", "main.js"),
)
"""In this order they become one script."""


def render(document: Document, details: Details) -> str:
    """The page; whatever is put into the template is escaped by it, and only there."""
    return fill(
        "page.html",
        script(),
        title="attrcheck report",
        document=document,
        board=board.rows(document),
        axis=board.axis(document.leaderboard),
        columns=board.COLUMNS,
        letters=groups.legend(document),
        critical=critical.diagram(document),
        families=groups.families(document),
        remarks=terminal.above(document),
        no_board=terminal.no_board(document),
        verdict=terminal.verdict(document),
        tone=board.tone(document),
        notable=notable.lines(document),
        without_score=terminal.footer(document),
        protocols=[*trust.protocols(document), *protocols.tables(document)],
        checks=[*trust.tables(document), *laws.tables(document)],
        consistency=consistency.tables(document),
        facts=_facts(document.run),
        versions=document.run.versions,
        data=data.packed_json(data.of(document, details)),
        pixels=[data.pixels(exhibit) for exhibit in details.exhibits],
    )


def fill(template: str, code: str = "", **parts: Any) -> str:
    """A page of the template in the common style; code: the one script that may run there."""
    style = Markup(asset("style.css"))
    page = environment().get_template(template)
    return page.render(style=style, script=Markup(code), policy=_policy(code), **parts)


@cache
def script() -> str:
    """All scripts as one, which shares no name with anybody."""
    parts = "\n".join(asset(name) for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


def _policy(code: str) -> str:
    """What a page may do: run this one script, if any, and ask nobody for anything."""
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    script = f"script-src 'sha256-{digest}'; " if code else ""
    return f"default-src 'none'; style-src 'unsafe-inline'; {script}base-uri 'none'"


def _facts(run: Run) -> dict[str, Any]:
    return {
        "started": run.started,
        "seconds": run.seconds,
        "machine": run.machine,
        "cores": run.cores,
        "workers": run.workers,
        "threads": run.threads,
        "python": run.python,
        "gates from": run.gates_from,
        "scores": terminal.origin(run),
    }


@cache
def environment() -> Environment:
    """What makes pages of templates; whatever is put into one is escaped."""
    return Environment(
        loader=FunctionLoader(asset),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _printable(value: Any) -> Any:
    """Foreign text without control characters; what the template knows to be HTML stays."""
    if isinstance(value, Markup):
        return value
    return for_terminal(value) if isinstance(value, str) else value


def asset(name: str) -> str:
    """A file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
