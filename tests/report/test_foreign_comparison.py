"""Comparisons full of foreign text have the shape of comparisons full of plain text."""

import json
from dataclasses import replace

from hypothesis import example, given, settings

from attrcheck.registry import LONGEST
from attrcheck.report import changes, markdown, terminal
from attrcheck.report.comparing import compare
from attrcheck.report.details import Details
from attrcheck.report.html import comparison as page
from attrcheck.report.html import page as report_page
from tests.report.test_foreign_text import MEGABYTES, document, read, shape
from tests.report.test_text import TEXTS


def comparison(text):
    """One with this text wherever one of others may stand, in all its parts."""
    old, name = document(text), text[:LONGEST]
    mine, other = f"m{name}", f"n{name}"
    first, second = (replace(case, data="d", weights="w") for case in old.cases)
    score = first.scores[mine]
    moved = {
        **first.scores,
        mine: replace(score, score=0.1),
        "random": replace(score, score=None, status="error", reason=f"r{text}"),
    }
    tuned = replace(second, protocol_settings={f"k{name}": f"w{name}"})
    run = replace(old.run, machine=f"z{name}", versions={f"u{name}": f"v{name}"})
    new = replace(
        old,
        cases=[replace(first, scores=moved), tuned],
        run=run,
        settings=replace(old.settings, methods=[mine, "random", f"p{name}"]),
    )
    assert other in old.settings.methods
    sides = (replace(old, cases=[first, second]), Details()), (new, Details())
    return compare(*sides, (f"o{name}", f"n{name}"))


PLAIN = comparison("x")
SHAPES = {
    "terminal": len(changes.render(PLAIN).splitlines()),
    "markdown": shape(read(changes.as_markdown(PLAIN))),
    "html": shape(page.render(PLAIN)),
    "json": json.loads(changes.as_json(PLAIN)).keys(),
}


@settings(max_examples=20, deadline=None)
@given(TEXTS)
@example(MEGABYTES)
def test_no_text_changes_the_shape_of_a_comparison(text):
    found = comparison(text)
    on_terminal = changes.render(found)
    assert len(on_terminal.splitlines()) == SHAPES["terminal"]
    assert on_terminal.replace("\n", "").isprintable()
    in_markdown = changes.as_markdown(found)
    assert shape(read(in_markdown)) == SHAPES["markdown"]
    assert in_markdown.replace("\n", "").isprintable()
    in_html = page.render(found)
    assert shape(in_html) == SHAPES["html"]
    assert in_html.replace("\n", "").isprintable()
    in_json = json.loads(changes.as_json(found).encode("ascii"))
    assert in_json.keys() == SHAPES["json"]


@settings(max_examples=5, deadline=None)
@given(TEXTS)
def test_a_report_that_tells_of_it_keeps_its_shape_too(text):
    plain = replace(document("x"), baseline=changes.gist(PLAIN))
    found = replace(document(text), baseline=changes.gist(comparison(text)))
    assert len(terminal.render(found).splitlines()) == len(terminal.render(plain).splitlines())
    assert shape(read(markdown.render(found))) == shape(read(markdown.render(plain)))
    shapes = [shape(report_page.render(one, Details())) for one in (found, plain)]
    assert shapes[0] == shapes[1]
