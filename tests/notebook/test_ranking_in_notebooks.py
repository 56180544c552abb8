"""Ranks and boards of plain numbers, and what may not be compared."""

import math

import pytest
import torch

import attrcheck
from attrcheck.metarank import fuse
from attrcheck.notebook.inputs import InputError
from tests.notebook.test_notebook import GREY, MODEL


def test_plain_numbers_are_ranked_best_first():
    ranks = attrcheck.rank({"a": 0.2, "b": 0.9, "c": 0.2, "d": math.nan})
    assert list(ranks) == ["b", "a", "c", "d"]
    assert ranks["b"] == 1
    assert ranks["a"] == ranks["c"] == 2.5
    assert math.isnan(ranks["d"])
    assert list(attrcheck.rank({"a": 0.2, "b": 0.9}, higher_is_better=False)) == ["a", "b"]


def test_a_board_of_plain_numbers_has_the_scale_of_the_fusion_and_no_intervals():
    cases = {"one": {"a": 3.0, "b": 2.0, "c": 1.0}, "two-b": {"a": 1.0, "b": 2.0}}
    board = attrcheck.fuse(cases, higher_is_better={"one": True, "two-b": False})
    kappa = fuse([[3, 2, 1], [-1, -2, math.nan]]).kappa
    assert [entry.method for entry in board] == ["a", "b", "c"]
    assert [board[name].meta_rank for name in "abc"] == pytest.approx(kappa.tolist())
    assert board["a"].low is None
    assert len(board) == 3
    with pytest.raises(KeyError):
        _ = board["d"]


def test_what_is_not_of_one_case_is_not_compared():
    maps = torch.rand(3, 4, 4)
    one = attrcheck.score("morf", MODEL, GREY, [0, 1, 1], maps)
    other = attrcheck.score("lerf", MODEL, GREY, [0, 1, 1], maps)
    fewer = attrcheck.score("morf", MODEL, GREY[:2], [0, 1], maps[:2])
    for different in (other, fewer):
        with pytest.raises(InputError, match="they are not of one case, but by"):
            attrcheck.rank({"a": one, "b": different})
    with pytest.raises(InputError, match="case 'x': 'b' is a plain number among scores"):
        attrcheck.fuse({"x": {"a": one, "b": 0.5}})
    with pytest.raises(InputError, match="there are no scores"):
        attrcheck.rank({})
    with pytest.raises(InputError, match="no case to fuse"):
        attrcheck.fuse({})


def test_names_are_escaped_in_notebooks():
    name = "<script>alert(1)</script>"
    for shown in (attrcheck.rank({name: 1.0}), attrcheck.fuse({"x": {name: 1.0, "b": 0.5}})):
        assert "<script>" not in shown._repr_html_()
        assert "&lt;script&gt;" in shown._repr_html_()
