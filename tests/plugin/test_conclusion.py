from dataclasses import replace

import numpy as np
import pytest

from attrcheck import gate
from attrcheck.engine.resampling import condense
from attrcheck.engine.results import CaseResult, CheckResult, Envelope, Outcome, RunSettings
from attrcheck.engine.wire import dumps
from attrcheck.plugin.conclusion import conclude
from attrcheck.plugin.selection import signature
from attrcheck.plugin.session import Session

METHODS = ["good", "bad", "random", "away"]
SETTINGS = RunSettings("smoke", 8, 0, "cpu", METHODS, of_cases=2, of_methods=4)
WHOLE = signature(["a-x-up", "b-x-up"], METHODS)


def case(name, *scores):
    """A case in which the last method is not applicable."""
    rng = np.random.default_rng(0)
    outcomes = {
        method: Outcome("ok", score=score, replicates=score + rng.normal(0, 0.01, 20), seconds=0.1)
        for method, score in zip(METHODS, scores, strict=False)
    }
    away = Outcome("not_applicable", "not for this model")
    return condense(CaseResult(name, True, 8, 0.75, {**outcomes, "away": away}))


def check(name, over, subject, status="passed", **figures):
    protocol = subject.split("-")[2] if over == "cases" else subject if over == "protocols" else ""
    return CheckResult(name, over, subject, status, figures, protocol=protocol, reason="why")


@pytest.fixture
def session():
    """Two cases of a protocol, and checks of it, of another and of methods."""
    sent = [
        ("case", "a-x-up", case("a-x-up", 0.9, 0.1, 0.5)),
        ("case", "b-x-up", case("b-x-up", 0.8, 0.2, 0.5)),
        ("check", "floor-a", check("dummy_floor", "cases", "a-x-up", unreliability=0.0)),
        ("check", "floor-b", check("dummy_floor", "cases", "b-x-up", unreliability=0.5)),
        ("check", "floor-c", check("dummy_floor", "cases", "b-x-down", unreliability=0.125)),
        ("check", "seed-a", check("seed", "cases", "a-x-up", "not_applicable")),
        ("check", "seed-b", check("seed", "cases", "b-x-down", rank_correlation=0.75)),
        ("check", "value", check("value_sensitivity", "protocols", "up", hausdorff=0.5)),
        ("check", "contract-good", check("contract", "methods", "good")),
        ("check", "contract-random", check("contract", "methods", "random")),
        ("check", "other-random", check("other", "methods", "random", "known_failure")),
        ("check", "contract-unranked", check("contract", "methods", "unranked", "failed")),
        ("check", "contract-away", check("contract", "methods", "away", "not_applicable")),
    ]
    session = Session()
    for kind, item, result in sent:
        session.take(dumps(Envelope(item, SETTINGS, WHOLE, threads=1, **{kind: result})))
    return session


def decided(session, text):
    document, verdicts, _ = conclude(session, [gate.parse(text)], "command line", 0)
    [verdict] = verdicts
    assert document.gates[0].passed == verdict.passed
    return verdict.passed, verdict.lines


@pytest.mark.parametrize(
    ("text", "passed", "lines"),
    [
        ("good.checks == all", True, ["good.checks is 1 of 1, wanted == all"]),
        ("random.checks == all", False, ["random.checks is 1 of 2, wanted == all"]),
        ("good.beats_random == all", True, ["good.beats_random is 2 of 2, wanted == all"]),
        ("*.rank <= 3", True, ["*.rank <= 3 holds for good, random, bad"]),
        (
            "*.checks == all",
            False,
            ["random.checks is 1 of 2, wanted == all", "unranked.checks is 0 of 1, wanted == all"],
        ),
        ("*.dummy_floor <= 0.25", True, ["*.dummy_floor <= 0.25 holds for down, up"]),
        ("*.dummy_floor <= 0.2", False, ["up.dummy_floor is 0.25, wanted <= 0.2"]),
        ("*.seed >= 0.7", True, ["down.seed is 0.75, wanted >= 0.7"]),
        ("up.value_sensitivity > 0.1", True, ["up.value_sensitivity is 0.5, wanted > 0.1"]),
        (
            "up.seed >= 0.7",
            False,
            ["up.seed is missing, wanted >= 0.7; up has: dummy_floor, value_sensitivity"],
        ),
        (
            "bad.checks == all",
            False,
            [
                "bad.checks is missing, wanted == all; "
                "bad has: meta_rank, low, high, rank, mean_rank, wins, beats_random"
            ],
        ),
        (
            "away.checks == all",
            False,
            ["no method matches 'away'; there are: good, random, bad, unranked"],
        ),
    ],
)
def test_gates_ask_methods_and_protocols(session, text, passed, lines):
    assert decided(session, text) == (passed, lines)


def test_a_run_of_checks_alone_can_be_gated(session):
    for item in ("a-x-up", "b-x-up"):
        del session.envelopes[item]
    assert decided(session, "good.checks == all")[0]
    assert decided(session, "down.dummy_floor <= 0.2")[0]
    assert not decided(session, "good.rank == 1")[0]


@pytest.mark.parametrize(
    ("whole", "partial"),
    [
        ((["b-x-up", "a-x-up"], METHODS[::-1]), False),
        ((["a-x-up", "b-x-up", "c-x-up"], METHODS), True),
        ((["a-x-up", "c-x-up"], METHODS), True),
        ((["a-x-up", "b-x-up"], [*METHODS[:3], "another"]), True),
    ],
)
def test_a_selection_is_partial_even_if_it_is_as_large_as_the_whole(session, whole, partial):
    for item, envelope in session.envelopes.items():
        session.envelopes[item] = replace(envelope, whole=signature(*whole))
    document, _, _ = conclude(session, [], "none", 0)
    assert document.settings.partial is partial


def test_a_run_in_which_nothing_arrived_has_a_report_that_says_so():
    session = Session()
    session.expect({"t.py::t[a-x-up]": "a-x-up"})
    document, [verdict], _ = conclude(session, [], "none", 2)
    assert document.missing == ["a-x-up"]
    assert document.leaderboard == []
    assert document.run.workers == 2
    assert (verdict.name, verdict.passed) == ("complete", False)
    assert verdict.lines[0] == "no result from a-x-up"


def test_a_gate_on_random_names_the_cases_that_broke_it(session):
    passed, lines = decided(session, "bad.beats_random >= 1")
    assert not passed
    assert lines[0].startswith("bad.beats_random is 0 of 2")
    assert lines[1:] == ["bad does not beat random in a-x-up, b-x-up"]
