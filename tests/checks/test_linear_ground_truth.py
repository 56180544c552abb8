"""On the sign of a sum: right maps win, and protocols that prefer others are caught by name."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import attrcheck
from attrcheck.checks import check as checks
from attrcheck.checks import linear_ground_truth as module
from attrcheck.checks.linear_ground_truth import (
    SHAPE,
    Trial,
    broken,
    claims_faithfulness,
    fitted,
    linear_ground_truth,
    reductions,
    sign_of_sum,
)
from attrcheck.contracts import Protocol, Reduction
from attrcheck.engine.checking import Subject, run_check
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.soundness import Soundness

TRIAL = Trial(points=200, seed=3)


def test_the_model_is_the_sign_of_the_sum_and_the_exact_map_sums_to_its_logit():
    model = sign_of_sum()
    logits = model(TRIAL.images)
    assert torch.equal(logits.argmax(1), TRIAL.labels)
    assert TRIAL.images[0].numel() == 200
    sums = TRIAL.exact(TRIAL.images).sum((1, 2)) / 200**0.5
    assert torch.allclose(sums, logits.gather(1, TRIAL.labels[:, None])[:, 0], atol=1e-5)
    assert (sums > 0).all()


def test_copies_are_what_they_say():
    exact = TRIAL.exact(TRIAL.images)
    made = {name: change(exact) for name, change in TRIAL.changes.items()}
    assert torch.equal(made["exact"], exact)
    for name, hit in (("remove", exact > 0), ("introduce", exact <= 0)):
        changed = made[name] != exact
        assert not (changed & ~hit).any()
        assert changed.sum() / hit.sum() == pytest.approx(0.5, abs=0.02)
        assert torch.equal(made[name].amax((1, 2)), exact.amax((1, 2)))
    assert (made["remove"][made["remove"] != exact] == 0).all()
    assert (made["introduce"][made["introduce"] != exact] > 0).all()
    assert torch.equal(made["shuffled"].flatten(1).sort(1).values, exact.flatten(1).sort(1).values)
    # The same pixels are hit whatever map comes in.
    for change in TRIAL.changes.values():
        assert torch.equal(change(2 * exact) == 2 * exact, change(exact) == exact)


@pytest.mark.parametrize("name", ["morf", "lerf", "sds", "ids_updated", "road_morf", "soundness"])
def test_the_exact_map_wins(name):
    protocol = fitted(protocols.get(name).make("default"))
    sign = 1 if protocol.higher_is_better else -1
    copies = reductions(protocol, sign_of_sum(), TRIAL)
    scores = {copy: np.array([sign * reduced.score]) for copy, reduced in copies.items()}
    assert broken(protocol, scores) == []


def test_all_that_completeness_breaks_is_that_introduce_lowers_it():
    protocol = protocols.get("completeness").make("default")
    copies = reductions(protocol, sign_of_sum(), TRIAL)
    scores = {copy: np.array([reduced.score]) for copy, reduced in copies.items()}
    (wrong,) = broken(protocol, scores)
    assert wrong.startswith("introduce changes the score by -0.")


@dataclass(frozen=True)
class LikesNoise(Protocol):
    """Rewards maps that have nothing to do with the image."""

    higher_is_better = True

    def observe(self, model, batch, maps, shared):
        alike = (maps * batch.images[:, 0]).abs().mean((1, 2))
        return {"alike": alike.numpy()}

    def reduce(self, rows):
        return Reduction(-float(rows["alike"].mean()))


def test_a_protocol_that_rewards_random_maps_is_caught_by_name(registries, lab_of, monkeypatch):
    attrcheck.protocol("likes_noise")(LikesNoise)
    monkeypatch.setattr(module, "POINTS", 50)
    lab = lab_of()
    subject = Subject("likes_noise", ("likes_noise",), "likes_noise")
    result = run_check(checks.get("linear_ground_truth"), subject, lab)
    assert (result.status, result.protocol) == ("failed", "likes_noise")
    assert "the exact map loses to shuffled in 100% of the trials" in result.reason
    assert result.figures["shuffled"] > result.figures["exact"]


SCORES = {
    "exact": [1.0, 1.0],
    "remove": [1.0, 1.0],
    "introduce": [0.9, 0.9],
    "shuffled": [0.5, 0.5],
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, []),
        ({"introduce": [0.9, 1.0]}, ["introduce does not lower the score"]),
        ({"remove": [0.9, 0.9]}, ["remove changes the score by -0.100"]),
        ({"shuffled": [0.5, 1.0]}, ["shuffled does not lower the score"]),
        ({"noise": [0.9, 1.1]}, ["the exact map loses to noise in 50% of the trials"]),
        ({"exact": [1.0, np.nan]}, ["the exact map has no score"]),
    ],
)
def test_each_broken_promise_of_soundness_is_told(change, reason):
    scores = {name: np.array(values) for name, values in (SCORES | change).items()}
    assert broken(Soundness(), scores) == reason


def test_figures_hold_means_spreads_and_curves(lab_of, monkeypatch):
    monkeypatch.setattr(module, "POINTS", 50)
    lab = lab_of()
    figures = linear_ground_truth(lab, "morf").figures
    assert figures["exact"] < figures["noise"] < figures["shuffled"]
    assert len(figures["exact_curve"]) == len(figures["exact_curve_std"]) == 11
    assert figures["shuffled_std"] > 0
    other = replace(lab, settings=replace(lab.settings, seed=1))
    assert linear_ground_truth(other, "morf").figures != figures
    assert linear_ground_truth(lab, "morf").figures == figures


def test_those_who_need_more_than_a_model_and_its_images_are_not_asked():
    known = {name: protocols.get(name).make("default") for name in protocols}
    asked = {name for name, protocol in known.items() if claims_faithfulness(protocol)}
    assert {"morf", "sds", "sds_random", "ids_updated", "soundness"} <= asked
    assert not {"idsds", "relevance_mass", "pointing_game"} & asked
    assert not claims_faithfulness(protocols.get("captum:infidelity").make("default"))


@pytest.mark.parametrize(("name", "grid"), [("sds", 5), ("sds_2", 2), ("sds_8", 5)])
def test_grids_that_do_not_divide_the_image_are_changed(name, grid):
    assert fitted(protocols.get(name).make("default")).grid == grid
    assert not any(side % grid for side in SHAPE)
