"""Whether a network is the one for these images: logits, and an accuracy above chance."""

from math import comb

import numpy as np
import pytest
import torch

from attrcheck.engine.plausibility import are_probabilities, caveats, near_chance
from attrcheck.errors import ModelError


def tail(correct, images, classes):
    """P(a guess is right at least so often), summed by hand."""
    p = 1 / classes
    return sum(comb(images, k) * p**k * (1 - p) ** (images - k) for k in range(correct, images + 1))


@pytest.mark.parametrize(("images", "classes"), [(30, 2), (100, 10), (50, 1000), (200, 3)])
def test_near_chance_is_what_a_binomial_test_does_not_tell_from_it(images, classes):
    for correct in range(images + 1):
        assert near_chance(correct, images, classes) == (tail(correct, images, classes) > 0.01)


def test_known_cases():
    assert near_chance(1, 30, 1000)  # p = 0.03
    assert not near_chance(2, 30, 1000)  # p = 0.0004
    assert near_chance(61, 100, 2)
    assert not near_chance(63, 100, 2)
    assert near_chance(0, 100, 10)  # worse than chance: a shifted label, say


def test_few_images_and_one_class_say_nothing():
    assert not near_chance(0, 29, 10)
    assert near_chance(0, 30, 10)
    assert not near_chance(0, 100, 1)


LABELS = np.arange(100) % 10


def test_a_model_that_guesses_is_refused_with_likely_causes():
    correct = np.arange(100) < 12
    with pytest.raises(ModelError) as caught:
        caveats(correct, LABELS, 10, accept=False)
    message = str(caught.value)
    assert message.startswith("accuracy 12.0% of 100 images is near chance (10.0%): likely causes")
    for cause in ("another order", "off by one", "preprocessing", "weights"):
        assert cause in message
    assert "--attr-accept-accuracy" in message


def test_an_accepted_accuracy_is_remarked_on():
    correct = np.arange(100) < 12
    [remark] = caveats(correct, LABELS, 10, accept=True)
    assert remark == "accuracy 12.0% of 100 images is near chance (10.0%)"
    assert caveats(np.arange(100) < 40, LABELS, 10, accept=True) == []


def test_one_class_in_the_sample_is_remarked_on():
    right, same = np.ones(20, bool), np.full(20, 3)
    assert caveats(right, same, 10, accept=False) == ["all 20 images are of one class"]
    assert caveats(right, same, 1, accept=False) == []
    assert caveats(right[:1], same[:1], 10, accept=False) == []


@pytest.mark.parametrize(
    ("output", "verdict"),
    [
        (torch.randn(2, 5).softmax(1), True),
        (torch.randn(2, 5).softmax(1).half(), True),
        (torch.tensor([[1.5, -0.5], [0.5, 0.5]]), False),  # sums to one, but is no probability
        (torch.tensor([[0.5, 0.5], [0.5, 0.6]]), False),
        (torch.randn(2, 5).log_softmax(1), False),
        (torch.zeros(2, 5), False),
    ],
)
def test_probabilities_are_told_from_logits(output, verdict):
    assert are_probabilities(output) is verdict
