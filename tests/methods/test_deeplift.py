"""DeepSHAP: the mean of DeepLIFT over baselines."""

import pytest
import torch
from captum.attr import DeepLiftShap
from torch import nn

from attrcheck.graph.preparing import prepare
from attrcheck.methods.deeplift import contributions
from attrcheck.methods.integrated import BACKGROUND, background
from tests.methods.gradient_world import attribute, each_family, error, logits, subject

both_weights = pytest.mark.parametrize("weights", ["random", "trained"])


@each_family
@both_weights
def test_deepshap_sums_to_the_change(family, weights):
    model, data, images, targets = subject(family, weights)
    total = attribute("deepshap", model, data, images, targets).sum((1, 2))
    pictures = background(data, images)
    start = torch.stack([logits(model, pictures, t.expand(BACKGROUND)).mean() for t in targets])
    change = logits(model, images, targets) - start
    assert error(total[:, None], change[:, None]) < 1e-3


@each_family
def test_deepshap_is_the_mean_of_deeplift_over_baselines(family):
    model, data, images, targets = subject(family)
    maps = [contributions(model, images, targets, b[None]) for b in background(data, images)]
    found = attribute("deepshap", model, data, images, targets)
    assert error(found, torch.stack(maps).mean(0)) < 1e-3


def test_deepshap_is_captums_where_that_is_right():
    _, data, images, targets = subject("vgg")
    # Captum 0.9 loses part of the sum at max poolings, so here is none.
    average = nn.Sequential(nn.Conv2d(3, 6, 5, 2, 2), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten())
    torch.manual_seed(0)
    average.append(nn.Linear(6 * 8 * 8, 12)).append(nn.Sigmoid()).append(nn.Linear(12, 10))
    average.requires_grad_(False)
    inputs = images.clone().requires_grad_()
    with pytest.warns(UserWarning, match="Setting forward, backward hooks"):
        wanted = DeepLiftShap(average).attribute(inputs, background(data, images), targets)
    found = attribute("deepshap", prepare(average), data, images, targets)
    assert error(found, wanted.detach().sum(1)) < 1e-4
