"""What gates may ask of a report, and of a baseline in common with it."""

from dataclasses import replace

import pytest

from attrcheck import gate
from attrcheck.report.comparing import compare
from attrcheck.report.gating import of, results
from attrcheck.report.types import MethodVerdict, ProtocolTrust, Tally
from tests.report.test_comparing import NAMES, outcome, report, result, world


def decide(text, old, new):
    """The result of one gate on a new report, with an old one as the baseline."""
    [found] = results([gate.parse(text)], new[0], compare(old, new, NAMES), old[0])
    return found


def test_a_report_tells_scores_and_ranks_in_single_cases():
    document, _ = report([result("a-x-up", {"mine": [0.75], "other": [0.5], "third": None})])
    figures = of(document)["method"]
    assert figures["mine"]["score.a-x-up"] == 0.75
    assert figures["other"]["rank.a-x-up"] == 2
    assert "third" not in figures
    failed = replace(document.cases[0].scores["mine"], status="error", score=None, rank=None)
    case = replace(document.cases[0], scores={**document.cases[0].scores, "mine": failed})
    assert of(replace(document, cases=[case]))["method"]["mine"]["score.a-x-up"] is None


def test_a_broken_gate_names_method_cases_and_size():
    found = decide("mine.meta_rank >= baseline - 0.1", world(), world(mine=0.45))
    assert (found.passed, found.error, found.broken) == (False, False, ("mine",))
    assert list(found.lines) == [
        "mine.meta_rank is -0.8047, wanted >= baseline - 0.1 = 0.7047 (baseline 0.8047, changed "
        "by -1.61; higher is better)",
        "compared over 2 cases x 2 methods that this run and old.json have",
        "mine: Meta-Rank +0.80 -> -0.80 (change [-1.61, -1.61]); worse in a-x-down (+0.3 [+0.3, "
        "+0.3]), a-x-up (-0.3 [-0.3, -0.3])",
    ]
    assert decide("mine.meta_rank >= baseline", world(mine=0.45), world()).passed


def test_which_way_is_better_in_a_case_is_what_its_protocol_says():
    found = decide("mine.score.* >= baseline", world(), world(mine=0.5))
    [line, moved] = found.lines
    assert line.startswith("mine.score.a-x-up is ")
    assert "changed by -0.25; higher is better" in line
    assert "a-x-down" in moved
    found = decide("mine.score.a-x-down <= baseline + 0.1", world(), world(mine=0.5))
    assert "changed by +0.25; lower is better" in found.lines[0]


def test_with_refused_cases_no_board_is_compared():
    document, details = world()
    cases = [replace(document.cases[0], weights="others"), document.cases[1]]
    new = replace(document, cases=cases), details
    for figure in ("meta_rank", "low", "beats_random"):
        found = decide(f"mine.{figure} >= baseline", world(), new)
        assert (found.passed, found.error) == (False, True)
        assert "baseline: a-x-up: other weights: weights and others" in found.lines[0]
    assert not decide("mine.score.* >= baseline - 9", world(), new).passed
    assert decide("mine.score.a-x-down >= baseline", world(), new).passed


def test_one_more_method_leaves_a_board_to_compare_but_not_its_interval():
    old = report([result("a-x-up", {"mine": [0.75], "other": [0.5]})])
    new = report([result("a-x-up", {"mine": [0.75], "other": [0.5], "third": [0.6]})])
    for rule in ("mine.meta_rank == baseline", "*.rank <= baseline", "mine.score.* == baseline"):
        assert decide(rule, old, new).passed, rule
    for rule in ("mine.low >= baseline - 9", "mine.rank.a-x-up <= baseline"):
        found = decide(rule, old, new)
        assert found.error
        assert "it depends on all that was run, and only one of the two has third" in found.lines[0]
    assert decide("mine.low >= baseline", old, old).passed
    assert decide("mine.rank.a-x-up <= baseline", old, old).passed


@pytest.mark.parametrize("rule", ["mine.rank <= baseline", "*.rank <= baseline", "*.score.* > -9"])
def test_a_method_that_fell_off_the_board_is_no_pass(rule):
    old = report([result("a-x-up", {"mine": [0.75], "other": [0.5]})])
    failed = replace(outcome([0.0]), status="error", score=None, reason="out of luck")
    after = result("a-x-up", {"mine": None, "other": [0.5]})
    after = replace(after, outcomes={**after.outcomes, "mine": failed})
    found = decide(rule, old, report([after]))
    assert (found.passed, found.error, found.broken) == (False, True, ("mine",))


def test_checks_and_protocols_are_compared_where_all_is_the_same():
    def told(passed, floor):
        document, details = world()
        checks = [MethodVerdict("mine", passed, 4, [], [], 0)]
        trust = ProtocolTrust("up", 1, 0.5, {"dummy_floor": Tally(floor, 1, 1, 0)})
        return replace(document, method_verdicts=checks, protocol_verdicts=[trust]), details

    assert decide("mine.checks >= baseline", told(3, 0.1), told(4, 0.1)).passed
    assert not decide("mine.checks >= baseline", told(3, 0.1), told(2, 0.1)).passed
    assert decide("up.dummy_floor <= baseline", told(3, 0.1), told(3, 0.1)).passed
    found = decide("up.dummy_floor <= baseline", told(3, 0.1), told(3, 0.2))
    assert "changed by +0.1; lower is better" in found.lines[0]
    more = replace(told(3, 0.1)[0], cases=world()[0].cases[:1]), world()[1]
    assert decide("up.dummy_floor <= baseline", told(3, 0.1), more).error
