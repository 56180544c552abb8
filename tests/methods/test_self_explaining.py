"""Networks that explain themselves: their maps sum to the logit, exactly."""

from functools import cache

import pytest
import torch
from torch import nn

from attrcheck.graph.bcos import BcosConv2d, Encode, UncentredNorm
from attrcheck.graph.guard import Snapshot
from attrcheck.graph.preparing import NotTraceable, prepare
from attrcheck.graph.receptive import Field
from attrcheck.methods import method
from attrcheck.methods.self_explaining import spread
from tests.worlds import random_family, smooth_images, trained_family

OWN = {"bcos_weights": "bcos", "bagnet_evidence": "bagnet"}
COUNT = 4

each_method = pytest.mark.parametrize("name", OWN)
both_weights = pytest.mark.parametrize("weights", ["random", "trained"])


@cache
def subject(name, weights):
    """A prepared network of the method's own kind, images and targets."""
    if weights == "trained":
        network, images, targets = trained_family(OWN[name], COUNT)
    else:
        network, images, targets = random_family(OWN[name]), smooth_images(COUNT), None
        for part in network.modules():
            if isinstance(part, UncentredNorm):
                part.momentum = 1.0
        with torch.no_grad():
            network.train()(smooth_images(32, seed=2))
        targets = torch.arange(COUNT)
    return network.eval(), prepare(network), images, targets


def attribute(name, model, images, targets):
    return method.get(name).attribute(model, images, targets)


def logits_at(model, images, targets):
    with torch.no_grad():
        return model(images).gather(1, targets[:, None])[:, 0]


@each_method
@both_weights
def test_a_map_sums_to_the_logit(name, weights):
    network, model, images, targets = subject(name, weights)
    for chosen in (targets, (targets + 3) % 8):
        wanted = logits_at(network, images, chosen)
        total = attribute(name, model, images, chosen).sum((1, 2))
        assert (total - wanted).abs().max() < 1e-4 * wanted.abs().max()
        assert wanted.abs().max() > 0.1


@each_method
@both_weights
def test_a_map_does_not_depend_on_the_batch(name, weights):
    _, model, images, targets = subject(name, weights)
    together = attribute(name, model, images, targets)
    assert together.shape == (COUNT, 32, 32)
    assert not together.requires_grad
    assert (together.amax((1, 2)) > together.amin((1, 2))).all()
    for i in range(COUNT):
        alone = attribute(name, model, images[i : i + 1], targets[i : i + 1])[0]
        assert (alone - together[i]).abs().max() < 1e-4 * together[i].abs().max()


@each_method
def test_a_map_depends_on_the_class(name):
    _, model, images, targets = subject(name, "trained")
    maps, others = (attribute(name, model, images, t) for t in (targets, (targets + 1) % 8))
    for one, other in zip(maps, others, strict=True):
        assert torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1] < 0.9


@each_method
def test_model_and_images_are_left_untouched(name):
    _, model, images, targets = subject(name, "random")
    kept, before = images.clone(), Snapshot.of(model)
    with torch.no_grad():
        attribute(name, model, images, targets)
        assert not torch.is_grad_enabled()
    assert before.change(model) is None
    assert torch.equal(images, kept)


@each_method
@pytest.mark.parametrize(
    "family", ["resnet", "vgg", "inception", "efficientnet", "densenet", "vit", "bcos", "bagnet"]
)
def test_each_applies_to_its_own_kind_only(name, family):
    reason = method.get(name).not_applicable(prepare(random_family(family)))
    if family == OWN[name]:
        assert reason is None
    elif name == "bcos_weights":
        assert reason == "the model is not a B-cos network with an encoded image"
    else:
        assert reason == "the logits are not a mean over places of evidence for the classes"


class Branches(nn.Module):
    def forward(self, x):
        return x.mean((2, 3)) if x.sum() > 0 else x.amax((2, 3))


@each_method
def test_what_cannot_be_traced_is_declined(name):
    network = nn.Sequential(Encode((0.0,) * 3, (1.0,) * 3), Branches())
    with pytest.warns(NotTraceable):
        model = prepare(network)
    assert "could not be traced" in method.get(name).not_applicable(model)
    with pytest.raises(TypeError, match="prepared graph"):
        attribute(name, model, smooth_images(1, 4), torch.tensor([0]))


@both_weights
def test_bcos_weights_are_those_of_the_frozen_network(weights):
    """W(x), one column at a time: the network with its cosines held still is linear."""
    network, model, images, targets = subject("bcos_weights", weights)
    network, image, target = network.double(), images[0].double(), targets[0]
    x = network[0](image[None])
    maps = []
    for part in network[1:]:
        cosines = part.cosines(x, part.linear(x)) if isinstance(part, BcosConv2d) else None
        maps.append((part, cosines))
        x = part(x)

    def frozen(x):
        for part, cosines in maps:
            x = part(x) if cosines is None else part.linear(x) * cosines
        return x[:, target]

    encoded = network[0](image[None])
    found = attribute("bcos_weights", model, images[:1], targets[:1])[0]
    tolerance = 1e-4 * float(found.abs().max())
    with torch.no_grad():
        for row, column in ((0, 0), (9, 21), (16, 16), (31, 5)):
            only = torch.zeros_like(encoded)
            only[:, :, row, column] = encoded[:, :, row, column]
            wanted = float(frozen(only))
            assert float(found[row, column]) == pytest.approx(wanted, abs=tolerance)
    network.float()


def test_bcos_weights_by_hand():
    network = nn.Sequential(
        Encode((0.5,), (0.5,)), BcosConv2d(2, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    with torch.no_grad():
        network[1].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 5.0]]).view(2, 2, 1, 1))
    # Pixels 1 and 0.25 are (1, 0) and (.25, .75): class 0 sees p |p| / norm, class 1 the inverse.
    images = torch.tensor([1.0, -0.5]).view(1, 1, 1, 2).repeat(2, 1, 1, 1)
    found = attribute("bcos_weights", prepare(network), images, torch.tensor([0, 1]))
    norm = (0.25**2 + 0.75**2) ** 0.5
    wanted = [[0.5, 0.25**2 / norm / 2], [0.0, 0.75**2 / norm / 2]]
    assert torch.allclose(found[:, 0], torch.tensor(wanted), atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (nn.AvgPool2d(2), None),
        (nn.ReLU(), "there is no rule for ReLU (at 2)"),
        (nn.Conv2d(4, 4, 1), "there is no rule for Conv2d (at 2)"),
        (nn.BatchNorm2d(4), "there is no rule for BatchNorm2d (at 2)"),
    ],
)
def test_bcos_weights_need_all_layers_to_be_linear_without_bias(layer, reason):
    layers = [Encode((0.0,) * 3, (1.0,) * 3), BcosConv2d(6, 4, 1), layer, nn.AdaptiveAvgPool2d(1)]
    model = prepare(nn.Sequential(*layers, nn.Flatten()))
    assert method.get("bcos_weights").not_applicable(model) == reason


class Shifted(nn.Module):
    def __init__(self, shift):
        super().__init__()
        self.encode, self.conv = Encode((0.0,) * 3, (1.0,) * 3), BcosConv2d(6, 4, 1)
        self.shift = shift

    def forward(self, x):
        y = self.conv(self.encode(x)).mean((2, 3))
        return y - 1 if self.shift else y * 3


def test_a_constant_beside_the_signal_is_what_no_pixel_explains():
    applies = method.get("bcos_weights").not_applicable
    assert applies(prepare(Shifted(False))) is None
    assert "a constant is added" in applies(prepare(Shifted(True)))


def test_evidence_is_spread_over_the_pixels_that_a_place_sees():
    values = torch.tensor([[[9.0, 0.0], [0.0, 4.0]]])
    # Rows -1 ... 1 and 1 ... 3; those before the first do not exist.
    found = spread(values, Field(2, -1, 1), torch.Size((4, 4)))[0]
    wanted = torch.zeros(4, 4)
    wanted[:2, :2] = 9 / 4
    wanted[1:4, 1:4] += 4 / 9
    assert torch.allclose(found, wanted)


@both_weights
def test_evidence_averages_to_the_logit_and_is_placed_by_its_patch(weights):
    network, model, images, targets = subject("bagnet_evidence", weights)
    with torch.no_grad():
        evidence = network[:7](images)[torch.arange(COUNT), targets]
    assert torch.allclose(evidence.mean((1, 2)), logits_at(model, images, targets), atol=1e-4)
    wanted = torch.zeros(COUNT, 32, 32)
    for i in range(8):
        for j in range(8):
            rows = slice(max(0, 4 * i - 8), 4 * i + 9)
            columns = slice(max(0, 4 * j - 8), 4 * j + 9)
            area = wanted[0, rows, columns].numel()
            wanted[:, rows, columns] += (evidence[:, i, j] / area / 64)[:, None, None]
    found = attribute("bagnet_evidence", model, images, targets)
    assert (found - wanted).abs().max() < 1e-4 * wanted.abs().max()


def test_methods_for_any_network_apply_to_both():
    for own, family in OWN.items():
        _, model, images, targets = subject(own, "trained")
        for name in ("saliency", "input_x_gradient", "integrated_gradients"):
            assert method.get(name).not_applicable(model) is None
        change = logits_at(model, images, targets)
        change = change - logits_at(model, torch.zeros_like(images), targets)
        total = attribute("integrated_gradients", model, images, targets).sum((1, 2))
        assert (total - change).abs().max() < 0.05 * change.abs().max(), family


def test_a_bagnet_is_a_network_like_others_for_rules_and_cams():
    _, model, images, targets = subject("bagnet_evidence", "trained")
    for name in ("deeplift", "lrp", "guided_backprop", "deconvolution", "guided_gradcam"):
        assert method.get(name).not_applicable(model) is None
    change = logits_at(model, images, targets)
    change = change - logits_at(model, torch.zeros_like(images), targets)
    total = attribute("deeplift", model, images, targets).sum((1, 2))
    assert (total - change).abs().max() < 1e-3 * change.abs().max()


@pytest.mark.parametrize("name", ["deeplift", "lrp", "guided_backprop", "deconvolution"])
def test_rules_decline_bcos_layers(name):
    _, model, _, _ = subject("bcos_weights", "random")
    assert "no rule for Encode" in method.get(name).not_applicable(model)
