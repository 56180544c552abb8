"""Chefer with LRP: conserved, and against a slow re-implementation."""

import copy

import pytest
import torch
from torch import fx, nn
from torch.nn import functional as F

from attrcheck.graph.kinds import Add
from attrcheck.graph.landmarks import attentions
from attrcheck.graph.nodes import module_of
from attrcheck.graph.preparing import prepare
from attrcheck.methods import lrp_attention, method
from attrcheck.methods._rules import ruled
from attrcheck.methods.attention import Reader
from attrcheck.methods.lrp_attention import CALLS, KINDS
from tests.worlds import random_family, smooth_images, trained_family

COUNT = 3


both_weights = pytest.mark.parametrize("weights", ["random", "trained"])


def subject(weights):
    if weights == "trained":
        network, images, targets = trained_family("vit", COUNT)
    else:
        network, images, targets = random_family("vit"), smooth_images(COUNT), torch.arange(COUNT)
    return network, images, targets


def relevances(model, images, targets):
    """Of every attention, layer by layer."""
    reader = Reader(model, ruled(model, KINDS, CALLS))
    with torch.enable_grad():
        logits = reader(images).gather(1, targets[:, None])
        return torch.autograd.grad(logits.sum(), reader.attention), reader


def linear_shares(layer, x, relevance):
    """[T, in] from [T, out], contribution by contribution."""
    contributions = (layer.weight[None] * x[:, None]).clamp(min=0)
    return (contributions / contributions.sum(2, keepdim=True) * relevance[:, :, None]).sum(1)


def balanced(relevance, one, other):
    """Both shares, each with the part of the relevance that its absolute sum has."""
    a, b = one.sum(), other.sum()
    size = a.abs() + b.abs()
    part_a, part_b = (t.abs() / size * relevance.sum() / t for t in (a, b))
    return one * part_a, other * part_b


def away_from_zero(y):
    """By a hundredth of the root mean square."""
    size = 0.01 * (y**2).mean() ** 0.5
    return torch.where(y < 0, y - size, y + size)


def sum_shares(a, b, relevance):
    each = relevance / away_from_zero(a + b)
    return balanced(relevance, a * each, b * each)


def product_shares(a, b, relevance):
    """Of a @ b, [heads, I, K] and [heads, K, J], summand by summand."""
    summands = a[:, :, :, None] * b[:, None]
    shares = summands * (relevance / away_from_zero(a @ b))[:, :, None]
    return balanced(relevance, shares.sum(3), shares.sum(1))


def slow_relevances(network, image, target):
    """Of one image: of every attention, the last one first; and of the tokens at the start."""
    kept = []
    patches = network.patches(image[None]).flatten(2).transpose(1, 2)
    x = (torch.cat([network.token, patches], 1) + network.positions)[0]
    for block in network.blocks:
        layer, at = block.attention, {"x": x, "n1": block.norm1(x)}
        q, k, v = (
            part(at["n1"]).unflatten(1, (layer.heads, -1)).transpose(0, 1)
            for part in (layer.query, layer.key, layer.value)
        )
        attention = (q @ k.transpose(1, 2) * layer.scale).softmax(2)
        seen = (attention @ v).transpose(0, 1).flatten(1)
        at |= {"q": q, "k": k.transpose(1, 2), "v": v, "attention": attention, "seen": seen}
        at["mixed"] = layer.mix(seen)
        at["middle"] = x + at["mixed"]
        at["n2"] = block.norm2(at["middle"])
        at["active"] = block.mlp[1](block.mlp[0](at["n2"]))
        at["mlp"] = block.mlp[2](at["active"])
        x = at["middle"] + at["mlp"]
        kept.append((block, at))
    final = network.norm(x)[:1]
    seed = F.one_hot(torch.tensor([target]), network.head.out_features).to(final)
    relevance = torch.zeros_like(x)
    relevance[:1] = linear_shares(network.head, final, seed)
    found = []
    for block, at in reversed(kept):
        layer = block.attention
        to_middle, to_mlp = sum_shares(at["middle"], at["mlp"], relevance)
        hidden = linear_shares(block.mlp[2], at["active"], to_mlp)
        to_middle = to_middle + linear_shares(block.mlp[0], at["n2"], hidden)
        relevance, to_mixed = sum_shares(at["x"], at["mixed"], to_middle)
        to_seen = linear_shares(layer.mix, at["seen"], to_mixed)
        to_seen = to_seen.unflatten(1, (layer.heads, -1)).transpose(0, 1)
        to_attention, to_v = product_shares(at["attention"], at["v"], to_seen)
        found.append(to_attention)
        to_q, to_k = product_shares(at["q"], at["k"], to_attention)
        for part, share in (
            (layer.query, to_q),
            (layer.key, to_k.transpose(1, 2)),
            (layer.value, to_v),
        ):
            share = share.transpose(0, 1).flatten(1)
            relevance = relevance + linear_shares(part, at["n1"], share)
    return found[::-1], relevance


@both_weights
def test_it_equals_the_slow_one(weights, monkeypatch):
    network, images, targets = subject(weights)
    network, images = network.double(), images.double()
    monkeypatch.setattr(lrp_attention, "ZERO", 1e-14)
    model = prepare(network)
    found, _ = relevances(model, images, targets)
    reader = Reader(model)
    with torch.enable_grad():
        logits = reader(images).gather(1, targets[:, None])
        gradients = torch.autograd.grad(logits.sum(), reader.attention)
    maps = method.get("chefer_lrp").attribute(model, images, targets)
    for n in range(COUNT):
        with torch.no_grad():
            wanted, _ = slow_relevances(network, images[n], targets[n].item())
        total = torch.eye(65).double()
        for mine, theirs, gradient in zip(found, wanted, gradients, strict=True):
            assert (mine[n] - theirs).abs().max() < 1e-6 * theirs.abs().max()
            total = total + (theirs * gradient[n]).clamp(min=0).mean(0) @ total
        row = F.interpolate(total[0, 1:].view(1, 1, 8, 8), (32, 32), mode="bilinear")[0, 0]
        assert (maps[n] - row).abs().max() < 1e-6 * row.max()


def reaching(model, images, targets):
    """The relevance that reaches the tokens before the first block, in all."""

    def skips(node):
        return any(isinstance(module_of(model, user), Add) for user in node.users)

    name = next(node.name for node in model.graph.nodes if skips(node))
    kept = {}

    class Run(fx.Interpreter):
        def run_node(self, n):
            value = super().run_node(n)
            if n.name == name:
                value = kept["tokens"] = value.detach().requires_grad_()
            return value

    with torch.enable_grad():
        logits = Run(ruled(model, KINDS, CALLS)).run(images).gather(1, targets[:, None])
        (found,) = torch.autograd.grad(logits.sum(), kept["tokens"])
    return found.flatten(1).sum(1)


@both_weights
def test_relevance_is_conserved_down_to_the_tokens(weights):
    network, images, targets = subject(weights)
    for precise, tolerance in ((True, 1e-6), (False, 1e-4)):
        model = prepare(copy.deepcopy(network).double() if precise else network)
        total = reaching(model, images.double() if precise else images, targets)
        assert (total - 1).abs().max() < tolerance


def test_half_of_what_reaches_a_block_through_its_product_is_the_attentions():
    network, images, targets = subject("trained")
    found, _ = relevances(prepare(network.double()), images.double(), targets)
    assert len(found) == 3
    for layer in found:
        # Of the logit's relevance, one; the skips around the block and the values take the rest.
        assert (layer.sum((1, 2, 3)) < 0.5 + 1e-9).all()
        assert (layer.sum((1, 2, 3)) > 0).all()


def test_the_stabiliser_may_be_of_any_size(monkeypatch):
    """Without one the map is that of a pole; with one it hardly matters which."""
    network, images, targets = subject("trained")
    model, images, maps = prepare(network.double()), images.double(), []
    for size in (0.0, 1e-4, 1e-2, 1e-1):
        monkeypatch.setattr(lrp_attention, "EPSILON", size)
        maps.append(method.get("chefer_lrp").attribute(model, images, targets).flatten(1))

    def alike(one, other):
        return min(torch.corrcoef(torch.stack(pair))[0, 1] for pair in zip(one, other, strict=True))

    assert alike(maps[0], maps[2]) < 0.6
    assert alike(maps[1], maps[2]) > 0.95
    assert alike(maps[3], maps[2]) > 0.95


def test_it_is_neither_the_other_variant_nor_the_rollout():
    model, images, targets = prepare(subject("trained")[0]), *subject("trained")[1:]
    maps = method.get("chefer_lrp").attribute(model, images, targets)
    for name in ("chefer", "attention_rollout"):
        others = method.get(name).attribute(model, images, targets)
        for one, other in zip(maps, others, strict=True):
            both = torch.stack([one.flatten(), other.flatten()])
            assert torch.corrcoef(both)[0, 1] < 0.999
    again = method.get("chefer_lrp").attribute(model, images, (targets + 1) % 8)
    for one, other in zip(maps, again, strict=True):
        assert torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1] < 0.95


def test_what_is_registered():
    spec = method.get("chefer_lrp")
    assert spec.family == "transformer"
    assert "CVPR" in spec.reference
    assert spec.passes == (4, 3)


FULL_SIZE = ["torchvision:vit_b_16", "timm:vit_tiny_patch16_224", "timm:deit3_small_patch16_224"]


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
    model, images = prepare(network.eval().double()), smooth_images(2, 64).double()
    targets = torch.tensor([3, 4])
    assert method.get("chefer_lrp").not_applicable(model) is None
    assert len(attentions(model)) == 12
    assert (reaching(model, images, targets) - 1).abs().max() < 1e-4
    maps = method.get("chefer_lrp").attribute(model, images, targets)
    assert maps.shape == (2, 64, 64)
    assert maps.isfinite().all()
    assert (maps.amax((1, 2)) > maps.amin((1, 2))).all()
