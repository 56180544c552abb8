from dataclasses import replace

import pytest

from attrcheck.report import trust, verdicts
from attrcheck.report.types import CaseEntry
from tests.report.samples import check as result
from tests.report.samples import empty


def document(*checks, protocols=("up", "down"), methods=()):
    return empty(
        protocol_verdicts=verdicts.of_protocols(protocols, checks),
        method_verdicts=verdicts.of_methods(methods, checks),
        checks=list(checks),
    )


def rows(table):
    """All cells as text, the header first."""
    return [[str(cell) for cell in row] for row in (table.headers, *table.rows)]


def test_without_checks_there_is_nothing_to_say():
    empty = document()
    assert trust.protocols(empty) == trust.tables(empty) == trust.summary(empty) == []


def test_the_table_has_a_row_for_each_protocol_and_a_dash_for_what_was_not_run():
    [table] = trust.protocols(
        document(
            result("dummy_floor", unreliability=0.25),
            result("dummy_floor", subject="a-x-down", status="failed", unreliability=0.75),
            result("seed", rank_correlation=0.951),
            result("seed", subject="b-x-up", status="known_failure", rank_correlation=0.55),
            result("value_sensitivity", "protocols", "up", hausdorff=0.019),
            result("linear_ground_truth", "protocols", "up", anything=3.0),
            result("checkpoints", at_25=0.5),
            result("my_own", status="failed"),
        )
    )
    assert table.title == "Which protocol to trust"
    header, up, down = rows(table)
    assert dict(zip(header, up, strict=True)) == {
        "protocol": "up",
        "trust": "75% of 6",
        "cases": "1",
        "dummy floor": "0.25 (1/1)",
        "measured output": "-",
        "attributed output": "-",
        "seed": "0.75 (1/2)",
        "half images": "-",
        "other removal": "-",
        "other grid": "-",
        "value sensitivity": "0.02 (1/1)",
        "linear ground truth": "1/1",
        "others": "1/2",
    }
    # One check is too little to say anything.
    assert down[:4] == ["down", "-", "1", "0.75 (0/1)"]
    assert set(down[4:]) == {"-"}
    assert "not a pass" in table.note


def test_methods_that_failed_are_shown_with_their_reasons():
    long = "one reason | that " + "goes on " * 50
    table, _ = trust.tables(
        document(
            result("contract", "methods", "good"),
            result("contract", "methods", "bad", "failed", "two calls\ndiffer"),
            result("randomisation", "methods", "bad", "known_failure", long),
            result("contract", "methods", "away", "not_applicable"),
            result("seed", status="failed"),
            protocols=(),
            methods=["good", "bad", "away"],
        )
    )
    assert table.title == "Methods and their checks"
    header, good, bad, away = rows(table)
    assert header == ["method", "checks passed", "failed", "known to fail"]
    assert good == ["good", "1/1", "", ""]
    assert bad[:3] == ["bad", "0/2", "contract: two calls differ"]
    assert bad[3].startswith("randomisation: one reason | that goes")
    assert bad[3].endswith("...")
    assert len(bad[3]) < 350
    assert away == ["away", "-", "", ""]


def test_failures_of_one_check_and_protocol_share_a_row():
    _, table = trust.tables(
        document(
            result("seed", subject="b-x-up", status="known_failure", reason="as published"),
            result("seed", subject="a-x-up", status="failed", reason="0.3 | below"),
            result("seed", subject="c-x-up", status="failed", reason="0.4"),
            result("seed", subject="d-x-up"),
            result("seed", subject="e-x-up", status="not_applicable", reason="too few"),
            result("value_sensitivity", "protocols", "up", "failed", "0.3 apart"),
            result("similar", "models", "a-x", "failed", "unlike"),
            result("gaming", "suite", "", "failed", "lifted"),
            result("contract", "methods", "one", "failed", "elsewhere"),
        )
    )
    assert table.title == "Failed checks, those of methods aside"
    assert rows(table)[1:] == [
        ["gaming", "the suite", "failed", "1", "lifted"],
        ["seed", "up", "failed", "2", "a-x-up: 0.3 | below"],
        ["similar", "a-x", "failed", "1", "unlike"],
        ["value_sensitivity", "up", "failed", "1", "0.3 apart"],
        ["seed", "up", "known failure", "1", "b-x-up: as published"],
    ]


def test_what_is_said_to_fail_and_passes_in_every_case_is_told():
    known = {"known": "too few images"}
    found = document(
        result("seed", subject="a-x-up", **known),
        result("seed", subject="b-x-up", **known),
        result("seed", subject="a-x-down", **known),
        result("seed", subject="b-x-down", status="known_failure", reason="0.2", **known),
        result("seed", subject="c-x-up", status="not_applicable", reason="too few", **known),
    )
    [table] = trust.tables(found)
    assert rows(table)[1:] == [
        ["seed", "down", "known failure", "1", "b-x-down: 0.2"],
        ["seed", "up", "said to fail, but passed", "2", "a-x-up: too few images"],
    ]


def test_what_is_known_comes_last():
    known = [result(f"k{at}", status="known_failure", reason="known") for at in range(50)]
    [table] = trust.tables(document(*known, result("z", status="failed", reason="unknown")))
    assert len(rows(table)) == 52
    assert rows(table)[1][0] == "z"


def founded(name, floor, status="passed"):
    """Checks enough for a verdict on a protocol."""
    subject = f"a-x-{name}"
    return [
        result("dummy_floor", subject=subject, status=status, unreliability=floor),
        result("seed", subject=subject, status=status),
        result("half_images", subject=subject, status=status),
    ]


def test_one_line_says_which_protocol_to_trust():
    checks = [*founded("up", 0.25), *founded("down", 0.75, "failed"), *founded("middle", 0.5)]
    [line] = trust.summary(document(*checks))
    assert (
        line == "protocol to trust: up (100% of checks, floor 0.25); least: down (0%, floor 0.75)"
    )
    assert trust.summary(document(*founded("up", 0.25), protocols=["up", "unchecked"])) == [
        "protocol to trust: up (100% of checks, floor 0.25)"
    ]


def test_protocols_that_nothing_tells_apart_are_not_ranked_by_the_alphabet():
    checks = [check for name in "abc" for check in founded(name, 0.5)]
    assert trust.summary(document(*checks, protocols=())) == [
        "protocols to trust: all 3 alike (100% of checks, floor 0.50)"
    ]


@pytest.mark.parametrize(("checks", "images"), [(2, 100), (3, 8)])
def test_two_checks_or_eight_images_do_not_make_a_protocol_trustworthy(checks, images):
    case = CaseEntry("a-x-up", "a", "x", "up", True, images, 0.9, {}, {}, {})
    found = replace(document(*founded("up", 0.0)[:checks]), cases=[case])
    assert trust.summary(found) == [
        "no protocol is called trustworthy: that takes verdicts of 3 checks, and 20 images in each "
        "case"
    ]
