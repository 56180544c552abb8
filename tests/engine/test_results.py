import json
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attrcheck.engine.results import CaseResult, Outcome

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
CURVES = st.lists(st.tuples(NUMBERS, NUMBERS)).map(
    lambda points: ([x for x, _ in points], [y for _, y in points])
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
    seconds=st.none() | NUMBERS,
    constant=st.integers(0, 1000),
)
RESULTS = st.builds(
    CaseResult,
    case=st.just("digits-resnet-morf"),
    higher_is_better=st.booleans(),
    images=st.integers(1, 1000),
    accuracy=NUMBERS,
    outcomes=st.dictionaries(st.text(), OUTCOMES, max_size=3),
    problems=st.lists(st.text(), max_size=2),
)


def sent(result):
    """The result as it arrives at the controller."""
    return CaseResult.of(json.loads(json.dumps(result.plain(), allow_nan=False)))


@given(RESULTS)
def test_a_result_crosses_the_wire_bit_for_bit(result):
    arrived = sent(result)
    for name, outcome in result.outcomes.items():
        there = arrived.outcomes[name]
        assert there.replicates.dtype == np.float64
        assert there.replicates.tobytes() == outcome.replicates.tobytes()
        for key in vars(outcome).keys() - {"replicates", "curve"}:
            assert getattr(there, key) == getattr(outcome, key)
        assert (there.curve and list(there.curve)) == (outcome.curve and list(outcome.curve))
    assert list(arrived.outcomes) == list(result.outcomes)
    assert {**vars(arrived), "outcomes": 0} == {**vars(result), "outcomes": 0}


@given(RESULTS)
def test_making_a_result_plain_does_not_change_it(result):
    once = json.dumps(result.plain(), allow_nan=False)
    assert json.dumps(result.plain(), allow_nan=False) == once
    assert json.dumps(sent(result).plain(), allow_nan=False) == once


def test_replicates_without_a_score_cross_too():
    values = np.array([math.nan, 0.1, -0.0, math.inf])
    result = CaseResult("a-b-c", True, 1, 1.0, {"m": Outcome("ok", replicates=values)})
    assert sent(result).outcomes["m"].replicates.tobytes() == values.tobytes()


def test_a_curve_is_a_pair_again():
    outcome = Outcome("ok", score=0.5, curve=([0.0, 1.0], [0.5, 0.25]))
    arrived = sent(CaseResult("a-b-c", True, 1, 1.0, {"m": outcome}))
    assert arrived.outcomes["m"].curve == ([0.0, 1.0], [0.5, 0.25])


def test_a_gap_in_a_curve_does_not_stop_a_result():
    outcome = Outcome("ok", score=0.5, curve=([0.0, 1.0], [0.5, math.nan]))
    json.dumps(CaseResult("a-b-c", True, 1, 1.0, {"m": outcome}).plain(), allow_nan=False)
