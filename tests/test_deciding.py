import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrcheck.deciding import MOST_LINES, Against, decide, unknown
from attrcheck.gate import METHOD_FIGURES, OPERATORS, PROTOCOL_FIGURES, Gate, parse

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
        ("my_methd.rank <= 5", "no method matches 'my_methd'; did you mean my_method?"),
        ("z*.rank <= 5", f"no method matches 'z*'; there are: {NAMES}"),
        ("IG.rank <= 5", f"no method matches 'IG'; there are: {NAMES}"),
        ("morf.seed >= 0", "no protocol matches 'morf'; there are: sds, lerf, bare"),
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


CASES = {
    "mine": {"score.a-x-up": 0.5, "rank.a-x-up": 2, "score.b-x-up": 0.25, "score.b-x-down": None},
    "ig": {"score.a-x-up": 0.75, "rank.a-x-up": 1, "score.b-x-up": 0.75},
}


@pytest.mark.parametrize(
    ("text", "passed", "error", "lines"),
    [
        (
            "mine.score.a-x-up >= 0.2",
            *(True, False),
            ["mine.score.a-x-up is 0.5, wanted >= 0.2 (higher is better)"],
        ),
        (
            "mine.rank.a-x-up <= 1",
            *(False, False),
            ["mine.rank.a-x-up is 2, wanted <= 1 (lower is better)"],
        ),
        (
            "*.score.?-x-up >= 0.3",
            *(False, False),
            ["mine.score.b-x-up is 0.25, wanted >= 0.3 (higher is better)"],
        ),
        (
            "*.score.*-up >= 0.2",
            *(True, False),
            ["*.score.*-up >= 0.2 holds for mine, ig (4 figures)"],
        ),
        (
            "mine.score.* >= 0.2",  # what failed is not passed over
            *(False, True),
            [
                "mine.score.b-x-down is missing, wanted >= 0.2 (lower is better); "
                "mine has: no figures"
            ],
        ),
        (
            "ig.score.c-x-up >= 0.2",
            *(False, True),
            ["ig.score.c-x-up is missing, wanted >= 0.2 (higher is better); ig has: no figures"],
        ),
    ],
)
def test_single_cases(text, passed, error, lines):
    result = decide(parse(text), {"method": CASES}, lower=["b-x-down"])
    assert (result.passed, result.error) == (passed, error)
    assert list(result.lines) == lines


AGAINST = Against(
    new={"method": {"ig": {"meta_rank": 1.0}, "my_method": {"meta_rank": -0.5}}},
    old={
        "method": {
            "ig": {"meta_rank": 0.75, "low": "other weights: 1 and 2", "beats_random": (3, 4)},
            "my_method": {"meta_rank": 0.25, "score.a-x-up": 0.5, "rank": 1},
            "off_the_board": {"meta_rank": "the method is on its board"},
        },
        "protocol": {"lerf": {"dummy_floor": 0.25}},
    },
    rests_on="compared over 2 cases",
)


@pytest.mark.parametrize(
    ("text", "passed", "lines"),
    [
        (
            "ig.meta_rank >= baseline + 0.25",
            True,
            [
                "ig.meta_rank is 1, wanted >= baseline + 0.25 = 1 (baseline 0.75, changed by "
                "+0.25; higher is better)"
            ],
        ),
        (
            "my_method.meta_rank >= baseline - 0.1",
            False,
            [
                "my_method.meta_rank is -0.5, wanted >= baseline - 0.1 = 0.15 (baseline 0.25, "
                "changed by -0.75; higher is better)"
            ],
        ),
        (
            "my_method.rank <= baseline",
            False,
            [
                "my_method.rank is 3, wanted <= baseline = 1 (baseline 1, changed by +2; lower is "
                "better)"
            ],
        ),
        (
            "ig.beats_random >= baseline",
            True,
            [
                "ig.beats_random is 4 of 4, wanted >= baseline = 3 (baseline 3, changed by +1; "
                "higher is better)"
            ],
        ),
        (
            "lerf.dummy_floor <= baseline + 0.01",
            False,
            [
                "lerf.dummy_floor is 0.3, wanted <= baseline + 0.01 = 0.26 (baseline 0.25, changed "
                "by +0.05; lower is better)"
            ],
        ),
    ],
)
def test_against_a_baseline(text, passed, lines):
    result = decide(parse(text), KNOWN, AGAINST)
    assert (result.passed, result.error) == (passed, False)
    assert list(result.lines) == [*lines, "compared over 2 cases"]
    assert result.broken == (() if passed else (text.partition(".")[0],))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ig.low >= baseline", "ig.low is not to be compared with the baseline: other weights: 1"),
        ("ig.wins >= baseline", "ig.wins is not to be compared with the baseline: it has no such"),
        ("my.other.rank <= baseline", "my.other.rank is not to be compared with the baseline: it"),
        ("my_method.score.a-x-up >= baseline", "my_method.score.a-x-up is missing, wanted >= "),
        ("*.meta_rank >= baseline - 9", "off_the_board.meta_rank is not to be compared with the "),
        ("sds.dummy_floor <= baseline", "sds.dummy_floor is not to be compared with the baseline"),
    ],
)
def test_what_the_baseline_does_not_say_is_an_error(text, line):
    result = decide(parse(text), KNOWN, AGAINST)
    assert (result.passed, result.error) == (False, True)
    assert result.lines[0].startswith(line)


def test_what_only_the_run_has_is_left_out_where_others_can_be_compared():
    known = {"method": {"old": {"rank": 1}, "new": {"rank": 2}}}
    against = Against(new={}, old={"method": {"old": {"rank": 1}}})
    result = decide(parse("*.rank <= baseline"), known, against)
    assert result.passed
    assert result.lines == (
        "old.rank is 1, wanted <= baseline = 1 (baseline 1, changed by +0; lower is better)",
    )


def test_without_a_baseline_nothing_is_decided():
    result = decide(parse("ig.rank <= baseline"), KNOWN)
    assert (result.passed, result.error) == (False, True)
    assert result.lines == ("there is no baseline to compare with",)


@pytest.mark.parametrize("change", [1e-12, 0.0, -1e-12])
def test_rounding_is_no_change(change):
    known = {"method": {"ig": {"score.a-x-up": 0.5 + change}}}
    against = Against(new={}, old={"method": {"ig": {"score.a-x-up": 0.5}}})
    for operator in (">=", "<=", "=="):
        assert decide(parse(f"ig.score.a-x-up {operator} baseline"), known, against).passed


def test_a_broken_gate_on_many_is_told_in_few_lines():
    known = {"method": {f"m{index}": {"rank": 9} for index in range(MOST_LINES + 5)}}
    result = decide(parse("*.rank <= 5"), known)
    assert len(result.lines) == MOST_LINES + 1
    assert result.lines[-1] == "... and 5 more"
    assert len(result.broken) == MOST_LINES + 5


NAMES_OF_RUN = {"method": ["ig", "lrp"], "protocol": ["sds"], "case": ["digits-resnet-sds"]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ig.rank <= 5", ""),
        ("*.score.*-sds >= 0", ""),
        ("s*.seed >= 0", ""),
        ("irg.rank <= 5", "the run has no method 'irg'; did you mean ig?"),
        ("z*.rank <= 5", "the run has no method 'z*'; there are: ig, lrp"),
        ("lerf.seed >= 0", "the run has no protocol 'lerf'; there are: sds"),
        (
            "ig.score.digits-resnt-sds >= 0",
            "the run has no case 'digits-resnt-sds'; did you mean digits-resnet-sds?",
        ),
        ("ig.rank.shapes-* <= 1", "the run has no case 'shapes-*'; there are: digits-resnet-sds"),
    ],
)
def test_names_that_a_run_does_not_have(text, problem):
    assert unknown(parse(text), NAMES_OF_RUN) == problem


def test_a_protocol_in_the_place_of_a_method_is_recognised():
    assert "(sds is a protocol, and rank a figure of methods" in unknown(
        parse("sds.rank <= 5"), NAMES_OF_RUN
    )
