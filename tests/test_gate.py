import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrcheck.gate import (
    FIGURES,
    KINDS,
    METHOD_FIGURES,
    OPERATORS,
    PROTOCOL_FIGURES,
    Gate,
    GateSyntaxError,
    decide,
    parse,
)

BOARD = {
    "ig": {"meta_rank": 1.25, "rank": 1, "beats_random": (4, 4), "low": math.nan},
    "my_method": {"meta_rank": -0.41, "rank": 3, "beats_random": (3, 4), "low": None},
    "my.other": {"meta_rank": 0.0, "rank": 2, "beats_random": (0, 0), "checks": (3, 3)},
    "off_the_board": {"checks": (1, 3)},
}
PROTOCOLS = {
    "sds": {"dummy_floor": 0.05, "seed": 0.9, "half_images": None, "value_sensitivity": 0.02},
    "lerf": {"dummy_floor": 0.3, "seed": 0.5, "half_images": 0.7},
    "bare": {},
}
KNOWN = {"method": BOARD, "protocol": PROTOCOLS}

NAMES = "ig, my_method, my.other, off_the_board"
HAS = "ig has: meta_rank, rank, beats_random"

subjects = st.from_regex(r"[a-z*?][a-z0-9_.*?]*", fullmatch=True)
numbers = st.floats(allow_nan=False, allow_infinity=False)
gaps = st.text(" \t", max_size=2)


@given(subjects, st.sampled_from(list(FIGURES)), st.sampled_from(list(OPERATORS)), numbers, gaps)
def test_round_trip(subject, figure, operator, value, gap):
    text = f"{subject}.{figure}{gap}{operator}{gap}{value!r}"
    assert parse(f"{gap}{text}{gap}") == Gate(text, subject, figure, operator, value)


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
        ("ig.beat_random == all", "there is no figure 'beat_random' (did you mean beats_random?)."),
        ("ig.xyz >= 0", "there is no figure 'xyz' (there are: meta_rank"),
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
        ("sds.dummy_flor <= 0.1", "there is no figure 'dummy_flor' (did you mean dummy_floor?)."),
        ("sds.dummy_floor == all", "'all' fits only what is counted: beats_random, checks"),
        ("ig.beats_random < all", "'all' goes with == or >= only"),
        ("ig.beats_random != all", "'all' goes with == or >= only"),
        ("ig.beats_random == ALL", "'ALL' is neither a number nor 'all'"),
    ],
)
def test_malformed_gates_are_explained(text, problem):
    with pytest.raises(GateSyntaxError) as caught:
        parse(text)
    message = str(caught.value)
    assert message.startswith(f"gate {text!r}: ")
    assert problem in message
    assert "e.g. 'my_method.meta_rank >= 0'" in message
    assert f"figures of methods: {', '.join(METHOD_FIGURES)}" in message
    assert f"figures of protocols: {', '.join(PROTOCOL_FIGURES)}" in message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message


pieces = st.sampled_from(
    [*FIGURES, *OPERATORS, "all", ".", " ", "\n", "1", "-", "ig", "*", "[", "!", "=", "e9", "\0"]
)


@given(st.text() | st.lists(pieces, max_size=8).map("".join))
def test_any_text_parses_or_is_a_syntax_error(text):
    try:
        gate = parse(text)
    except GateSyntaxError:
        return
    assert gate.text == text.strip()
    assert gate.figure in FIGURES
    assert gate.operator in OPERATORS
    assert gate.value == "all" or math.isfinite(gate.value)
    assert not set(gate.subject) & set(" \n\0<>=")
    # Nothing was dropped: the parts are the text.
    parts = f"{gate.subject}.{gate.figure}{gate.operator}"
    assert "".join(text.split()).startswith(parts)


@given(
    st.sampled_from(list(OPERATORS)),
    st.lists(st.sampled_from([-1.0, 0.0, 1.0, math.nan, None]), min_size=1, max_size=4),
    st.sampled_from([-1.0, 0.0, 1.0]),
    st.sampled_from([("method", "rank"), ("protocol", "seed")]),
)
def test_passes_only_if_all_that_match_keep_it(operator, values, wanted, about):
    kind, figure = about
    figures = {f"m{index}": {figure: value} for index, value in enumerate(values)}
    result = decide(Gate("rule", "m*", figure, operator, wanted), {kind: figures})
    unknown = [value is None or math.isnan(value) for value in values]
    keeps = {
        ">=": lambda value: value >= wanted,
        "<=": lambda value: value <= wanted,
        ">": lambda value: value > wanted,
        "<": lambda value: value < wanted,
        "==": lambda value: value == wanted,
        "!=": lambda value: value != wanted,
    }[operator]
    bad = [lost or not keeps(value) for lost, value in zip(unknown, values, strict=True)]
    assert result.passed == (not any(bad))
    assert result.error == any(unknown)
    if not result.passed:
        named = {line.split(".")[0] for line in result.lines}
        assert named == {f"m{index}" for index, is_bad in enumerate(bad) if is_bad}
        assert len(result.lines) == sum(bad)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("ig.meta_rank >= 0", ["ig.meta_rank is 1.25, wanted >= 0"]),
        ("my.other.meta_rank >= 0", ["my.other.meta_rank is 0, wanted >= 0"]),
        ("ig.beats_random == all", ["ig.beats_random is 4 of 4, wanted == all"]),
        ("my.other.checks == all", ["my.other.checks is 3 of 3, wanted == all"]),
        ("*.checks >= 1", ["*.checks >= 1 holds for my.other, off_the_board"]),
        ("sds.dummy_floor <= 0.1", ["sds.dummy_floor is 0.05, wanted <= 0.1"]),
        ("*.dummy_floor < 0.5", ["*.dummy_floor < 0.5 holds for sds, lerf"]),
        ("*.value_sensitivity > 0.01", ["sds.value_sensitivity is 0.02, wanted > 0.01"]),
        ("my_method.beats_random >= 3", ["my_method.beats_random is 3 of 4, wanted >= 3"]),
        ("*.rank <= 3", ["*.rank <= 3 holds for ig, my_method, my.other"]),
        ("my?*.rank > 1", ["my?*.rank > 1 holds for my_method, my.other"]),
        ("[!m]*.rank == 1", ["ig.rank is 1, wanted == 1"]),
    ],
)
def test_kept(text, lines):
    result = decide(parse(text), KNOWN)
    assert (result.rule, result.passed, result.error) == (text, True, False)
    assert list(result.lines) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("my_method.meta_rank >= 0", ["my_method.meta_rank is -0.41, wanted >= 0"]),
        ("my_method.beats_random == all", ["my_method.beats_random is 3 of 4, wanted == all"]),
        ("my_method.beats_random >= all", ["my_method.beats_random is 3 of 4, wanted >= all"]),
        ("ig.beats_random < 4", ["ig.beats_random is 4 of 4, wanted < 4"]),
        ("*.checks == all", ["off_the_board.checks is 1 of 3, wanted == all"]),
        ("*.dummy_floor <= 0.1", ["lerf.dummy_floor is 0.3, wanted <= 0.1"]),
        ("l*.seed >= 0.6", ["lerf.seed is 0.5, wanted >= 0.6"]),
        (
            "my.other.beats_random == all",
            ["my.other.beats_random is 0 of 0 (nothing was compared), wanted == all"],
        ),
        (
            "my.other.beats_random >= all",
            ["my.other.beats_random is 0 of 0 (nothing was compared), wanted >= all"],
        ),
        (
            "*.meta_rank > 0.5",
            ["my_method.meta_rank is -0.41, wanted > 0.5", "my.other.meta_rank is 0, wanted > 0.5"],
        ),
    ],
)
def test_broken(text, lines):
    result = decide(parse(text), KNOWN)
    assert (result.rule, result.passed, result.error) == (text, False, False)
    assert list(result.lines) == lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("my_methd.rank <= 5", "no method matches 'my_methd'; did you mean my_method or my.other?"),
        ("z*.rank <= 5", f"no method matches 'z*'; there are: {NAMES}"),
        ("IG.rank <= 5", f"no method matches 'IG'; there are: {NAMES}"),
        ("morf.seed >= 0", "no protocol matches 'morf'; did you mean lerf?"),
        (
            "sds.meta_rank >= 0",
            f"no method matches 'sds'; there are: {NAMES} (sds is a protocol, and meta_rank a "
            f"figure of methods; figures of protocols: {', '.join(PROTOCOL_FIGURES)})",
        ),
        (
            "ig.dummy_floor <= 0.1",
            "no protocol matches 'ig'; there are: sds, lerf, bare (ig is a method, and dummy_floor "
            f"a figure of protocols; figures of methods: {', '.join(METHOD_FIGURES)})",
        ),
        (
            "off_the_board.rank <= 5",
            "off_the_board.rank is missing, wanted <= 5; off_the_board has: checks",
        ),
        ("bare.seed >= 0", "bare.seed is missing, wanted >= 0; bare has: no figures"),
        (
            "sds.half_images >= 0",
            "sds.half_images is missing, wanted >= 0; "
            "sds has: dummy_floor, seed, value_sensitivity",
        ),
        ("ig.low >= 0", f"ig.low is not a number, wanted >= 0; {HAS}"),
        ("ig.low != 0", f"ig.low is not a number, wanted != 0; {HAS}"),
        ("ig.wins >= 0.5", f"ig.wins is missing, wanted >= 0.5; {HAS}"),
        (
            "my_method.low >= 0",
            "my_method.low is missing, wanted >= 0; my_method has: meta_rank, rank, beats_random",
        ),
    ],
)
def test_what_cannot_be_decided_is_an_error(text, line):
    result = decide(parse(text), KNOWN)
    assert (result.passed, result.error, result.lines) == (False, True, (line,))


def test_what_a_check_could_not_say_is_no_pass_for_a_glob_either():
    result = decide(parse("*.half_images >= 0.6"), KNOWN)
    assert (result.passed, result.error) == (False, True)
    assert result.lines[0].startswith("sds.half_images is missing")


def test_a_figure_belongs_to_one_kind():
    assert not set(METHOD_FIGURES) & set(PROTOCOL_FIGURES)
    for kind, figures in KINDS.items():
        assert {parse(f"a.{figure} > 0").kind for figure in figures} == {kind}


def test_a_run_that_knows_no_protocol_says_so():
    assert decide(parse("*.seed > 0"), {}).lines == ("no protocol matches '*'; there are: none",)


def test_no_methods_and_uncounted_all_are_errors():
    result = decide(parse("*.rank <= 5"), {"method": {}})
    assert result.error
    assert result.lines == ("no method matches '*'; there are: none",)
    result = decide(parse("*.rank <= 5"), {"method": {"ig": {}}})
    assert result.error
    assert result.lines == ("ig.rank is missing, wanted <= 5; ig has: no figures",)
    result = decide(parse("ig.beats_random == all"), {"method": {"ig": {"beats_random": 4.0}}})
    assert (result.passed, result.error) == (False, True)
    assert "ig.beats_random is not counted, wanted == all" in result.lines[0]


def test_a_rounded_figure_never_contradicts_the_result():
    near = math.nextafter(0.5, 0)
    result = decide(parse("ig.wins >= 0.5"), {"method": {"ig": {"wins": near}}})
    assert result.lines == (f"ig.wins is {near!r}, wanted >= 0.5",)
    result = decide(parse("ig.wins >= 0.12344"), {"method": {"ig": {"wins": 0.123444}}})
    assert result.lines == ("ig.wins is 0.123444, wanted >= 0.12344",)
    # A count is never rounded.
    result = decide(
        parse("ig.beats_random >= 12345"), {"method": {"ig": {"beats_random": (12345, 20000)}}}
    )
    assert result.lines == ("ig.beats_random is 12345 of 20000, wanted >= 12345",)
