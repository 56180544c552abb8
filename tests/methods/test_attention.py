"""Attention methods on vision transformers: by hand, against slow oracles, and where they apply."""

from functools import cache

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attrcheck.graph.guard import Snapshot
from attrcheck.graph.landmarks import attentions
from attrcheck.graph.preparing import NotTraceable, prepare
from attrcheck.methods import method
from attrcheck.methods.attention import Reader, rollout
from tests.worlds import random_family, smooth_images, trained_family

METHODS = ["attention_rollout", "chefer", "chefer_lrp"]


COUNT = 4


each_method = pytest.mark.parametrize("name", METHODS)


both_weights = pytest.mark.parametrize("weights", ["random", "trained"])


@cache
def subject(weights):
    if weights == "trained":
        network, images, targets = trained_family("vit", COUNT)
    else:
        network, images, targets = random_family("vit"), smooth_images(COUNT), torch.arange(COUNT)
    return network, prepare(network), images, targets


def attribute(name, model, images, targets):
    return method.get(name).attribute(model, images, targets)


def read(model, images):
    reader = Reader(model)
    with torch.no_grad():
        reader(images)
    return reader


def by_blocks(network, images):
    """Logits and the attention of every block, from the network itself, one head at a time."""
    patches = network.patches(images).flatten(2).transpose(1, 2)
    token = network.token.repeat(len(images), 1, 1)
    x = torch.cat([token, patches], 1) + network.positions
    found = []
    for block in network.blocks:
        layer, normed = block.attention, block.norm1(x)
        q, k, v = (each(normed) for each in (layer.query, layer.key, layer.value))
        size = q.shape[-1] // layer.heads
        heads, mixed = [], []
        for head in range(layer.heads):
            part = slice(head * size, (head + 1) * size)
            scores = torch.einsum("nid,njd->nij", q[..., part], k[..., part]) / size**0.5
            heads.append(scores.softmax(2))
            mixed.append(heads[-1] @ v[..., part])
        found.append(heads)
        x = x + layer.mix(torch.cat(mixed, 2))
        x = x + block.mlp(block.norm2(x))
    return network.head(network.norm(x)[:, 0]), found


@both_weights
def test_the_attention_that_is_read_is_that_of_the_network(weights):
    network, model, images, _ = subject(weights)
    with torch.no_grad():
        logits, wanted = by_blocks(network, images)
    reader = read(model, images)
    assert torch.allclose(model(images), logits, atol=1e-4)
    assert len(reader.attention) == len(wanted) == len(network.blocks)
    for found, heads in zip(reader.attention, wanted, strict=True):
        assert found.shape == (COUNT, 4, 65, 65)
        assert torch.allclose(found, torch.stack(heads, 1), atol=1e-5)
    assert reader.grid == (8, 8)


def test_attention_without_logits_is_the_same_and_nothing_is_run_behind_the_last():
    model, images = prepare(random_family("vit")), smooth_images(COUNT)
    wanted = read(model, images)
    (*_, last) = (part for part in model.modules() if isinstance(part, nn.Linear))
    last.register_forward_pre_hook(lambda *_: pytest.fail("the head is run"))
    reader = Reader(model)
    with torch.no_grad():
        reader.read(images)
    assert reader.grid == wanted.grid
    assert all(map(torch.equal, reader.attention, wanted.attention))


@both_weights
def test_rows_of_a_rollout_sum_to_one(weights):
    _, model, images, _ = subject(weights)
    total = rollout(read(model, images).attention)
    assert torch.allclose(total.sum(2), torch.ones(COUNT, 65), atol=1e-5)
    assert (total >= 0).all()


def test_rollout_by_hand():
    heads = [[[0.2, 0.8], [0.5, 0.5]], [[0.6, 0.4], [0.1, 0.9]]]
    first = torch.tensor([heads])
    # The mean is [[.4, .6], [.3, .7]]; with half of the identity [[.7, .3], [.15, .85]].
    assert torch.allclose(rollout([first]), torch.tensor([[[0.7, 0.3], [0.15, 0.85]]]))
    second = torch.tensor([[[[0.0, 1.0], [1.0, 0.0]]]])
    # [[.5, .5], [.5, .5]] comes after the first and is multiplied from the left.
    assert torch.allclose(rollout([first, second]), torch.tensor([[[0.425, 0.575]] * 2]))


class OneLayer(nn.Module):
    """A class token and 2x2 patches of one pixel each; one head, keys and values by hand."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(1, 1, 1, bias=False)
        nn.init.ones_(self.patches.weight)
        self.token = nn.Parameter(torch.zeros(1, 1, 1))

    def forward(self, x):
        patches = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), patches], 1)
        scores = (tokens + 1) @ tokens.transpose(1, 2)
        mixed = tokens.unsqueeze(1) + scores.unsqueeze(1).softmax(-1) @ tokens.unsqueeze(1)
        value = mixed.squeeze(1)[:, 0]
        return torch.cat([value, -value], 1)


def test_both_methods_on_one_layer_by_hand():
    model = prepare(OneLayer())
    values = torch.tensor([0.5, -1.0, 2.0, 0.0])
    images = values.view(1, 1, 2, 2)
    # The class token is 0, its query 1: its attention is the softmax of the tokens themselves.
    weights = torch.cat([torch.zeros(1), values]).softmax(0)[1:]
    rolled = attribute("attention_rollout", model, images, torch.tensor([0]))
    assert torch.allclose(rolled.flatten(), weights / 2, atol=1e-6)
    # The logit is sum of A_0j x_j, so dA is x_j, and only what speaks for the class is left.
    for target, sign in ((0, 1), (1, -1)):
        found = attribute("chefer", model, images, torch.tensor([target]))
        assert torch.allclose(found.flatten(), (sign * weights * values).clamp(min=0), atol=1e-6)


def slow_chefer(network, images, targets):
    """One image, one head and one layer at a time, from the network itself."""
    maps = []
    for image, target in zip(images, targets, strict=True):
        logits, attention = by_blocks(network, image[None])
        relevance = torch.eye(65)
        for heads in attention:
            gradients = torch.autograd.grad(logits[0, target], heads, retain_graph=True)
            positive = [(a * g)[0].clamp(min=0) for a, g in zip(heads, gradients, strict=True)]
            relevance = relevance + sum(positive) / len(positive) @ relevance
        row = relevance[0, 1:].detach().view(1, 1, 8, 8)
        maps.append(F.interpolate(row, (32, 32), mode="bilinear")[0, 0])
    return torch.stack(maps)


@both_weights
def test_chefer_equals_the_slow_one(weights):
    network, model, images, targets = subject(weights)
    wanted = slow_chefer(network, images, targets)
    found = attribute("chefer", model, images, targets)
    assert (found - wanted).abs().max() < 1e-4 * wanted.abs().max()
    assert wanted.std() > 0


def test_chefer_depends_on_the_class_and_rollout_does_not():
    _, model, images, targets = subject("trained")
    others = (targets + 1) % 8
    maps, other_maps = (attribute("chefer", model, images, t) for t in (targets, others))
    for one, other in zip(maps, other_maps, strict=True):
        assert torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1] < 0.9
    rolled = [attribute("attention_rollout", model, images, t) for t in (targets, others)]
    assert torch.equal(*rolled)


@each_method
@both_weights
def test_a_map_does_not_depend_on_the_batch(name, weights):
    _, model, images, targets = subject(weights)
    together = attribute(name, model, images, targets)
    assert together.shape == (COUNT, 32, 32)
    assert not together.requires_grad
    assert (together.amax((1, 2)) > together.amin((1, 2))).all()
    assert (together >= 0).all()
    for i in range(COUNT):
        alone = attribute(name, model, images[i : i + 1], targets[i : i + 1])[0]
        assert (alone - together[i]).abs().max() < 1e-4 * together[i].max()


@each_method
def test_model_and_images_are_left_untouched(name):
    _, model, images, targets = subject("random")
    kept, before = images.clone(), Snapshot.of(model)
    with torch.no_grad():
        attribute(name, model, images, targets)
    assert before.change(model) is None
    assert torch.equal(images, kept)


@each_method
@pytest.mark.parametrize("family", ["resnet", "efficientnet", "bcos", "bagnet"])
def test_networks_without_attention_are_declined(name, family):
    assert (
        method.get(name).not_applicable(prepare(random_family(family)))
        == "the model has no attention"
    )


class Small(nn.Module):
    """A transformer in which some part is not as it should be."""

    def __init__(self, wrong=""):
        super().__init__()
        self.wrong = wrong
        self.patches = nn.Conv2d(3, 4, 2, 2)
        self.token = nn.Parameter(torch.zeros(1, 2 if wrong == "tokens" else 1, 4))
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        if self.wrong == "patches":
            tokens = x.flatten(2).transpose(1, 2) @ torch.ones(3, 4)
        else:
            tokens = self.patches(x).flatten(2).transpose(1, 2)
        if self.wrong != "no token":
            tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), tokens], 1)
        tokens = tokens[:, None]
        mixed = tokens + torch.softmax(tokens @ tokens.transpose(2, 3), -1) @ tokens
        tokens = mixed.squeeze(1)
        if self.wrong == "mean":
            return self.head(tokens.mean(1))
        last = tokens[:, 1] if self.wrong == "second" else tokens[:, 0]
        return self.head(last + tokens[:, 1] if self.wrong == "two" else last)


@each_method
@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("", None),
        ("tokens", None),
        ("patches", "no convolution cuts the image into patches"),
        ("mean", "the logits are not read off one class token, the first"),
        ("second", "the logits are not read off one class token, the first"),
        ("two", "the logits are not read off one class token, the first"),
    ],
)
def test_the_reason_names_what_is_not_as_it_should_be(name, wrong, reason):
    model = prepare(Small(wrong))
    assert method.get(name).not_applicable(model) == reason
    if reason is None:
        maps = attribute(name, model, smooth_images(2, 6), torch.tensor([0, 1]))
        assert maps.shape == (2, 6, 6)


@each_method
def test_an_image_that_gives_no_token_of_its_own_to_the_class_is_an_error(name):
    model = prepare(Small("no token"))
    with pytest.raises(ValueError, match=r"\[1, 1, 9, 9\] is not that of a class token and 3x3"):
        attribute(name, model, smooth_images(1, 6), torch.tensor([0]))


class Branches(nn.Module):
    def forward(self, x):
        return x.mean((2, 3)) if x.sum() > 0 else x.amax((2, 3))


@each_method
def test_what_cannot_be_traced_is_declined(name):
    with pytest.warns(NotTraceable):
        model = prepare(Branches())
    assert "could not be traced" in method.get(name).not_applicable(model)
    with pytest.raises(TypeError, match="prepared graph"):
        attribute(name, model, smooth_images(1, 4), torch.tensor([0]))


def test_registered_tokens_are_no_patches():
    """With two extra tokens before the patches, the map still has one value a patch."""
    model = prepare(Small("tokens"))
    images = smooth_images(1, 6)
    reader = read(model, images)
    assert reader.attention[0].shape == (1, 1, 11, 11)
    total = torch.arange(121.0).view(1, 11, 11)
    found = reader.on_image(total, images[:, :, :3, :3])
    assert torch.equal(found, torch.arange(2.0, 11.0).view(1, 3, 3))


def test_gradient_methods_work_on_the_transformer():
    _, model, images, targets = subject("trained")
    with torch.no_grad():
        change = model(images) - model(torch.zeros_like(images[:1]))
    change = change.gather(1, targets[:, None])[:, 0]
    total = attribute("integrated_gradients", model, images, targets).sum((1, 2))
    assert (total - change).abs().max() < 0.01 * change.abs().max()
    inputs = images.clone().requires_grad_()
    chosen = model(inputs).gather(1, targets[:, None]).sum()
    (gradient,) = torch.autograd.grad(chosen, inputs)
    saliency = attribute("saliency", model, images, targets)
    assert torch.allclose(saliency, gradient.sum(1).abs(), rtol=1e-3, atol=1e-6)
    for name in ("guided_backprop", "deconvolution"):
        assert method.get(name).not_applicable(model) is None
        rectified = attribute(name, model, images, targets)
        both = torch.stack([rectified.flatten(), gradient.sum(1).flatten()])
        assert torch.corrcoef(both)[0, 1] < 0.9


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("lrp", "there is no rule for LayerNorm"),
        ("lrp_epsilon", "there is no rule for LayerNorm"),
        ("iba", "no tensor between two convolutions"),
        ("captum:LayerGradCam", "attention follows the last convolution"),
        ("bcos_weights", "not a B-cos network"),
        ("bagnet_evidence", "not a mean over places"),
    ],
)
def test_methods_for_other_networks_decline_the_transformer(name, reason):
    assert reason in method.get(name).not_applicable(subject("random")[1])


FULL_SIZE = ["torchvision:vit_b_16", "timm:vit_tiny_patch16_224", "timm:vit_small_patch16_224"]


@pytest.mark.slow
@pytest.mark.parametrize("which", FULL_SIZE)
def test_full_size_transformers(which):
    from attrcheck.adapters.vision import timm, torchvision

    torch.manual_seed(0)
    home, _, kind = which.partition(":")
    if home == "timm":
        network = timm.create_model(kind, pretrained=False, img_size=64, num_classes=10)
    else:
        network = torchvision.models.get_model(kind, image_size=64, num_classes=10)
        nn.init.normal_(network.heads.head.weight)
    model, images = prepare(network.eval()), smooth_images(2, 64)
    targets = torch.tensor([3, 4])
    assert len(attentions(model)) == 12
    for name in METHODS:
        assert method.get(name).not_applicable(model) is None
        maps = attribute(name, model, images, targets)
        assert maps.shape == (2, 64, 64)
        assert (maps.amax((1, 2)) > maps.amin((1, 2))).all()
    reader = read(model, images)
    assert reader.grid == (4, 4)
    assert torch.allclose(rollout(reader.attention).sum(2), torch.ones(2, 17), atol=1e-4)
