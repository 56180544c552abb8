import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrcheck.gate import FIGURES, OPERATORS, GateSyntaxError, Rule, judge, parse

BOARD = {
    "ig": {"meta_rank": 1.25, "rank": 1, "beats_random": (4, 4), "low": math.nan},
    "my_method": {"meta_rank": -0.41, "rank": 3, "beats_random": (3, 4), "low": None},
    "my.other": {"meta_rank": 0.0, "rank": 2, "beats_random": (0, 0)},
}

HAS = "ig has: meta_rank, rank, beats_random"

subjects = st.from_regex(r"[a-z*?][a-z0-9_.*?]*", fullmatch=True)
numbers = st.floats(allow_nan=False, allow_infinity=False)
gaps = st.text(" \t", max_size=2)


@given(subjects, st.sampled_from(list(FIGURES)), st.sampled_from(list(OPERATORS)), numbers, gaps)
def test_round_trip(subject, figure, operator, value, gap):
    text = f"{subject}.{figure}{gap}{operator}{gap}{value!r}"
    assert parse(f"{gap}{text}{gap}") == Rule(text, subject, figure, operator, value)


@pytest.mark.parametrize("operator", ["==", ">="])
def test_all(operator):
    rule = parse(f"my_method.beats_random {operator} all")
    assert (rule.operator, rule.value) == (operator, "all")


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
        ("my_method >= 0", "'my_method' is not a method, a dot and a figure"),
        (".meta_rank >= 0", "'.meta_rank' is not a method"),
        (">= 0", "'' is not a method"),
        ("my method.rank >= 0", "'my method' is neither the name of a method nor a glob"),
        ("'ig'.rank >= 0", "neither the name of a method nor a glob"),
        ("ig.meta_rnk >= 0", "there is no figure 'meta_rnk' (did you mean meta_rank"),
        ("ig.beat_random == all", "there is no figure 'beat_random' (did you mean beats_random?)."),
        ("ig.xyz >= 0", "there is no figure 'xyz'."),
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
        ("1 <= ig.rank <= 5", "'1' is not a method"),
        ("ig.rank <= all", "'all' fits only what is counted: beats_random"),
        ("ig.beats_random < all", "'all' goes with == or >= only"),
        ("ig.beats_random != all", "'all' goes with == or >= only"),
        ("ig.beats_random == ALL", "'ALL' is neither a number nor 'all'"),
    ],
)
def test_malformed_rules_are_explained(text, problem):
    with pytest.raises(GateSyntaxError) as caught:
        parse(text)
    message = str(caught.value)
    assert message.startswith(f"gate {text!r}: ")
    assert problem in message
    assert "e.g. 'my_method.meta_rank >= 0'" in message
    assert all(figure in message for figure in FIGURES)
    assert str(pickle.loads(pickle.dumps(caught.value))) == message


pieces = st.sampled_from(
    [*FIGURES, *OPERATORS, "all", ".", " ", "\n", "1", "-", "ig", "*", "[", "!", "=", "e9", "\0"]
)


@given(st.text() | st.lists(pieces, max_size=8).map("".join))
def test_any_text_parses_or_is_a_syntax_error(text):
    try:
        rule = parse(text)
    except GateSyntaxError:
        return
    assert rule.text == text.strip()
    assert rule.figure in FIGURES
    assert rule.operator in OPERATORS
    assert rule.value == "all" or math.isfinite(rule.value)
    assert not set(rule.subject) & set(" \n\0<>=")
    # Nothing was dropped: the parts are the text.
    parts = f"{rule.subject}.{rule.figure}{rule.operator}"
    assert "".join(text.split()).startswith(parts)


@given(
    st.sampled_from(list(OPERATORS)),
    st.lists(st.sampled_from([-1.0, 0.0, 1.0, math.nan, None]), min_size=1, max_size=4),
    st.sampled_from([-1.0, 0.0, 1.0]),
)
def test_passes_only_if_every_method_keeps_it(operator, values, wanted):
    figures = {f"m{index}": {"rank": value} for index, value in enumerate(values)}
    verdict = judge(Rule("rule", "m*", "rank", operator, wanted), figures)
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
    assert verdict.passed == (not any(bad))
    assert verdict.error == any(unknown)
    if not verdict.passed:
        named = {line.split(".")[0] for line in verdict.lines}
        assert named == {f"m{index}" for index, is_bad in enumerate(bad) if is_bad}
        assert len(verdict.lines) == sum(bad)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("ig.meta_rank >= 0", ["ig.meta_rank is 1.25, wanted >= 0"]),
        ("my.other.meta_rank >= 0", ["my.other.meta_rank is 0, wanted >= 0"]),
        ("ig.beats_random == all", ["ig.beats_random is 4 of 4, wanted == all"]),
        ("my_method.beats_random >= 3", ["my_method.beats_random is 3 of 4, wanted >= 3"]),
        ("*.rank <= 3", ["*.rank <= 3 holds for ig, my_method, my.other"]),
        ("my?*.rank > 1", ["my?*.rank > 1 holds for my_method, my.other"]),
        ("[!m]*.rank == 1", ["ig.rank is 1, wanted == 1"]),
    ],
)
def test_kept(text, lines):
    verdict = judge(parse(text), BOARD)
    assert (verdict.rule, verdict.passed, verdict.error) == (text, True, False)
    assert list(verdict.lines) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("my_method.meta_rank >= 0", ["my_method.meta_rank is -0.41, wanted >= 0"]),
        ("my_method.beats_random == all", ["my_method.beats_random is 3 of 4, wanted == all"]),
        ("my_method.beats_random >= all", ["my_method.beats_random is 3 of 4, wanted >= all"]),
        ("ig.beats_random < 4", ["ig.beats_random is 4 of 4, wanted < 4"]),
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
    verdict = judge(parse(text), BOARD)
    assert (verdict.rule, verdict.passed, verdict.error) == (text, False, False)
    assert list(verdict.lines) == lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("my_methd.rank <= 5", "no method matches 'my_methd'; there are: my_method, my.other, ig"),
        ("z*.rank <= 5", "no method matches 'z*'; there are: ig, my_method, my.other"),
        ("IG.rank <= 5", "no method matches 'IG'; there are: ig, my_method, my.other"),
        ("ig.low >= 0", f"ig.low is not a number, wanted >= 0; {HAS}"),
        ("ig.low != 0", f"ig.low is not a number, wanted != 0; {HAS}"),
        ("ig.wins >= 0.5", f"ig.wins is missing, wanted >= 0.5; {HAS}"),
        (
            "my_method.low >= 0",
            "my_method.low is missing, wanted >= 0; my_method has: meta_rank, rank, beats_random",
        ),
    ],
)
def test_what_cannot_be_judged_is_an_error(text, line):
    verdict = judge(parse(text), BOARD)
    assert (verdict.passed, verdict.error, verdict.lines) == (False, True, (line,))


def test_no_methods_and_uncounted_all_are_errors():
    verdict = judge(parse("*.rank <= 5"), {})
    assert verdict.error
    assert verdict.lines == ("no method matches '*'; there are: none",)
    verdict = judge(parse("*.rank <= 5"), {"ig": {}})
    assert verdict.error
    assert verdict.lines == ("ig.rank is missing, wanted <= 5; ig has: no figures",)
    verdict = judge(parse("ig.beats_random == all"), {"ig": {"beats_random": 4.0}})
    assert (verdict.passed, verdict.error) == (False, True)
    assert "ig.beats_random is not counted, wanted == all" in verdict.lines[0]


def test_a_rounded_figure_never_contradicts_the_verdict():
    near = math.nextafter(0.5, 0)
    verdict = judge(parse("ig.wins >= 0.5"), {"ig": {"wins": near}})
    assert verdict.lines == (f"ig.wins is {near!r}, wanted >= 0.5",)
    verdict = judge(parse("ig.wins >= 0.12344"), {"ig": {"wins": 0.123444}})
    assert verdict.lines == ("ig.wins is 0.123444, wanted >= 0.12344",)
    # A count is never rounded.
    verdict = judge(parse("ig.beats_random >= 12345"), {"ig": {"beats_random": (12345, 20000)}})
    assert verdict.lines == ("ig.beats_random is 12345 of 20000, wanted >= 12345",)
