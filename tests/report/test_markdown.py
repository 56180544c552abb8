from dataclasses import replace

import numpy as np
import pytest

from attrcheck.engine.resampling import condense
from attrcheck.engine.results import CaseResult, Outcome
from attrcheck.engine.wire import dumps, loads
from attrcheck.gate import GateResult
from attrcheck.report import markdown
from attrcheck.report.document import build
from attrcheck.report.types import Document
from tests.report.samples import RUN, settings


def result(case, higher=True, **scores):
    outcomes = {
        name: Outcome("error", "it broke")
        if score is None
        else Outcome("ok", score=score, replicates=np.linspace(score, score + 0.1, 10), seconds=0.1)
        for name, score in scores.items()
    }
    return condense(CaseResult(case, higher, 8, 0.875, outcomes))


def document(*results, checks=(), **more):
    chosen = settings(results[0].outcomes, of_methods=3, of_cases=2)
    return replace(build(list(results), list(checks), chosen, [], RUN), **more)


@pytest.fixture
def two():
    return document(
        result("a-x-up", one=0.25, two=0.5, broken=None),
        result("b-x-down", higher=False, one=0.75, two=0.5, broken=None),
    )


def cells(text, start):
    """The cells of the first table row that starts with this cell."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return next(row for row in rows if row[0] == start)


def headings(text):
    return [line for line in text.splitlines() if line.startswith("#")]


def test_the_report_has_its_sections_in_order(two):
    assert headings(markdown.render(two)) == [
        "# attrcheck report: no gates to keep, 1 method failed",
        "## Leaderboard",
        "## Without a score",
    ]
    gates = [GateResult("r", passed=True, error=False, lines=())]
    assert headings(markdown.render(replace(two, gates=gates)))[:3] == [
        "# attrcheck report: all 1 gates hold, 1 method failed",
        "## Gates",
        "## Leaderboard",
    ]


def test_the_board_is_a_table(two):
    row = cells(markdown.render(two), "1")
    assert row[1] == "two"
    assert row[-1] == "0.1000"
    assert len(row) == len(cells(markdown.render(two), "#")) == 9


def test_methods_without_a_score_are_listed_with_the_reason(two):
    line = "- broken fails in 2 cases (a-x-up, b-x-down): it broke"
    assert line in markdown.render(two).splitlines()


def test_without_a_board_the_reason_is_there():
    found = document(result("a-x-up", one=0.25, two=None), result("b-x-up", one=None, two=0.125))
    assert "no leaderboard: no case compares" in markdown.render(found)


def test_gates_say_whether_they_held(two):
    held = GateResult("two.rank == 1", True, False, ("two.rank is 1",))
    broken = GateResult("one.rank == 1", False, False, ("one.rank is 2", "not 1"))
    two = replace(two, gates=[held, broken])
    lines = markdown.render(two).splitlines()
    assert "- holds `two.rank == 1`: two.rank is 1" in lines
    assert "- **broken** `one.rank == 1`: one.rank is 2; not 1" in lines


def test_a_report_of_any_size_is_read_in_a_minute():
    scores = {f"method_{number}": number / 30 for number in range(30)}
    found = document(*(result(f"d-x-p{number}", **scores) for number in range(300)))
    assert len(markdown.render(found).splitlines()) < 60


@pytest.mark.parametrize("reason", ["a | b", "first line\nsecond line", "a|b\r\n|c"])
def test_no_reason_breaks_a_list(reason):
    cases = [result("a-x-up", one=0.25, broken=None), result("b-x-up", one=0.25, broken=None)]
    found = document(*cases)
    first = found.cases[0]
    scores = first.scores | {"broken": replace(first.scores["broken"], reason=reason)}
    found = replace(found, cases=[replace(first, scores=scores), *found.cases[1:]])
    lines = markdown.render(found).splitlines()
    at = lines.index("## Without a score")
    below = lines[at + 2 : lines.index("", at + 2)]
    assert len(below) == 2
    assert all(line.startswith("- broken fails in 1 case (") for line in below)


def test_the_run_is_described(two):
    text = markdown.render(two)
    assert (
        "01-01T00:00:00Z, 1 s on a machine, Python 3.11.7, torch 2.4; scores: 0, 0 of them" in text
    )


def test_a_report_can_be_rendered_from_its_json(two):
    assert markdown.render(loads(Document, dumps(two))) == markdown.render(two)


def test_a_run_in_which_nothing_arrived_can_be_rendered():
    text = markdown.render(build([], [], settings(), ["a-x-up"], RUN))
    assert "INCOMPLETE" in text
    assert "no leaderboard: no method has a score" in text
