from dataclasses import replace

import pytest

from attrcheck import gate
from attrcheck.engine.wire import dumps
from attrcheck.report.types import Failure, MethodVerdict, Tally
from attrcheck.report.verdicts import FIGURES, checkpoints, of_methods, of_protocols
from tests.report.samples import check


def of_case(name, case, status="passed", reason="", **figures):
    return check(name, "cases", case, status, reason, **figures)


def of_protocol(name, protocol, status="passed", **figures):
    return check(name, "protocols", protocol, status, **figures)


def of_method(name, method, status="passed", reason=""):
    return check(name, "methods", method, status, reason)


def test_a_protocol_has_the_mean_figure_and_the_items_passed_of_each_check():
    [verdict] = of_protocols(
        ["up", "up"],
        [
            of_case("dummy_floor", "a-x-up", unreliability=0.25, outranked_by_random=3.0),
            of_case("dummy_floor", "b-x-up", "failed", "why", unreliability=0.75),
            of_case("seed", "a-x-up", rank_correlation=0.9),
            of_case("seed", "b-x-up", "known_failure", "why", rank_correlation=0.5),
            of_protocol("value_sensitivity", "up", hausdorff=0.02, spread=9.0),
        ],
    )
    assert (verdict.protocol, verdict.cases) == ("up", 2)
    assert verdict.checks == {
        "dummy_floor": Tally(figure=0.5, passed=1, decided=2, known_failures=0),
        "seed": Tally(figure=pytest.approx(0.7), passed=1, decided=2, known_failures=1),
        "value_sensitivity": Tally(figure=0.02, passed=1, decided=1, known_failures=0),
    }
    assert verdict.trust == pytest.approx((0.5 + 0.5 + 1) / 3)


def test_several_figures_of_one_item_count_as_one():
    """Two grids in one case and one in the other: the mean of 0.5 and 0.9."""
    [verdict] = of_protocols(
        ["up"],
        [
            of_case("other_grid", "a-x-up", grid_2=0.4, grid_8=0.6),
            of_case("other_grid", "b-x-up", grid_2=0.9, grid_8=None),
        ],
    )
    assert verdict.checks["other_grid"].figure == pytest.approx(0.7)


def test_what_is_not_applicable_neither_passes_nor_fails():
    [verdict] = of_protocols(["up"], [of_case("seed", "a-x-up", "not_applicable", "too few")])
    assert verdict.checks["seed"] == Tally(figure=None, passed=0, decided=0, known_failures=0)
    assert verdict.trust is None


def test_a_check_of_a_users_own_counts_but_has_no_figure():
    [verdict] = of_protocols(["up"], [of_case("my_check", "a-x-up", "failed", "why", anything=3.0)])
    assert verdict.trust == 0
    assert verdict.checks["my_check"].figure is None


def test_the_protocol_to_trust_comes_first_and_dummies_decide_among_equals():
    checks = [
        of_case("dummy_floor", "a-x-equal", unreliability=0.3),
        of_case("dummy_floor", "a-x-good", unreliability=0.1),
        of_case("dummy_floor", "a-x-bad", "failed", unreliability=0.9),
        of_case("seed", "a-x-bad", rank_correlation=1.0),
    ]
    found = of_protocols(["bad", "good", "equal", "unknown"], checks)
    assert [verdict.protocol for verdict in found] == ["good", "equal", "bad", "unknown"]


def test_a_protocol_without_a_case_in_the_run_is_there_too():
    found = of_protocols([], [of_case("seed", "a-x-up", rank_correlation=1.0)])
    assert [(verdict.protocol, verdict.cases) for verdict in found] == [("up", 0)]


def test_checks_of_other_things_say_nothing_of_a_protocol():
    checks = [
        of_method("contract", "one", "failed"),
        replace(of_case("whole", "a-x-up", "failed"), over="suite", protocol=""),
        replace(of_case("similar", "a-x-up", "failed"), over="models", protocol=""),
    ]
    assert of_protocols([], checks) == []


def test_a_method_has_its_checks_counted_and_its_failures_told():
    checks = [
        of_method("contract", "one"),
        of_method("randomisation", "one", "failed", "still 0.9"),
        of_method("target_sensitivity", "one", "known_failure", "no class"),
        of_method("axiom", "one", "not_applicable", "not claimed"),
        of_method("contract", "two"),
    ]
    one, two = of_methods(["one", "two", "unchecked"], checks)
    assert one == MethodVerdict(
        method="one",
        passed=1,
        decided=3,
        failures=[Failure(check="randomisation", on="a-x", reason="still 0.9")],
        known_failures=[Failure(check="target_sensitivity", on="a-x", reason="no class")],
        not_applicable=1,
    )
    assert (two.method, two.passed, two.decided) == ("two", 1, 1)


def test_methods_stand_in_the_order_given():
    checks = [of_method("contract", name) for name in ("a", "b", "c")]
    assert [verdict.method for verdict in of_methods(["c", "a"], checks)] == ["c", "a", "b"]


def test_checkpoints_are_correlations_by_case():
    checks = [
        of_case("checkpoints", "a-x-up", at_25=0.5, at_50=None, at_75=1.0),
        of_case("seed", "a-x-up", rank_correlation=0.1),
        of_case("checkpoints", "b-x-up", "not_applicable"),
    ]
    assert checkpoints(checks) == [("a-x-up", "at_25", 0.5), ("a-x-up", "at_75", 1.0)]


def test_gates_know_the_figures_of_protocols():
    assert set(gate.PROTOCOL_FIGURES) == set(FIGURES) - {"checkpoints"}


def test_verdicts_are_json():
    checks = [of_case("seed", "a-x-up", rank_correlation=None), of_method("contract", "one")]
    dumps([of_protocols(["up"], checks), of_methods([], checks)])
