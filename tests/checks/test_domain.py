"""How far removals take images out of the domain: by hand, and imputation against a constant."""

import pytest
import torch

from attrcheck.checks import domain
from attrcheck.checks.domain import random_ranks, share_lost
from attrcheck.removal import removal as removals
from tests.worlds import load


def test_a_random_order_is_an_order_and_of_the_image():
    ranks = random_ranks(torch.zeros(2, 3, 4, 5), (1, 2))
    assert [sorted(one.flatten().tolist()) for one in ranks] == [list(range(20))] * 2
    assert torch.equal(ranks[1:], random_ranks(torch.zeros(1, 3, 4, 5), (2,)))


def test_a_removal_that_takes_nothing_loses_nothing(registries):
    removals("idle")(lambda images, keep: images)
    removals("blank")(lambda images, keep: images * keep.flatten(1).all(1)[:, None, None, None])
    pair = load("digits", "resnet", 40, "cpu")
    assert share_lost(pair, "idle", 0) == 0
    assert share_lost(pair, "blank", 0) > 0.7  # one class is guessed of all blank images


@pytest.mark.slow
@pytest.mark.parametrize(("imputed", "passed"), [("noisy_linear", True), ("histogram", False)])
def test_imputed_images_stay_closer(monkeypatch, imputed, passed):
    monkeypatch.setattr(domain, "IMPUTED", imputed)
    monkeypatch.setattr(domain, "PAIRS", (("digits", "resnet"),))
    monkeypatch.setattr(domain, "IMAGES", 20)
    verdict = domain.out_of_domain(Lab())
    assert verdict.passed is passed
    assert verdict.figures["noisy_linear"] < 0.2 < verdict.figures["mean"]
    assert verdict.figures.keys() == set(removals)
    assert ("of the accuracy, mean" in verdict.reason) is not passed


class Lab:
    """As much of a lab as is needed."""

    class settings:  # noqa: N801
        seed = 0

    def progress(self, text):
        pass

    def pair(self, dataset, model, images):
        return load(dataset, model, images, "cpu")
