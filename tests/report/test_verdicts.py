import json

import pytest

from attrcheck import gate
from attrcheck.report.verdicts import FIGURES, checkpoints, judges, methods


def of_case(check, case, status="passed", reason="", **figures):
    return {
        "check": check,
        "over": "cases",
        "subject": case,
        "on": "",
        "known": "",
        "protocol": case.split("-")[2],
        "status": status,
        "reason": reason,
        "figures": figures,
    }


def of_protocol(check, protocol, status="passed", **figures):
    own = {"over": "protocols", "subject": protocol, "protocol": protocol}
    return of_case(check, f"a-x-{protocol}", status, **figures) | own


def of_method(check, method, status="passed", reason=""):
    own = {"over": "methods", "subject": method, "on": "a-x", "protocol": ""}
    return of_case(check, "a-x-p", status, reason) | own


def test_a_judge_has_the_mean_figure_and_the_items_passed_of_each_check():
    [judge] = judges(
        ["up", "up"],
        [
            of_case("dummy_floor", "a-x-up", unreliability=0.25, outranked_by_random=3.0),
            of_case("dummy_floor", "b-x-up", "failed", "why", unreliability=0.75),
            of_case("seed", "a-x-up", rank_correlation=0.9),
            of_case("seed", "b-x-up", "known_failure", "why", rank_correlation=0.5),
            of_protocol("value_sensitivity", "up", hausdorff=0.02, spread=9.0),
        ],
    )
    assert (judge["protocol"], judge["cases"]) == ("up", 2)
    assert judge["checks"] == {
        "dummy_floor": {"figure": 0.5, "passed": 1, "judged": 2, "known_failures": 0},
        "seed": {"figure": pytest.approx(0.7), "passed": 1, "judged": 2, "known_failures": 1},
        "value_sensitivity": {"figure": 0.02, "passed": 1, "judged": 1, "known_failures": 0},
    }
    assert judge["trust"] == pytest.approx((0.5 + 0.5 + 1) / 3)


def test_several_figures_of_one_item_count_as_one():
    """Two grids in one case and one in the other: the mean of 0.5 and 0.9."""
    [judge] = judges(
        ["up"],
        [
            of_case("other_grid", "a-x-up", grid_2=0.4, grid_8=0.6),
            of_case("other_grid", "b-x-up", grid_2=0.9, grid_8=None),
        ],
    )
    assert judge["checks"]["other_grid"]["figure"] == pytest.approx(0.7)


def test_what_is_not_applicable_neither_passes_nor_fails():
    [judge] = judges(["up"], [of_case("seed", "a-x-up", "not_applicable", "too few")])
    assert judge["checks"]["seed"] == {
        "figure": None, "passed": 0, "judged": 0, "known_failures": 0,
    }  # fmt: skip
    assert judge["trust"] is None


def test_a_check_of_a_users_own_counts_but_has_no_figure():
    [judge] = judges(["up"], [of_case("my_check", "a-x-up", "failed", "why", anything=3.0)])
    assert judge["trust"] == 0
    assert judge["checks"]["my_check"]["figure"] is None


def test_the_judge_to_trust_stands_first_and_dummies_decide_among_equals():
    checks = [
        of_case("dummy_floor", "a-x-equal", unreliability=0.3),
        of_case("dummy_floor", "a-x-good", unreliability=0.1),
        of_case("dummy_floor", "a-x-bad", "failed", unreliability=0.9),
        of_case("seed", "a-x-bad", rank_correlation=1.0),
    ]
    found = judges(["bad", "good", "equal", "unknown"], checks)
    assert [judge["protocol"] for judge in found] == ["good", "equal", "bad", "unknown"]


def test_a_judge_without_a_case_in_the_run_is_there_too():
    found = judges([], [of_case("seed", "a-x-up", rank_correlation=1.0)])
    assert [(judge["protocol"], judge["cases"]) for judge in found] == [("up", 0)]


def test_checks_of_other_things_say_nothing_of_a_judge():
    checks = [
        of_method("contract", "one", "failed"),
        of_case("pairs", "a-x-up", "failed") | {"over": "case_pairs", "protocol": ""},
        of_case("similar", "a-x-up", "failed") | {"over": "models", "protocol": ""},
    ]
    assert judges([], checks) == []


def test_a_method_has_its_checks_counted_and_its_failures_told():
    checks = [
        of_method("contract", "one"),
        of_method("randomisation", "one", "failed", "still 0.9"),
        of_method("target_sensitivity", "one", "known_failure", "no class"),
        of_method("axiom", "one", "not_applicable", "not claimed"),
        of_method("contract", "two"),
    ]
    one, two = methods(["one", "two", "unchecked"], checks)
    assert one == {
        "method": "one",
        "passed": 1,
        "judged": 3,
        "failures": [{"check": "randomisation", "on": "a-x", "reason": "still 0.9"}],
        "known_failures": [{"check": "target_sensitivity", "on": "a-x", "reason": "no class"}],
        "not_applicable": 1,
    }
    assert (two["method"], two["passed"], two["judged"]) == ("two", 1, 1)


def test_methods_stand_in_the_order_given():
    checks = [of_method("contract", name) for name in ("a", "b", "c")]
    assert [verdict["method"] for verdict in methods(["c", "a"], checks)] == ["c", "a", "b"]


def test_checkpoints_are_correlations_by_case():
    checks = [
        of_case("checkpoints", "a-x-up", at_25=0.5, at_50=None, at_75=1.0),
        of_case("seed", "a-x-up", rank_correlation=0.1),
        of_case("checkpoints", "b-x-up", "not_applicable"),
    ]
    assert checkpoints(checks) == [("a-x-up", "at_25", 0.5), ("a-x-up", "at_75", 1.0)]


def test_gates_know_the_figures_of_judges():
    assert set(gate.PROTOCOL_FIGURES) == set(FIGURES) - {"checkpoints"}


def test_verdicts_are_json():
    checks = [of_case("seed", "a-x-up", rank_correlation=None), of_method("contract", "one")]
    json.dumps([judges(["up"], checks), methods([], checks)], allow_nan=False)
