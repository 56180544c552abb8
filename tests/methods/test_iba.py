"""The information bottleneck: where it sits, what it measures, and what it finds."""

import math

import pytest
import torch
from torch import fx, nn
from torch.distributions import Normal, kl_divergence

from attrcheck.contracts import Dataset
from attrcheck.graph import halves as _halves
from attrcheck.graph.guard import Snapshot
from attrcheck.graph.preparing import NotTraceable, prepare
from attrcheck.methods import bottleneck, method
from attrcheck.tensors.batching import limited_to
from tests.worlds import FAMILIES, random_family, smooth_images, trained_family


def data_of(images, classes=10):
    zeros, ids = torch.zeros(len(images), dtype=torch.int64), map(str, range(len(images)))
    return Dataset("toy", images, zeros, classes, (0.0,) * 3, (1.0,) * 3, tuple(ids))


DATA = data_of(smooth_images(20, seed=7))


class Half(nn.Module):
    """Whether the left half is bright, in a network with two convolutions."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 2, 1, bias=False)
        self.second = nn.Conv2d(2, 2, 1, bias=False)
        nn.init.constant_(self.first.weight, 0.5)
        nn.init.eye_(self.second.weight.data[:, :, 0, 0])

    def forward(self, x):
        left = self.second(self.first(x))[:, :, :, :8].mean((2, 3))
        return torch.stack([40 * (left[:, 0] - 0.5), 40 * (0.5 - left[:, 1])], 1)


def maps_of(model, images, targets, seeds, data=DATA, steps=4, samples=2):
    settings = {"seeds": seeds, "dataset": data, "steps": steps, "samples": samples}
    return bottleneck.iba(model, images, targets, **settings)


def gates_of(model, images, targets, seeds, data=DATA, steps=4, samples=2):
    settings = {"seeds": seeds, "dataset": data, "steps": steps, "samples": samples}
    return bottleneck.input_iba(model, images, targets, **settings)


def test_highlights_the_half_that_the_class_needs():
    data = data_of(smooth_images(50, 16, seed=5), 2)
    images = smooth_images(4, 16, seed=6).abs()
    targets = torch.zeros(4, dtype=torch.int64)
    maps = maps_of(prepare(Half()), images, targets, (1, 2, 3, 4), data, 10, 10)
    left, right = maps[:, :, :7], maps[:, :, 9:]
    assert (left.mean((1, 2)) > 3 * right.mean((1, 2))).all()
    assert (maps >= 0).all()


def test_the_price_of_information_is_the_divergence_from_noise():
    gate = torch.tensor([0.01, 0.3, 0.5, 0.9, 0.999])
    normal = torch.tensor([3.0, -1.0, 0.0, 2.0, -0.5])
    wanted = kl_divergence(Normal(gate * normal, 1 - gate), Normal(0.0, 1.0))
    assert torch.allclose(bottleneck.information(gate, normal), wanted, atol=1e-5)
    assert bottleneck.information(torch.zeros(1), torch.ones(1)).item() == 0
    assert bottleneck.information(torch.ones(1), torch.zeros(1)).isfinite()


def test_a_closed_form_of_the_map_at_the_start():
    # Without a step the mask is flat at sigmoid(5), so that bits follow from the features alone.
    model, images = prepare(Half()), smooth_images(2, 16)
    data = data_of(smooth_images(50, 16, seed=5), 2)
    maps = maps_of(model, images, torch.tensor([0, 1]), (1, 2), data, 0, 1)
    features, known = images.sum(1) / 2, data.images.sum(1) / 2
    normal = (features - known.mean(0)) / known.std(0, correction=0).clamp(min=0.01)
    gate = torch.full_like(normal, 1 / (1 + math.exp(-5)))
    wanted = 2 * kl_divergence(Normal(gate * normal, 1 - gate), Normal(0.0, 1.0)) / math.log(2)
    assert torch.allclose(maps, wanted, rtol=1e-3)


def test_the_gate_is_smooth_in_space_and_separate_in_channels():
    mask = torch.full((1, 2, 9, 9), -20.0)
    mask[0, 1, 4, 4] = 20
    gate = bottleneck.smooth_gate(mask)
    assert gate[0, 0].max() < 1e-6
    line = [math.exp(-(t**2) / 2) for t in (-2, -1, 0, 1, 2)]
    share = [t / sum(line) for t in line]
    for row in range(5):
        for column in range(5):
            wanted = share[row] * share[column]
            assert gate[0, 1, 2 + row, 2 + column].item() == pytest.approx(wanted, abs=1e-6)
    assert torch.allclose(bottleneck.smooth_gate(torch.zeros(1, 2, 3, 3)), torch.tensor(0.5))


def test_steps_trade_information_for_the_class():
    model, images, targets = prepare(random_family("vgg")), smooth_images(3), torch.arange(3)
    bits = [maps_of(model, images, targets, (1, 2, 3), steps=n).sum() for n in (0, 4, 10)]
    assert bits[0] > bits[1] > bits[2] > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_the_middle_holds_all(family):
    model, images = prepare(random_family(family)), smooth_images(2)
    assert _halves.needs_middle(model) is None
    head, tail = _halves.halves(model)
    with torch.no_grad():
        features = head(images)
        assert torch.allclose(tail(features), model(images), atol=1e-5)
    assert features.ndim == 4
    assert features.shape[2] * features.shape[3] > 16
    count = [sum(isinstance(m, nn.Conv2d) for m in part.modules()) for part in (head, tail, model)]
    assert count[0] + count[1] == count[2]
    assert 0.25 < count[0] / count[2] < 0.75


@pytest.mark.parametrize("family", FAMILIES)
def test_families_batches_seeds_and_traces(family):
    network, images, targets = trained_family(family, 3)
    model = prepare(network)
    before = Snapshot.of(model)
    torch.manual_seed(0)
    with torch.no_grad():
        together = maps_of(model, images, targets, (7, 8, 7), steps=8)
    assert before.change(model) is None
    assert all(part.grad is None for part in model.parameters())
    torch.manual_seed(1)
    with limited_to(1):
        alone = maps_of(model, images[1:2], targets[1:2], (8,), steps=8)
    size = together[1].max()
    assert (alone[0] - together[1]).abs().max() < 1e-4 * size
    other = maps_of(model, images[1:2], targets[1:2], (9,), steps=8)
    assert (other[0] - together[1]).abs().max() > 1e-3 * size
    assert together.shape == (3, 32, 32)
    assert not together.requires_grad


def test_the_distribution_is_not_the_batchs_and_follows_the_model():
    model, images, targets = prepare(random_family("vgg")), smooth_images(2), torch.arange(2)
    first = maps_of(model, images, targets, (1, 2))
    assert torch.equal(maps_of(model, images, targets, (1, 2)), first)
    wider = maps_of(model, images, targets, (1, 2), data_of(2 * DATA.images))
    assert not torch.allclose(wider, first, rtol=0.1)
    for part in model.parameters():
        part.data.mul_(0.9)
    changed = maps_of(model, images, targets, (1, 2))
    fresh = prepare(random_family("vgg"))
    for part in fresh.parameters():
        part.data.mul_(0.9)
    assert torch.equal(changed, maps_of(fresh, images, targets, (1, 2)))
    assert not torch.allclose(changed, first, rtol=0.01)


class Sized(nn.Module):
    """Reads the size of the image at its end, so that no tensor inside holds all."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1))

    def forward(self, x):
        return self.body(x).reshape(x.shape[0], 3, -1).mean(2)


class Branches(nn.Module):
    def forward(self, x):
        return x.mean((2, 3)) if x.sum() > 0 else x.amax((2, 3))


def test_why_it_may_not_apply():
    spec = method.get("iba")
    assert "holds all" in spec.not_applicable(prepare(Sized()))
    assert "holds all" in spec.not_applicable(prepare(nn.Sequential(nn.Conv2d(3, 2, 1), nn.ReLU())))
    with pytest.raises(ValueError, match="holds all"):
        _halves.halves(prepare(Sized()))
    with pytest.warns(NotTraceable):
        model = prepare(Branches())
    assert "could not be traced" in spec.not_applicable(model)
    with pytest.raises(TypeError, match="could not be traced"):
        _halves.halves(model)


class Constant(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.first, self.second = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)

    def forward(self, x):
        return (self.second(self.first(x * self.scale)) * self.scale).mean((2, 3))


def test_constants_are_known_on_both_sides():
    model, images = prepare(Constant()), smooth_images(2, 4)
    assert isinstance(model, fx.GraphModule)
    head, tail = _halves.halves(model)
    assert torch.allclose(tail(head(images)), model(images))


def test_what_is_registered():
    model, images, data = prepare(Half()), smooth_images(1, 16), data_of(smooth_images(5, 16), 2)
    makers = {"iba": maps_of, "input_iba": gates_of}
    for (name, maker), passes in zip(makers.items(), (100, 200), strict=True):
        spec = method.get(name)
        assert spec.passes == (passes, passes)
        found = spec.attribute(model, images, torch.tensor([0]), seeds=(3,), dataset=data)
        assert torch.equal(found, maker(model, images, torch.tensor([0]), (3,), data, 10, 10))


def test_what_the_prior_knows_is_free():
    gate, prior = torch.tensor([0.2, 0.5, 0.9]), torch.tensor([0.3, 0.8, 0.1])
    normal = torch.tensor([3.0, -1.0, 2.0])
    through = Normal(prior * gate * normal, 1 - prior * gate)
    wanted = kl_divergence(Normal(gate * normal, 1 - gate), through)
    assert torch.allclose(bottleneck.information(gate, normal, prior), wanted, atol=1e-5)
    free = bottleneck.information(gate, normal, torch.ones(3))
    assert torch.allclose(free, torch.zeros(3), atol=1e-6)


def test_at_the_input_too_the_half_that_the_class_needs():
    data = data_of(smooth_images(50, 16, seed=5), 2)
    images = smooth_images(4, 16, seed=6).abs()
    targets = torch.zeros(4, dtype=torch.int64)
    gates = gates_of(prepare(Half()), images, targets, (1, 2, 3, 4), data, 10, 10)
    assert (gates[:, :, :7].mean((1, 2)) > 2 * gates[:, :, 9:].mean((1, 2))).all()
    assert (gates >= 0).all()
    assert (gates <= 1).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_gate_at_the_input_of_every_family(family):
    network, images, targets = trained_family(family, 3)
    model = prepare(network)
    before = Snapshot.of(model)
    with torch.no_grad():
        together = gates_of(model, images, targets, (7, 8, 7), DATA, 4, 2)
    assert before.change(model) is None
    alone = gates_of(model, images[1:2], targets[1:2], (8,), DATA, 4, 2)
    assert together.shape == (3, 32, 32)
    assert torch.allclose(alone[0], together[1], atol=1e-5)
    other = gates_of(model, images[1:2], targets[1:2], (9,), DATA, 4, 2)
    assert not torch.allclose(other[0], together[1], atol=1e-3)


def test_input_iba_goes_on_when_memory_runs_out(monkeypatch):
    model, images, targets = prepare(random_family("vgg")), smooth_images(6), torch.arange(6)
    known = smooth_images(9, seed=7)
    ids = tuple(map(str, range(9)))
    data = Dataset("toy", known, torch.zeros(9, dtype=torch.int64), 10, (0.0,) * 3, (1.0,) * 3, ids)
    arguments = (images, targets, tuple(range(6)), data, 3, 2)
    wanted = gates_of(model, *arguments)
    sizes, whole = [], bottleneck.class_slope

    def scarce(network, noise, *rest):
        sizes.append(len(noise))
        if len(noise) > 4:
            raise torch.OutOfMemoryError("out of memory")
        return whole(network, noise, *rest)

    monkeypatch.setattr(bottleneck, "class_slope", scarce)
    found = gates_of(model, *arguments)
    assert sorted(set(sizes)) == [4, 8, 16]
    assert torch.allclose(found, wanted, atol=1e-4)
