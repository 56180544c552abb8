"""Distances of curves and changes of maps by hand; protocols by value and by order; gaming."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attrcheck
from attrcheck.checks import values as module
from attrcheck.checks._curves import hausdorff, least_apart
from attrcheck.checks.values import (
    DECIMALS,
    SCHEMES,
    TRANSFORMS,
    draws_curves,
    gaming,
    margin_verdict,
    modified,
    sensitivity,
    sensitivity_verdict,
    value_sensitivity,
)
from attrcheck.contracts import Protocol, Reduction, Verdict
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.order import ranks_of

FLAT = ([0.0, 1.0], [0.0, 0.0])


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        (FLAT, FLAT, 0.0),
        (FLAT, ([0.0, 1.0], [0.3, 0.3]), 0.3),
        # The end of the longer one lies 0.5 from that of the shorter.
        (FLAT, ([0.0, 1.5], [0.0, 0.0]), 0.5),
        # More points on the same line are the same curve.
        (FLAT, ([0.0, 0.1, 0.9, 1.0], [0.0] * 4), 0.0),
        # A tooth of height .4: its tip is .4 away; the flat line is nearest to its flanks.
        (FLAT, ([0.0, 0.5, 1.0], [0.0, 0.4, 0.0]), 0.4),
        # Two diagonals of a square: corners are half a diagonal from the other line.
        (([0.0, 1.0], [0.0, 1.0]), ([0.0, 1.0], [1.0, 0.0]), 0.5**0.5),
        # A point without height is left out; one that is left alone is a curve.
        (FLAT, ([0.0, 0.5, 1.0], [0.0, np.nan, 0.0]), 0.0),
        (([0.0], [0.0]), FLAT, 1.0),
    ],
)
def test_hausdorff_distance_by_hand(one, other, distance):
    assert hausdorff(one, other) == pytest.approx(distance)
    assert hausdorff(other, one) == pytest.approx(distance)


heights = st.lists(st.floats(0, 1), min_size=5, max_size=5)


@given(heights, heights)
def test_hausdorff_distance_of_curves_over_one_axis_is_no_more_than_their_largest_gap(one, other):
    axis = [k / 4 for k in range(5)]
    gap = max(abs(a - b) for a, b in zip(one, other, strict=True))
    assert hausdorff((axis, one), (axis, other)) <= gap + 1e-9


def test_the_nearest_two_of_three_curves_count():
    near, far = ([0.0, 1.0], [0.1, 0.1]), ([0.0, 1.0], [0.9, 0.9])
    assert least_apart([FLAT, near, far]) == pytest.approx(0.1)


MAP = torch.tensor([[[0.0, 0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8, 1.0]]], dtype=torch.float64)


def test_constant_shifts_are_clipped():
    removed, introduced = modified("constant", MAP, (1,))
    assert removed.flatten().tolist() == pytest.approx([0] * 7 + [0.1, 0.2, 0.4])
    assert introduced.flatten().tolist() == pytest.approx([0.6, 0.7, 0.8, 0.9] + [1] * 6)


def test_random_shifts_stay_within_theirs_and_are_the_image_s_own():
    both = MAP.repeat(2, 1, 1)
    removed, introduced = modified("random", both, (1, 2))
    assert ((removed <= both) & (removed >= (both - 0.6).clamp(min=0))).all()
    assert ((introduced >= both) & (introduced <= (both + 0.6).clamp(max=1))).all()
    assert not torch.equal(removed[0], removed[1])
    assert torch.equal(removed[:1], modified("random", MAP, (1,))[0])


def test_partial_changes_hit_the_ranks_they_should():
    removed, introduced = modified("partial", MAP, (1,))
    # Ranks 6 to 8 of ten; ranks 0 to 4 become the .8 quantile, .72 between the eighth and ninth.
    assert removed.flatten().tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.0, 0.0, 0.0, 1.0]
    assert introduced.flatten().tolist() == pytest.approx([0.72] * 5 + [0.5, 0.6, 0.7, 0.8, 1.0])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_values_stay_in_the_unit_interval(scheme):
    values = torch.rand(3, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for maps in modified(scheme, values, (1, 2, 3)):
        assert ((maps >= 0) & (maps <= 1)).all()
        assert not torch.equal(maps, values)


@dataclass(frozen=True)
class Mean(Protocol):
    """Draws the mean of a map, or without weight nothing of it."""

    sees: str = "values"
    weight: float = 1.0
    higher_is_better = True

    def observe(self, model, batch, maps, shared):
        return {"mean": maps.mean((1, 2)).numpy()}

    def reduce(self, rows):
        score = self.weight * float(rows["mean"].mean())
        return Reduction(score, ([0.0, 1.0], [score, score]))


@pytest.fixture
def on_saliency(monkeypatch):
    monkeypatch.setattr(module, "METHODS", ("saliency",))
    monkeypatch.setitem(module.IMAGES, "smoke", 4)


def smoke(lab):
    return replace(lab, settings=replace(lab.settings, profile="smoke"))


@pytest.mark.parametrize(
    ("sees", "weight", "passed"),
    [("values", 9.0, True), ("values", 0.0, False), ("order", 0.0, True), ("order", 9.0, None)],
)
def test_a_protocol_is_held_to_what_it_says_it_sees(
    registries, on_saliency, lab_of, sees, weight, passed
):
    attrcheck.protocol("mean_of_map")(lambda: Mean(sees, weight))
    verdict = value_sensitivity(smoke(lab_of()), "mean_of_map")
    assert verdict.passed is passed
    assert (verdict.figures["hausdorff"] == 0) is (weight == 0)
    if passed is False:
        assert verdict.reason == (
            "is said to see values, but its curves are 0.000 apart, give or take 0.000: "
            "not surely above 0.05"
        )


def test_a_protocol_without_a_curve_gets_no_verdict(on_saliency, lab_of):
    verdict = value_sensitivity(smoke(lab_of()), "sds")
    assert verdict.passed is None
    assert verdict.reason == "the protocol draws no curve"


@pytest.mark.parametrize(
    ("sees", "mean", "images", "passed"),
    [
        ("values", 0.07, 100, True),
        ("values", 0.06, 100, False),
        ("order", 0.06, 100, True),
        ("order", 0.07, 100, False),
        ("order", 0.07, 99, None),
    ],
)
def test_the_limit_allows_for_one_standard_error(sees, mean, images, passed):
    assert sensitivity_verdict(sees, {"hausdorff": mean, "error": 0.015}, images).passed is passed


def test_only_protocols_that_take_a_map_as_it_is_are_asked():
    asked = {name for name in protocols if draws_curves(protocols.get(name).make("smoke"))}
    assert {"morf", "road_morf", "soundness", "completeness"} <= asked
    assert not {"ids_updated", "relevance_mass", "pointing_game", "idsds"} & asked


PUBLISHED = {
    "completeness": (0.503, 0.02),
    "soundness": (0.183, 0.02),
    "deletion": (0.019, 0.002),
    "road_morf": (0.014, 0.002),
}


def test_the_margin_is_that_of_the_nearest_two():
    verdict = margin_verdict(PUBLISHED, 100)
    assert verdict.passed
    assert verdict.figures["margin"] == pytest.approx(0.183 / 0.019)
    assert verdict.figures["completeness"] == 0.503


def test_groups_that_overlap_within_their_errors_are_not_apart():
    verdict = margin_verdict(PUBLISHED | {"road_morf": (0.1, 0.03)}, 100)
    assert verdict.passed is False
    assert verdict.reason == "by values at least 0.143, by order at most 0.160"


def test_a_few_images_give_no_verdict():
    verdict = margin_verdict(PUBLISHED, 24)
    assert (verdict.passed, verdict.reason) == (None, "24 images are too few to tell them apart")
    assert verdict.figures["margin"] > 9


def test_sensitivities_are_those_of_the_other_check(lab_of, monkeypatch):
    asked = []

    def verdict(lab, check, protocol):
        asked.append((check.name, protocol))
        return Verdict(True, {"hausdorff": 0.2, "error": 0.01})

    monkeypatch.setattr("attrcheck.engine.lab.Lab.verdict", verdict)
    assert sensitivity(lab_of(), "soundness") == (0.2, 0.01)
    assert asked == [("value_sensitivity", "soundness")]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_keep_the_order_of_rounded_values_and_make_no_ties(name):
    values = torch.rand(2, 40, 40, generator=torch.Generator().manual_seed(0)).double()
    values = (values**6).round(decimals=DECIMALS)
    changed = TRANSFORMS[name](values)
    assert torch.equal(ranks_of(changed, (1, 2)), ranks_of(values, (1, 2)))
    assert len(changed.unique()) == len(values.unique())
    assert ((changed >= 0) & (changed <= 1)).all()


def run(lab_of):
    return gaming(smoke(lab_of()))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(module, "GAMED_METHOD", "saliency")
    monkeypatch.setitem(module.IMAGES, "smoke", 8)
    monkeypatch.setattr(module, "GAMED_BY_ORDER", ("morf",))


def test_an_order_is_an_order_to_the_last_digit(small, lab_of):
    figures = run(lab_of).figures
    assert figures["morf_plain"] == figures["morf_cubed"] == figures["morf_raised"]
    assert len({figures[f"completeness_{how}"] for how in TRANSFORMS}) == 3


def test_a_protocol_that_sees_values_does_not_pass_for_one_by_order(small, lab_of, monkeypatch):
    monkeypatch.setattr(module, "GAMED_BY_ORDER", ("completeness",))
    verdict = run(lab_of)
    assert verdict.passed is False
    assert "completeness sees more than an order" in verdict.reason


def test_transforms_that_do_not_do_what_they_should_are_named(small, lab_of, monkeypatch):
    swapped = {
        "plain": TRANSFORMS["plain"],
        "cubed": TRANSFORMS["plain"],
        "raised": TRANSFORMS["plain"],
    }
    monkeypatch.setattr(module, "TRANSFORMS", swapped)
    verdict = run(lab_of)
    assert verdict.reason == "cubing does not lift soundness; .6 + .4 a does not sink soundness"


@pytest.mark.slow
def test_soundness_is_gamed_as_published(lab_of, verdict_of):
    result = verdict_of("gaming", lab_of())
    assert result.status == "passed"
    figures = result.figures
    assert figures["soundness_raised"] < figures["soundness_plain"] < figures["soundness_cubed"]
