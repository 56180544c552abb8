import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attrcheck.engine.results import (
    CaseResult,
    CheckResult,
    Curve,
    Envelope,
    Outcome,
    RunSettings,
    plain_figures,
)
from attrcheck.engine.wire import dumps, loads

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
CURVES = st.lists(st.tuples(NUMBERS, NUMBERS)).map(
    lambda points: Curve([x for x, _ in points], [y for _, y in points])
)
OUTCOMES = st.builds(
    Outcome,
    status=st.sampled_from(["ok", "undefined", "not_applicable", "error"]),
    reason=st.text(),
    score=st.none() | NUMBERS,
    low=st.none() | NUMBERS,
    high=st.none() | NUMBERS,
    curve=st.none() | CURVES,
    replicates=arrays(np.float64, st.integers(0, 5), elements=st.floats()),
    beats_random=st.none() | st.booleans(),
    seconds=st.none() | NUMBERS,
    constant_maps=st.integers(0, 1000),
    undefined_images=st.integers(0, 1000),
    passes=st.dictionaries(st.text(), st.lists(NUMBERS, max_size=2), max_size=2),
)
RESULTS = st.builds(
    CaseResult,
    case=st.just("digits-resnet-morf"),
    higher_is_better=st.booleans(),
    images=st.integers(1, 1000),
    accuracy=NUMBERS,
    outcomes=st.dictionaries(st.text(), OUTCOMES, max_size=3),
    problems=st.lists(st.text(), max_size=2),
    standings=arrays(np.uint8, (3, 2)) | arrays(np.float64, (2, 1), elements=st.floats()),
)


SETTINGS = RunSettings("smoke", 8, 0, "cpu", ["one", "two"], of_cases=2, of_methods=3)


def sent(result):
    """The result as it arrives at the controller."""
    envelope = Envelope("digits-resnet-morf", SETTINGS, "whole", threads=1, case=result)
    return loads(Envelope, dumps(envelope)).case


@given(RESULTS)
def test_a_result_crosses_the_wire_bit_for_bit(result):
    arrived = sent(result)
    for name, outcome in result.outcomes.items():
        there = arrived.outcomes[name]
        assert isinstance(there, Outcome)
        assert len(there.replicates) == 0
        for key in vars(outcome).keys() - {"replicates"}:
            np.testing.assert_equal(getattr(there, key), getattr(outcome, key))
    assert list(arrived.outcomes) == list(result.outcomes)
    assert arrived.standings.dtype == result.standings.dtype
    np.testing.assert_array_equal(arrived.standings, result.standings)
    whole = {"outcomes": 0, "standings": 0}
    assert {**vars(arrived), **whole} == {**vars(result), **whole}


@given(RESULTS)
def test_sending_a_result_does_not_change_it(result):
    once = dumps(result)
    assert dumps(result) == once
    assert dumps(sent(result)) == once


def test_a_check_crosses_with_all_its_figures():
    figures = {"value": 0.5, "curve": [0.0, None], "by_name": {"a": 1.0}}
    check = CheckResult("seed", "cases", "a-b-c", "failed", figures, protocol="c", reason="why")
    envelope = Envelope("seed-a-b-c", SETTINGS, "whole", threads=2, check=check)
    assert loads(Envelope, dumps(envelope)) == envelope


def test_a_gap_in_a_curve_does_not_stop_a_result():
    curve = Curve.of(([0.0, 1.0], [0.5, math.nan]))
    assert curve == Curve([0.0, 1.0], [0.5, None])
    assert Curve.of(None) is None
    result = CaseResult("a-b-c", True, 1, 1.0, {"m": Outcome("ok", score=0.5, curve=curve)})
    assert sent(result).outcomes["m"].curve == curve


def test_nan_anywhere_else_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps(CaseResult("a-b-c", True, 1, math.nan, {}))


def test_figures_of_any_kind_become_plain():
    figures = {"a": np.float32(0.5), "b": math.nan, "c": (1, np.inf), "d": {"e": 2}, "f": None}
    assert plain_figures(figures) == {
        "a": 0.5, "b": None, "c": [1.0, None], "d": {"e": 2.0}, "f": None,
    }  # fmt: skip
