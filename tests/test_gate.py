import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrcheck.gate import (
    CASE_FIGURES,
    FIGURES,
    KINDS,
    METHOD_FIGURES,
    OPERATORS,
    PROTOCOL_FIGURES,
    Gate,
    GateSyntaxError,
    parse,
)

subjects = st.from_regex(r"[a-z*?][a-z0-9_.*?]*", fullmatch=True)
numbers = st.floats(allow_nan=False, allow_infinity=False)
gaps = st.text(" \t", max_size=2)


@given(subjects, st.sampled_from(list(FIGURES)), st.sampled_from(list(OPERATORS)), numbers, gaps)
def test_round_trip(subject, figure, operator, value, gap):
    text = f"{subject}.{figure}{gap}{operator}{gap}{value!r}"
    assert parse(f"{gap}{text}{gap}") == Gate(text, subject, figure, operator, value)


@given(subjects, st.sampled_from([*FIGURES]), st.sampled_from([*OPERATORS]), numbers, gaps)
def test_round_trip_of_a_baseline(subject, figure, operator, value, gap):
    sign = "-" if math.copysign(1, value) < 0 else "+"
    text = f"{subject}.{figure} {operator} baseline{gap}{sign}{gap}{abs(value)!r}"
    assert parse(text) == Gate(text, subject, figure, operator, value, baseline=True)


@given(
    subjects,
    st.sampled_from([*CASE_FIGURES]),
    st.from_regex(r"[a-z*]+-[a-z0-9_.:*]+-[a-z*]+", fullmatch=True),
    numbers,
)
def test_round_trip_of_a_single_case(subject, figure, case, value):
    text = f"{subject}.{figure}.{case} >= {value!r}"
    assert parse(text) == Gate(text, subject, figure, ">=", value, case)


def test_a_single_case_against_a_baseline():
    gate = parse("my.other.score.digits-*-morf >= baseline - 0.02")
    assert (gate.subject, gate.figure, gate.case) == ("my.other", "score", "digits-*-morf")
    assert (gate.operator, gate.value, gate.baseline) == (">=", -0.02, True)
    assert (gate.kind, gate.wanted) == ("method", "baseline - 0.02")
    assert parse("a.rank<=baseline").wanted == "baseline"
    assert parse("a.rank <= baseline+1").wanted == "baseline + 1"


@pytest.mark.parametrize("operator", ["==", ">="])
def test_all(operator):
    gate = parse(f"my_method.beats_random {operator} all")
    assert (gate.operator, gate.value) == (operator, "all")


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3), ("+.5", 0.5), ("-2.", -2), ("1e-3", 0.001), ("2E2", 200)]
)
def test_numbers(text, value):
    assert parse(f"a.rank<{text}").value == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no comparison, one of >= <= > < == !="),
        ("my_method.meta_rank", "no comparison"),
        ("my_method.meta_rank = 0", "no comparison"),
        ("my_method.meta_rank => 0", "no comparison"),
        ("my_method >= 0", "'my_method' is not a name, a dot and a figure"),
        (".meta_rank >= 0", "'.meta_rank' is not a name"),
        (">= 0", "'' is not a name"),
        ("my method.rank >= 0", "'my method' is neither a name nor a glob"),
        ("'ig'.rank >= 0", "neither a name nor a glob"),
        ("ig.meta_rnk >= 0", "there is no figure 'meta_rnk' (did you mean meta_rank"),
        (
            "ig.beat_random == all",
            "there is no figure 'beat_random' (did you mean beats_random?); ",
        ),
        ("ig.xyz >= 0", "there is no figure 'xyz' (figures of methods: meta_rank"),
        ("ig.rank. >= 0", "there is no figure ''"),
        ("ig.rank >=", "'' is neither a number nor 'all'"),
        ("ig.rank >= first", "'first' is neither a number nor 'all'"),
        ("ig.rank >= 1 2", "'1 2' is neither"),
        ("ig.rank >= 1_0", "'1_0' is neither"),
        ("ig.rank >== 1", "'= 1' is neither"),
        ("ig.rank >= nan", "'nan' is neither"),
        ("ig.rank >= inf", "'inf' is neither"),
        ("ig.rank >= 1e999", "'1e999' is too large"),
        ("ig.rank >= ٣", "'٣' is neither"),
        ("1 <= ig.rank <= 5", "'1' is not a name"),
        ("ig.rank <= all", "'all' fits only what is counted: beats_random, checks"),
        ("sds.dummy_flor <= 0.1", "there is no figure 'dummy_flor' (did you mean dummy_floor?); "),
        ("sds.dummy_floor == all", "'all' fits only what is counted: beats_random, checks"),
        ("ig.beats_random < all", "'all' goes with == or >= only"),
        ("ig.beats_random != all", "'all' goes with == or >= only"),
        ("ig.beats_random == ALL", "'ALL' is neither a number nor 'all'"),
        ("ig.rank >= baseline 1", "'baseline 1' is neither a number nor 'all' nor 'baseline'"),
        ("ig.rank >= baseline -", "'baseline -' is neither"),
        ("ig.rank >= baseline - -1", "'baseline - -1' is neither"),
        ("ig.rank >= baseline - 1x", "'1x' is neither"),
        ("ig.rank >= baseline - 1e999", "'1e999' is too large"),
        ("ig.rank >= 1 + baseline", "'1 + baseline' is neither"),
        ("ig.score >= 0.2", "'score' needs a case: ig.score.digits-resnet-morf"),
        ("ig.score.a b-c >= 0.2", "'a b-c' is neither a case nor a glob"),
        ("ig.scor.digits-resnet-morf >= 0.2", "there is no figure 'digits-resnet-morf'"),
        ("ig.score.digits-resnet-morf == all", "'all' fits only what is counted"),
    ],
)
def test_malformed_gates_are_explained(text, problem):
    with pytest.raises(GateSyntaxError) as caught:
        parse(text)
    message = str(caught.value)
    assert message.startswith(f"gate {text!r}: ")
    assert problem in message
    assert "e.g. 'my_method.meta_rank >= 0'" in message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message


@pytest.mark.parametrize("text", ["ig >= 0", "ig.xyz >= 0"])
def test_a_gate_without_a_known_figure_is_told_all_of_them(text):
    with pytest.raises(GateSyntaxError) as caught:
        parse(text)
    assert f"figures of methods: {', '.join(METHOD_FIGURES)}" in str(caught.value)
    assert f"figures of protocols: {', '.join(PROTOCOL_FIGURES)}" in str(caught.value)
    assert f"in a single case: {', '.join(CASE_FIGURES)}" in str(caught.value)


pieces = st.sampled_from(
    [
        *(*FIGURES, *OPERATORS, "all", "score", "baseline"),
        *(".", " ", "\n", "1", "-", "ig", "*", "[", "!", "=", "e9", "\0"),
    ]
)


@given(st.text() | st.lists(pieces, max_size=8).map("".join))
def test_any_text_parses_or_is_a_syntax_error(text):
    try:
        gate = parse(text)
    except GateSyntaxError:
        return
    assert gate.text == text.strip()
    assert gate.figure in (CASE_FIGURES if gate.case else FIGURES)
    assert gate.operator in OPERATORS
    assert gate.value == "all" or math.isfinite(gate.value)
    assert not set(gate.subject) & set(" \n\0<>=")
    # Nothing was dropped: the parts are the text.
    parts = f"{gate.subject}.{gate.key}{gate.operator}"
    assert "".join(text.split()).startswith(parts)


def test_a_figure_belongs_to_one_kind():
    assert not set(METHOD_FIGURES) & set(PROTOCOL_FIGURES)
    for kind, figures in KINDS.items():
        assert {parse(f"a.{figure} > 0").kind for figure in figures} == {kind}
