"""Ground truth against the floor: who is asked, on which data, and what decides."""

import numpy as np
import pytest
import torch

import attrcheck
from attrcheck.checks import check as checks
from attrcheck.checks.ground_truth import FLOOR, MEASURES, ground_truth, masked, measured
from attrcheck.contracts import Method
from attrcheck.engine.checking import examine
from attrcheck.methods import method as methods
from tests.worlds import load


def masks_of(count, side=5):
    """A spot per image, away from the centre."""
    masks = torch.zeros(count, side, side, dtype=torch.bool)
    masks[torch.arange(count), 0, torch.arange(count) % side] = True
    return masks


@pytest.fixture
def truth(tiny):
    """The tiny model on pictures with masks, `tiny_masked`, too."""

    def with_masks():
        return tiny.dataset("tiny_masked", masks=masks_of(8))

    attrcheck.dataset("tiny_masked", offers=("masks",))(with_masks)
    return tiny


def oracle(model, images, targets):
    """Knows the masks."""
    return masks_of(len(images)).float()


def opposite(model, images, targets):
    return -oracle(model, images, targets)


def test_the_truth_passes_and_its_opposite_fails(truth):
    pair = load("tiny_masked", "linear", None, "cpu")
    right = ground_truth(Method("oracle", oracle), pair)
    assert right.passed
    assert [right.figures[name] for name in (*MEASURES, "mean")] == [1, 1, 1, 1]
    wrong = ground_truth(Method("opposite", opposite), pair)
    assert wrong.passed is False
    assert wrong.figures["mean"] == 0
    # It has no positive value: its relevance mass is not defined, and counts as nothing.
    assert np.isnan(wrong.figures["relevance_mass"])
    assert "on tiny_masked-linear it finds 0.000 of the truth" in wrong.reason


def test_the_best_dummy_is_the_floor(truth):
    pair = load("tiny_masked", "linear", None, "cpu")
    scores = {name: np.mean([*measured(methods.get(name), pair).values()]) for name in FLOOR}
    best = max(scores, key=scores.get)
    same = ground_truth(Method(best, methods.get(best).attribute), pair)
    assert same.passed is False
    assert same.reason.endswith(f"{best} {scores[best]:.3f}")
    for name, score in scores.items():
        assert same.figures[f"mean_of_{name}"] == pytest.approx(score)


def test_a_dummy_is_not_asked(truth):
    result = examine(checks.get("ground_truth"), methods.get("random"), truth.pair)
    assert (result.status, result.reason) == ("not_applicable", "a dummy sets the floor")


def test_where_the_data_has_no_masks_the_model_is_asked_on_other_data(truth):
    assert masked(truth.pair).name == "tiny_masked-linear"
    assert ground_truth(Method("oracle", oracle), truth.pair).passed


def test_where_no_data_has_masks_there_is_no_truth(tiny):
    result = examine(checks.get("ground_truth"), Method("oracle", oracle), tiny.pair)
    assert result.status == "not_applicable"
    assert "no dataset that 'linear' knows has masks" in result.reason


def test_batches_do_not_matter(truth, monkeypatch):
    gradient = methods.get("slope")
    whole = measured(gradient, load("tiny_masked", "linear", None, "cpu"))
    truth.in_batches_of(3, monkeypatch)
    assert measured(gradient, load("tiny_masked", "linear", None, "cpu")) == pytest.approx(whole)


def test_digits_are_checked_on_shapes_and_deconvolution_is_known_to_fail():
    pair = load("digits", "resnet", 8, "cpu")
    assert masked(pair).name == "shapes-resnet"
    good = examine(checks.get("ground_truth"), methods.get("guided_backprop"), pair)
    bad = examine(checks.get("ground_truth"), methods.get("deconvolution"), pair)
    assert (good.status, bad.status) == ("passed", "known_failure")
    assert good.figures["mean"] > 0.5 > 0.2 > bad.figures["mean"]


def test_the_image_itself_does_not_pass():
    """Clipped at the dataset's mean it finds more of the shapes than its brightness does."""
    itself = Method("itself", lambda model, images, targets: images.sum(1))
    verdict = ground_truth(itself, load("shapes", "resnet", 48, "cpu"))
    assert verdict.passed is False
    assert verdict.figures["mean"] > verdict.figures["mean_of_intensity"]
