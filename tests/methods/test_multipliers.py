"""Pairs of images and baselines: each side runs forward once, each pair backward once."""

import gc

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attrcheck.graph.preparing import prepare
from attrcheck.methods import _multipliers, deeplift
from attrcheck.tensors.batching import limited_to
from tests.worlds import FAMILIES, random_family, smooth_images

IMAGES, BASELINES = smooth_images(3), smooth_images(4, seed=5)
TARGETS = torch.tensor([1, 0, 2])


def one_pair(model, image, target, baseline):
    return deeplift.contributions(model, image[None], target[None], baseline[None])[0, 0]


def error(found, wanted):
    return ((found - wanted).abs().max() / wanted.abs().max()).item()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_pair_is_as_it_would_be_alone(family):
    model, images, baselines = prepare(random_family(family)).double(), *_doubled()
    together = deeplift.contributions(model, images, TARGETS, baselines)
    assert together.shape == (3, 4, 32, 32)
    change = model(images)[:, None] - model(baselines)[None]
    wanted = change.gather(2, TARGETS[:, None, None].expand(3, 4, 1))[:, :, 0]
    assert torch.allclose(together.sum((2, 3)), wanted, rtol=1e-4, atol=1e-6)
    for row, column in ((0, 0), (2, 1), (1, 3)):
        alone = one_pair(model, images[row], TARGETS[row], baselines[column])
        assert error(together[row, column], alone) < 1e-6


@pytest.mark.parametrize("family", ["resnet", "vgg", "efficientnet"])
def test_changing_sides_changes_the_sign(family):
    model, images, baselines = prepare(random_family(family)).double(), *_doubled()
    there = one_pair(model, images[0], TARGETS[0], baselines[0])
    back = one_pair(model, baselines[0], TARGETS[0], images[0])
    # But for the slopes of what hardly changes, and for winners of equal maxima.
    assert error(there, -back) < 1e-4


def _doubled():
    return IMAGES.double(), BASELINES.double()


def test_a_pair_runs_no_convolution_forward(monkeypatch):
    model = prepare(random_family("resnet"))
    rows = []
    forward = F.conv2d
    monkeypatch.setattr(F, "conv2d", lambda x, *rest: rows.append(len(x)) or forward(x, *rest))
    deeplift.contributions(model, IMAGES, TARGETS, BASELINES)
    count = sum(isinstance(part, nn.Conv2d) for part in model.modules())
    # One row more was there to learn how much memory a sample takes.
    assert sorted(rows) == [1] * count + [3 + 4] * count


@pytest.mark.parametrize("most", [1, 2, 3, 5, 11])
def test_blocks_get_smaller_when_memory_runs_out(most, monkeypatch):
    model = prepare(random_family("vgg"))
    wanted = deeplift.contributions(model, IMAGES, TARGETS, BASELINES)
    sizes, found_by = [], _multipliers.multipliers

    def scarce(model, images, targets, baselines, rules):
        sizes.append((len(images), len(baselines)))
        if len(images) * len(baselines) > most:
            raise torch.OutOfMemoryError("out of memory")
        return found_by(model, images, targets, baselines, rules)

    monkeypatch.setattr(deeplift, "multipliers", scarce)
    assert error(deeplift.contributions(model, IMAGES, TARGETS, BASELINES), wanted) < 1e-4
    assert sizes[0] == (3, 4)
    done = [a * b for a, b in sizes if a * b <= most]
    assert sum(done) == 12


@pytest.mark.parametrize("budget", [1, 10**6, 10**7])
def test_blocks_keep_to_the_budget(budget):
    model = prepare(random_family("vgg"))
    wanted = deeplift.contributions(model, IMAGES, TARGETS, BASELINES)
    with limited_to(budget):
        found = deeplift.contributions(model, IMAGES, TARGETS, BASELINES)
    assert error(found, wanted) < 1e-4


class Sized(nn.Module):
    """Uses the size of its batch, and layers whose transposed is not direct."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")
        self.second = nn.Conv2d(4, 4, 3, padding="same")
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        x = F.relu(self.second(F.silu(self.first(x))))
        return self.head(F.avg_pool2d(x, 2).view(x.size(0), -1) / 2)


def test_sizes_and_padding():
    torch.manual_seed(0)
    model = prepare(Sized()).double()
    images, baselines = smooth_images(2, 8).double(), smooth_images(3, 8, seed=5).double()
    maps = deeplift.contributions(model, images, TARGETS[:2], baselines)
    change = model(images)[:, None] - model(baselines)[None]
    wanted = change.gather(2, TARGETS[:2, None, None].expand(2, 3, 1))[:, :, 0]
    assert torch.allclose(maps.sum((2, 3)), wanted, rtol=1e-5, atol=1e-8)


def test_nothing_waits_for_the_garbage_collector():
    model = prepare(random_family("resnet"))
    deeplift.deeplift(model, IMAGES, TARGETS)
    for _ in range(3):
        gc.collect()  # models of other tests, then what was known of them
    gc.disable()
    try:
        deeplift.deeplift(model, IMAGES, TARGETS)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        assert not [thing for thing in gc.garbage if isinstance(thing, torch.Tensor)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_an_activation_with_a_parameter_a_channel():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 4, 3), nn.PReLU(4), nn.Flatten(), nn.Linear(4 * 36, 3)]
    network = nn.Sequential(*layers).double()
    nn.init.uniform_(network[1].weight, -0.5, 0.5)
    model, images, baselines = prepare(network), *(x[..., :8, :8] for x in _doubled())
    found = deeplift.contributions(model, images, TARGETS, baselines).sum((-1, -2))
    ends, starts = network(images), network(baselines)
    wanted = torch.stack([ends[i, t] - starts[:, t] for i, t in enumerate(TARGETS)])
    torch.testing.assert_close(found, wanted.detach())
