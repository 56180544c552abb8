import numpy as np
import pytest

from attrcheck import consistency as agreement
from attrcheck.contracts import Case
from attrcheck.report import consistency
from attrcheck.report.types import Pairwise
from attrcheck.table import Table
from tests.report.samples import empty

UP, OTHER, DOWN = [4, 3, 2, 1], [4, 2, 3, 1], [1, 2, 3, 4]


def document(rows, checkpoints=(), residual=0.25):
    """The part of a document that the section shows, of rows by case."""
    scores = np.array(list(rows.values()), dtype=float).reshape(len(rows), -1)
    table = Table(
        [Case.of(case) for case in rows],
        list("wxyz")[: scores.shape[1]],
        scores,
        np.ones(len(rows), dtype=bool),
    )
    return empty(
        cases=list(rows),
        consistency=agreement.study(table, checkpoints),
        pairwise=Pairwise(residual=residual),
    )


def rows_of(tables, start):
    """Cells of the first table whose header starts like this, without the header."""
    chosen = next(table for table in tables if table.headers[0] == start)
    return [[str(cell) for cell in row] for row in chosen.rows]


@pytest.fixture
def tables():
    cases = {"a-m-one": UP, "a-n-one": UP, "b-m-one": OTHER, "a-m-two": DOWN}
    return consistency.tables(document(cases, [("a-m-one", "at_25", 0.7)]))


def test_levels_and_bands_are_counted(tables):
    """Against UP, OTHER has a correlation of 0.8 and DOWN of -1."""
    assert rows_of(tables, "rankings") == [
        ["across models", "1", "1", "0", "0", "0", "1.00"],
        ["across datasets", "1", "0", "1", "0", "0", "0.80"],
        ["across protocols", "1", "0", "0", "1", "0", "-1.00"],
        ["along training", "1", "0", "1", "0", "0", "0.70"],
    ]


def test_a_protocol_is_compared_with_itself_and_with_others(tables):
    assert rows_of(tables, "protocol") == [
        ["one", "1.00 (1/0/0)", "0.80 (0/1/0)", "-1.00 (0/0/1)", "0.70 (0/1/0)"],
        ["two", "-", "-", "-1.00 (0/0/1)", "-"],
    ]


def test_w_and_the_residual_are_told(tables):
    """Centred ranks add up to UP + OTHER = (-3, 0, 0, 3): W = 18 / (4 * 20) = 0.225."""
    text = tables[0].note
    assert "Kendall's W is 0.2" in text
    assert "(1: all rank alike) over 4 cases and the 4 of 4 methods scored in each." in text
    assert "One scale leaves 25% of the pairwise results unexplained" in text


def test_the_case_most_at_odds_comes_first(tables):
    """On the board x and y share a place, so DOWN has -4.5 / sqrt(5 * 4.5) with it."""
    first, *_ = rows_of(tables, "case")
    assert first == ["a-m-two", "-0.95", "-1.00", "0.95", "y: 2 to 3", "the same"]


def test_the_board_without_a_protocol(tables):
    one, two = rows_of(tables, "without")
    assert one == ["one", "-0.95", "w: 1 to 4", "z (new)"]
    assert two == ["two", "0.95", "y: 2 to 3", "the same"]


def test_a_board_of_one_protocol_is_not_shown_without_it():
    tables = consistency.tables(document({f"a-m{at}-one": UP for at in range(9)}))
    assert len(rows_of(tables, "case")) == 9
    assert "The board without one protocol" not in [table.title for table in tables]


def test_one_case_has_nothing_to_agree_with():
    one = document({"a-m-one": UP})
    assert consistency.tables(one) == consistency.summary(one) == []


def test_too_few_methods_leave_dashes_and_say_why():
    found = document({"a-m-one": [1, 2], "a-n-one": [1, 2]}, residual=None)
    tables = consistency.tables(found)
    text = tables[0].note
    assert rows_of(tables, "rankings")[0] == ["across models", "1", "0", "0", "0", "1", "-"]
    assert "Kendall's W of the cases is undefined: fewer than 4 methods have a score" in text
    assert "unexplained" not in text
    assert [table.headers[0] for table in tables] == ["rankings", "protocol"]


def test_a_board_that_falls_apart_is_none():
    found = document({"a-m-one": UP, "a-m-two": [np.nan] * 4})
    tables = consistency.tables(found)
    assert rows_of(tables, "without")[0] == ["one", "no board", "no board", "no board"]


def test_one_line_for_the_terminal():
    [line] = consistency.summary(document(dict.fromkeys([f"a-m{i}-one" for i in range(216)], UP)))
    assert line.startswith("Kendall's W is 1.00")
    assert len(line) <= 100
