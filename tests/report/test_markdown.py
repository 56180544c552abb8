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
from tests.report.samples import check as check_result


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
        "# attrcheck report",
        "## Leaderboard",
        "## Consistency",
        "## Cases",
        "## Without a score",
        "## Protocols",
        "## Run",
    ]


def test_a_protocol_is_shown_with_its_settings_and_cost():
    passes = {"attribution": [1.0, 1.0], "observation": [9.0, 2.0]}
    outcome = Outcome("ok", score=0.5, replicates=np.ones(10), seconds=0.1, passes=passes)
    case = CaseResult("a-x-up", True, 8, 0.875, {"one": outcome}, {"steps": 10})
    found = document(condense(case))
    assert cells(markdown.render(found), "up") == ["up", "higher", "8", "13", "steps=10"]


def test_fine_tuned_models_are_shown_before_and_after():
    facts = {
        "removal": "mean",
        "grid": 4,
        "accuracy": {"before": 0.9, "after": 0.95},
        "worst_cell": {"before": 0.5, "after": 0.75},
        "similarity": {"label_probability": 0.0494, "gradcam": None},
    }
    outcome = Outcome("ok", score=0.5, replicates=np.ones(10), seconds=0.1)
    case = CaseResult("a-x-up", True, 8, 0.875, {"one": outcome}, tuning=facts)
    row = cells(markdown.render(document(condense(case))), "a-x")
    assert row == ["a-x", "mean, 4x4", "90.0% -> 95.0%", "50.0% -> 75.0%", "0.049", "-"]


def test_the_board_is_a_table(two):
    row = cells(markdown.render(two), "1")
    assert row[1] == "two"
    assert len(row) == len(cells(markdown.render(two), "rank")) == 8


def test_a_case_shows_scores_with_ranks_best_method_first(two):
    text = markdown.render(two)
    assert cells(text, "case") == ["case", "better", "images", "accuracy", "two", "one"]
    assert cells(text, "a-x-up") == [
        "a-x-up", "higher", "8", "87.5%", "0.500 (1)", "0.250 (2)",
    ]  # fmt: skip
    assert cells(text, "b-x-down")[1:] == ["lower", "8", "87.5%", "0.500 (1)", "0.750 (2)"]


def test_a_method_without_a_score_in_one_case_shows_why_in_its_cell():
    found = document(result("a-x-up", one=0.25, two=None), result("b-x-up", one=0.5, two=0.25))
    assert cells(markdown.render(found), "a-x-up")[4:] == ["0.250 (1)", "error"]


def test_methods_without_a_score_are_listed_with_the_reason(two):
    assert "- broken in 2 cases, first a-x-up: error: it broke" in markdown.render(two).splitlines()


def test_the_unexplained_share_is_told(two):
    assert "leaves 0% of the pairwise results unexplained" in markdown.render(two)


def test_without_a_board_the_scores_of_the_cases_are_still_there():
    found = document(result("a-x-up", one=0.25, two=None), result("b-x-up", one=None, two=0.125))
    text = markdown.render(found)
    assert "no leaderboard: no case compares" in text
    assert "0.250 (1)" in text
    assert "0.125 (1)" in text


def test_gates_say_whether_they_held(two):
    held = GateResult("two.rank == 1", True, False, ("two.rank is 1",))
    broken = GateResult("one.rank == 1", False, False, ("one.rank is 2", "not 1"))
    two = replace(two, gates=[held, broken])
    lines = markdown.render(two).splitlines()
    assert "- passed `two.rank == 1`: two.rank is 1" in lines
    assert "- **failed** `one.rank == 1`: one.rank is 2; not 1" in lines


def check(over, subject, status="passed", reason="", **figures):
    return check_result("some_check", over, subject, status, reason, **figures)


def test_checks_add_their_sections():
    checks = [check("methods", "one"), check("cases", "a-x-up", "failed", "why")]
    found = document(result("a-x-up", one=0.25, two=0.5), checks=checks)
    assert [entry.method for entry in found.method_verdicts] == ["one"]
    assert [entry.protocol for entry in found.protocol_verdicts] == ["up"]
    text = markdown.render(
        replace(found, gates=[GateResult("r", passed=True, error=False, lines=())])
    )
    assert headings(text) == [
        "# attrcheck report",
        "## Leaderboard",
        "## Gates",
        "## Which protocol to trust",
        "## Methods and their checks",
        "## Cases",
        "## Protocols",
        "## Failed checks, those of methods aside",
        "## Run",
    ]


def test_hundreds_of_passed_checks_take_no_rows():
    checks = [check("cases", f"d{at}-x-up") for at in range(300)]
    found = document(result("a-x-up", one=0.25, two=0.5), checks=checks)
    assert markdown.render(found).count("some_check") == 0
    assert "300/300" in markdown.render(found)


@pytest.mark.parametrize("reason", ["a | b", "first line\nsecond line", "a|b\r\n|c"])
def test_no_reason_breaks_a_table_or_a_list(reason):
    checks = [check("methods", "one", "failed", reason), check("cases", "a-x-up", "failed", reason)]
    cases = [result("a-x-up", one=0.25, broken=None), result("b-x-up", one=0.25, broken=None)]
    found = document(*cases, checks=checks)
    first = found.cases[0]
    scores = first.scores | {"broken": replace(first.scores["broken"], reason=reason)}
    found = replace(found, cases=[replace(first, scores=scores), *found.cases[1:]])
    lines = markdown.render(found).splitlines()
    [row] = [line for line in lines if line.startswith("| some_check")]
    assert row.replace(r"\|", "").count("|") == 6
    [row] = [line for line in lines if line.startswith("| one ") and "some_check" in line]
    assert row.replace(r"\|", "").count("|") == 5
    at = lines.index("## Without a score")
    below = lines[at + 2 : lines.index("", at + 2)]
    assert len(below) == 2
    assert all(line.startswith("- broken in ") for line in below)


def test_the_run_is_described(two):
    text = markdown.render(two)
    assert "- started: 2024-01-01T00:00:00Z" in text
    assert "seconds_per_image" not in text


def test_a_report_can_be_rendered_from_its_json(two):
    assert markdown.render(loads(Document, dumps(two))) == markdown.render(two)


def test_a_run_in_which_nothing_arrived_can_be_rendered():
    text = markdown.render(build([], [], settings(), ["a-x-up"], RUN))
    assert "INCOMPLETE" in text
    assert "no leaderboard: no method has a score" in text
