"""Two reports: what moved, image by image; what both have in common; and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrcheck.engine.resampling import condense
from attrcheck.engine.results import CaseResult, Outcome
from attrcheck.report.comparing import compare, refusal
from attrcheck.report.comparison import Difference
from attrcheck.report.details import Details
from attrcheck.report.document import build
from tests.report import samples

IMAGES = 20
NAMES = ("old.json", "new.json")


def outcome(scores):
    """Of these scores of images; without any, the method does not apply."""
    if scores is None:
        return Outcome("not_applicable", "no gradient")
    scores = np.asarray(scores, dtype=np.float32)
    replicates = float(scores.mean()) + np.linspace(-0.01, 0.01, 10)
    return Outcome("ok", score=float(scores.mean()), replicates=replicates, image_scores=scores)


def result(case, methods, **changes):
    """A case of these scores of images, by method."""
    outcomes = {name: outcome(scores) for name, scores in methods.items()}
    plain = CaseResult(
        *(case, not case.endswith("down"), IMAGES, 0.9, outcomes, {"removal": "mean"}),
        data="images",
        weights="weights",
    )
    return condense(replace(plain, **changes))


def report(results, methods=None, **changes):
    """A report and its details."""
    names = methods or list(results[0].outcomes)
    document = build(results, [], samples.settings(names, **changes), [], samples.RUN)
    return document, Details.of(samples.RUN.started, results, [])


def world(mine=0.75, other=0.5, cases=("a-x-up", "a-x-down"), **changes):
    """Two cases in which `mine` is better than `other`, image by image with some noise."""
    rng = np.random.default_rng(0)
    noise = 0.05 * rng.standard_normal((2, IMAGES))
    return report(
        [
            result(
                case,
                {
                    "mine": (mine if case.endswith("up") else 1 - mine) + noise[0],
                    "other": (other if case.endswith("up") else 1 - other) + noise[1],
                },
                **changes,
            )
            for case in cases
        ]
    )


def test_a_report_is_like_itself():
    found = compare(world(), world(), NAMES)
    assert found.changes == []
    assert found.refused == found.unscored == found.differences == []
    assert found.cases == ["a-x-up", "a-x-down"]
    assert [entry.difference for entry in found.board] == [0, 0]
    assert found.board[0].counts == {"same": 2}


def test_a_change_has_the_interval_of_its_paired_difference():
    old, new = world(), world(mine=0.625)
    [up, down] = compare(old, new, NAMES).of("mine")
    assert {up.case, down.case} == {"a-x-up", "a-x-down"}
    for change in (up, down):
        sign = 1 if change.case == "a-x-up" else -1
        # The noise is the same in both, so it is gone from the differences.
        assert change.difference == pytest.approx(-0.125 * sign, abs=1e-6)
        assert change.low == pytest.approx(-0.125 * sign, abs=1e-6)
        assert change.high == pytest.approx(-0.125 * sign, abs=1e-6)
        assert (change.kind, change.images) == ("worse", IMAGES)
        assert (change.old_rank, change.new_rank) == (1, 1)
    [better, _] = compare(new, old, NAMES).of("mine")
    assert better.kind == "better"


def test_the_interval_is_that_of_a_bootstrap_of_the_differences():
    rng = np.random.default_rng(1)
    before, after = rng.standard_normal(IMAGES), rng.standard_normal(IMAGES)
    old = report([result("a-x-up", {"mine": before, "other": before})])
    new = report([result("a-x-up", {"mine": after, "other": before})])
    [change] = compare(old, new, NAMES).changes
    differences = after - before
    error = differences.std() / np.sqrt(IMAGES)
    assert change.difference == pytest.approx(differences.mean(), abs=1e-6)
    assert change.low == pytest.approx(differences.mean() - 1.96 * error, abs=0.25 * error)
    assert change.high == pytest.approx(differences.mean() + 1.96 * error, abs=0.25 * error)
    assert change.kind == "unclear"


def test_without_scores_of_images_nothing_is_claimed():
    document, _ = world(mine=0.25)
    [change, _] = compare(world(), (document, Details()), NAMES).of("mine")
    assert (change.kind, change.low, change.high, change.images) == ("unpaired", None, None, 0)


def test_images_without_a_score_in_both_are_left_out():
    hole = np.full(IMAGES, 0.5)
    hole[0] = np.nan
    before = result("a-x-up", {"mine": np.full(IMAGES, 0.5), "other": np.full(IMAGES, 0.1)})
    lower = replace(before.outcomes["mine"], score=0.25, image_scores=(hole - 0.25).astype("f4"))
    after = replace(before, outcomes={**before.outcomes, "mine": lower})
    [change] = compare(report([before]), report([after]), NAMES).changes
    assert (change.kind, change.images) == ("worse", IMAGES - 1)


def test_a_lost_and_a_gained_score_are_told_and_leave_the_board_alone():
    old = report([result("a-x-up", {"mine": [1.0], "other": [0.5], "third": None})])
    new = report([result("a-x-up", {"mine": None, "other": [0.5], "third": [0.25]})])
    found = compare(old, new, NAMES)
    [lost], [gained] = found.of("mine"), found.of("third")
    assert (lost.kind, lost.reason) == ("lost", "not_applicable: no gradient")
    assert (gained.kind, gained.new) == ("gained", 0.25)
    assert [entry.method for entry in found.board] == ["other"]


def test_boards_are_fused_over_what_both_have():
    """Two more methods and one more case in the new report change nothing of the comparison."""
    more = {"mine": [0.9], "other": [0.5], "third": [0.8], "fourth": [0.7]}
    old = report([result("a-x-up", {"mine": [0.9], "other": [0.5]})])
    new = report([result("a-x-up", more), result("b-x-up", {**more, "mine": [0.1]})])
    found = compare(old, new, NAMES)
    assert found.changes == []
    assert found.only_new_methods == ["third", "fourth"]
    assert found.only_new_cases == ["b-x-up"]
    assert [(entry.new.rank, entry.difference) for entry in found.board] == [(1, 0), (2, 0)]
    # One win of one: L = ln(1.5 / 0.5), kappa half of it each way.
    assert found.board[0].new.meta_rank == pytest.approx(np.log(3) / 2)
    swapped = compare(new, old, NAMES)
    assert swapped.only_old_methods == ["third", "fourth"]
    assert swapped.only_old_cases == ["b-x-up"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"images": 5}, "other images: 20 and 5"),
        ({"data": "others"}, "other data: images and others"),
        ({"weights": "others"}, "other weights: weights and others"),
        ({"higher_is_better": False}, "another protocol: what was better is worse"),
        (
            {"protocol_settings": {"removal": "blur", "grid": 4}},
            "other settings of the protocol: grid None and 4; removal mean and blur",
        ),
        ({"data": ""}, "the new report does not say which images and weights it is of: run it aga"),
    ],
)
def test_what_cannot_be_compared_is_refused_case_by_case(changes, reason):
    old = world()
    [document, details] = world(mine=0.5)
    cases = [replace(document.cases[0], **changes), document.cases[1]]
    found = compare(old, (replace(document, cases=cases), details), NAMES)
    [refused] = found.refused
    assert refused.case == "a-x-up"
    assert refused.reason.startswith(reason)
    assert found.cases == ["a-x-down"]
    assert {change.case for change in found.changes} == {"a-x-down"}
    assert refusal(old[0].cases[1], cases[1]) == ""


def test_where_nothing_can_be_compared_there_is_no_board():
    found = compare(world(), world(data="others"), NAMES)
    assert found.nothing
    assert found.board == []
    assert found.board_problem.startswith("no method has a score in both")


def test_a_setting_that_the_methods_decided_leaves_their_ranks_to_compare():
    more = {"settled": ["level"]}
    old = world(protocol_settings={"level": 0.5}, **more)
    new = world(mine=0.25, protocol_settings={"level": 0.25}, **more)
    found = compare(old, new, NAMES)
    assert found.refused == []
    assert [refused.case for refused in found.unscored] == ["a-x-up", "a-x-down"]
    assert found.unscored[0].reason.endswith("level 0.5 and 0.25")
    [change, _] = found.of("mine")
    assert (change.kind, change.difference) == ("unpaired", None)
    assert (change.old_rank, change.new_rank) == (1, 2)
    assert found.board[0].method == "other"
    assert found.board[0].difference > 0


def test_settings_and_versions_that_differ_are_named_and_do_not_forbid():
    document, details = world()
    chosen = replace(document.settings, seed=1, profile="smoke", device="cuda", images=None)
    run = replace(document.run, versions={"torch": "3.0", "numpy": "2.0"}, machine="another")
    found = compare(world(), (replace(document, settings=chosen, run=run), details), NAMES)
    assert found.cases
    assert found.differences == [
        Difference("profile", "default", "smoke"),
        Difference("images", "8", "all"),
        Difference("seed", "0", "1"),
        Difference("device", "cpu", "cuda"),
        Difference("machine", "a machine", "another"),
        Difference("version of torch", "2.4", "3.0"),
        Difference("version of numpy", "", "2.0"),
    ]


levels = st.floats(-2, 2, width=32)
rows = st.lists(levels, min_size=4, max_size=4)
tables = st.dictionaries(
    st.sampled_from(["mine", "other", "third"]), st.none() | rows, min_size=1, max_size=3
)
some_cases = st.dictionaries(
    st.sampled_from(["a-x-up", "a-y-up", "b-x-down"]), tables, min_size=1, max_size=3
)


def any_report(cases):
    methods = ["mine", "other", "third"]
    results = [
        result(case, {name: table.get(name) for name in methods}) for case, table in cases.items()
    ]
    return report(results, methods)


@settings(max_examples=15, deadline=None)
@given(some_cases)
def test_any_report_is_like_itself(cases):
    one = any_report(cases)
    found = compare(one, one, NAMES)
    assert found.changes == []
    assert found.refused == []
    assert all(entry.difference == 0 for entry in found.board)
    assert all(entry.old == entry.new for entry in found.board)


OPPOSITE = {"better": "worse", "worse": "better", "lost": "gained", "gained": "lost"}


@settings(max_examples=15, deadline=None)
@given(some_cases, some_cases)
def test_swapping_two_reports_negates_what_moved(first, second):
    one, other = any_report(first), any_report(second)
    there, back = compare(one, other, NAMES), compare(other, one, NAMES)
    assert {entry.method: entry.difference for entry in back.board} == pytest.approx(
        {entry.method: -entry.difference for entry in there.board}
    )
    assert [*back.only_old_cases] == there.only_new_cases
    reverse = {(change.case, change.method): change for change in back.changes}
    assert len(reverse) == len(there.changes)
    for change in there.changes:
        twin = reverse[change.case, change.method]
        assert twin.kind == OPPOSITE.get(change.kind, change.kind)
        assert (twin.old, twin.new) == (change.new, change.old)
        assert (twin.old_rank, twin.new_rank) == (change.new_rank, change.old_rank)
        if change.difference is not None:
            assert twin.difference == -change.difference
        if change.low is not None:
            assert twin.low == pytest.approx(-change.high, abs=1e-12)
            assert twin.high == pytest.approx(-change.low, abs=1e-12)
