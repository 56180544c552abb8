"""How sure the change of a Meta-Rank is: both reports on the same samples."""

import math

import numpy as np
import pytest

from attrcheck.report.comparing import compare
from attrcheck.report.details import Details
from attrcheck.report.paired import Sides, differences
from tests.report.test_comparing import IMAGES, NAMES, report, result, world

WIN = math.log(3)  # kappa of who wins a single case of two methods is half of this
NO_IMAGES = np.empty((2, 2, 0))


def case(old, new, pair="a-x", images=None):
    """Scores of two methods in both reports."""
    return Sides(pair, np.array([old, new], dtype=float), NO_IMAGES if images is None else images)


def constant(scores, images=IMAGES):
    """Images that all have their method's score."""
    return np.repeat(np.array(scores, dtype=float)[:, :, None], images, axis=2)


def test_what_no_image_disputes_has_no_width():
    scores = ([1, 0], [0, 1])
    low, high = differences([case(*scores, images=constant(scores))])
    assert low.tolist() == high.tolist() == pytest.approx([-WIN, WIN])


def test_images_that_disagree_give_the_interval_its_width():
    """The old order is sure; the new one turns with the images that are drawn."""
    rng = np.random.default_rng(0)
    images = constant(([1, 0], [0, 0]))
    images[1, 0] = rng.normal(0, 1, IMAGES)
    images[1, 0] -= images[1, 0].mean() - 0.01
    low, high = differences([case([1, 0], [0.01, 0], images=images)])
    assert low[0] == pytest.approx(-WIN)  # lost in some samples
    assert high[0] == pytest.approx(0.0)  # and as before in others


def test_pairs_are_drawn_alike_in_both():
    """Where nothing changes in either pair, nothing does in any sample, whoever wins where."""
    some = [
        case([1, 0], [2, 0], "a-x", constant(([1, 0], [2, 0]))),
        case([0, 1], [0, 3], "a-y", constant(([0, 1], [0, 3]))),
    ]
    low, high = differences(some)
    assert low.tolist() == high.tolist() == [0, 0]


def test_a_change_in_one_pair_of_two_is_drawn_twice_once_or_not_at_all():
    some = [
        case([1, 0], [0, 1], "a-x", constant(([1, 0], [0, 1]))),
        case([1, 0], [1, 0], "a-y", constant(([1, 0], [1, 0]))),
    ]
    low, high = differences(some)
    twice = math.log(2.5 / 0.5)
    np.testing.assert_allclose(low, [-twice, 0], atol=1e-12)
    np.testing.assert_allclose(high, [0, twice], atol=1e-12)


def test_a_case_without_images_counts_as_it_is_but_alone_it_claims_nothing():
    assert np.isnan(differences([case([1, 0], [0, 1])])).all()
    sure = case([1, 0], [1, 0], images=constant(([1, 0], [1, 0])))
    low, high = differences([sure, case([1, 0], [0, 1])])
    half = math.log(2.5 / 0.5) / 2  # two of two cases, and then one of two
    np.testing.assert_allclose([low, high], [[-half, half], [-half, half]], atol=1e-12)


def test_a_method_without_a_score_has_no_interval():
    nan = math.nan
    scores = [[2, 1, nan], [1, 2, nan]]
    low, high = differences([case(*scores, images=constant(scores))])
    assert np.isnan([low[2], high[2]]).all()
    assert np.isfinite([low[:2], high[:2]]).all()


def test_the_comparison_of_reports_has_them():
    old, new = world(), world(mine=0.45)
    found = {entry.method: entry for entry in compare(old, new, NAMES).board}
    mine = found["mine"]
    assert (mine.low, mine.high) == pytest.approx((mine.difference, mine.difference))
    unpaired = compare(old, (new[0], Details()), NAMES).board
    assert {(entry.low, entry.high) for entry in unpaired} == {(None, None)}
    same = compare(old, world(), NAMES).board
    assert {(entry.low, entry.high) for entry in same} == {(None, None)}


def test_reports_are_compared_as_both_weigh_their_cases():
    """`mine` loses the one case of the second family; each family counts like the other."""
    cases = {"a-x-one": (1.0, 0.0), "a-x-two": (1.0, 0.0), "a-x-three": (0.0, 1.0)}
    families = {"one": "f", "two": "f", "three": "g"}

    def made(scheme, shift=0.0):
        return report(
            [
                result(
                    name,
                    {"mine": np.full(IMAGES, a + shift), "other": np.full(IMAGES, b)},
                )
                for name, (a, b) in cases.items()
            ],
            weights=scheme,
            families=families,
        )

    by_family = compare(made("family"), made("family", 0.1), NAMES)
    assert [entry.new.meta_rank for entry in by_family.board] == pytest.approx([0, 0])
    mixed = compare(made("equal"), made("family", 0.1), NAMES)
    assert mixed.board[0].new.meta_rank == pytest.approx(math.log(2.5 / 1.5) / 2)
    [difference] = mixed.differences
    assert (difference.what, difference.old, difference.new) == ("weights", "equal", "family")


def test_the_order_of_the_reports_turns_the_interval():
    rng = np.random.default_rng(3)
    a, b, c = rng.normal(size=(3, IMAGES))
    old = report([result("a-x-up", {"mine": a, "other": b})])
    new = report([result("a-x-up", {"mine": c + 0.3, "other": b})])
    [there] = [entry for entry in compare(old, new, NAMES).board if entry.method == "mine"]
    [back] = [entry for entry in compare(new, old, NAMES).board if entry.method == "mine"]
    assert there.low is not None
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
