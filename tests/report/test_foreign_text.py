"""Whole reports full of foreign text have the shape of reports full of plain text."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from markdown_it import MarkdownIt

from attrcheck.engine.resampling import condense
from attrcheck.engine.results import CaseResult, CheckResult, Envelope, Outcome, RunSettings
from attrcheck.engine.wire import dumps, loads
from attrcheck.errors import MOST_TEXT
from attrcheck.gate import GateResult
from attrcheck.registry import LONGEST
from attrcheck.report import files, markdown, terminal
from attrcheck.report.details import Details
from attrcheck.report.document import build
from attrcheck.report.html import page
from tests.report import samples
from tests.report.test_text import TEXTS

MEGABYTES = "<b>|`\x1b[2J\n" * 500_000


def document(text):
    """A report with this text wherever one of others may stand; names have a bound of their own."""
    name = text[:LONGEST]
    names = [f"m{name}", "random", f"n{name}"]

    def case(name):
        replicates = np.linspace(0.5, 0.6, 10)
        outcomes = {
            names[0]: Outcome("ok", score=0.5, replicates=replicates, seconds=0.1),
            "random": Outcome("ok", score=0.25, replicates=replicates / 2, seconds=0.1),
            names[2]: Outcome("error", f"r{text}"),
        }
        tuning = {
            "removal": f"f{name}",
            "grid": 4,
            "accuracy": {"before": 0.9, "after": 0.95},
            "worst_cell": {"before": 0.5, "after": 0.75},
            "similarity": {f"s{name}": 0.5},
        }
        settings = {f"k{name}": f"v{name}"}
        return condense(CaseResult(name, True, 8, 0.875, outcomes, settings, tuning))

    checks = [
        samples.check("seed", "cases", "a-x-up", "failed", f"r{text}", f"k{name}"),
        samples.check("mine", "suite", f"s{name}", "failed", f"r{text}"),
        samples.check("contract", "methods", names[0], "failed", f"r{text}"),
        samples.check("axiom", "methods", names[0], "known_failure", f"r{text}"),
    ]
    run = replace(samples.RUN, machine=f"m{name}", versions={f"v{name}": f"v{name}"})
    found = build(
        [case("a-x-up"), case("b-x-up")],
        checks,
        samples.settings(names, partial=True),
        [f"i{name}"],
        run,
    )
    return replace(found, gates=[GateResult(f"r{text}", False, False, (f"l{text}",))])


def shape(page):
    """The tags of a page, in order."""
    return re.findall(r"<(/?\w+)", page)


read = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render
PLAIN = document("x")
SHAPES = {
    "terminal": len(terminal.render(PLAIN).splitlines()),
    "markdown": shape(read(markdown.render(PLAIN))),
    "html": shape(page.render(PLAIN, Details())),
    "json": json.loads(files.as_json(PLAIN)).keys(),
}


@settings(max_examples=20, deadline=None)
@given(TEXTS)
@example(MEGABYTES)
def test_no_text_changes_the_shape_of_a_report(text):
    found = document(text)
    on_terminal = terminal.render(found)
    assert len(on_terminal.splitlines()) == SHAPES["terminal"]
    assert on_terminal.replace("\n", "").isprintable()
    assert len(on_terminal) < 20 * MOST_TEXT
    in_markdown = markdown.render(found)
    assert shape(read(in_markdown)) == SHAPES["markdown"]
    assert in_markdown.replace("\n", "").isprintable()
    assert len(in_markdown) < 100 * MOST_TEXT
    in_html = page.render(found, Details())
    assert shape(in_html) == SHAPES["html"]
    assert in_html.replace("\n", "").isprintable()
    in_json = json.loads(files.as_json(found).encode("ascii"))
    assert in_json.keys() == SHAPES["json"]
    json.dumps(in_json, ensure_ascii=False).encode()


@pytest.mark.parametrize("kind", [str, lambda text: RuntimeError(text)])
def test_a_reason_is_cut_where_it_is_made_and_says_so(kind):
    text = kind("why " * 1_000_000)
    outcome = Outcome("error", text)
    check = CheckResult("c", "cases", "a-x-up", "failed", {}, "", "up", str(text), text)
    for reason in (outcome.reason, check.reason, check.known):
        assert reason.startswith("why why")
        assert len(reason) <= MOST_TEXT
        assert reason.endswith("more characters)")


def test_the_notice_of_a_cut_survives_the_wire():
    outcome = Outcome("error", "why " * 1_000_000)
    chosen = RunSettings("smoke", 8, 0, "cpu", ["one"], of_cases=1, of_methods=1)
    result = CaseResult("a-x-up", True, 8, 0.5, {"one": outcome})
    sent = loads(Envelope, dumps(Envelope("a-x-up", chosen, "", threads=1, case=result)))
    assert sent.case.outcomes["one"].reason == outcome.reason
