"""Relevance of every attention: rule by rule, conserved, and against a slow re-implementation."""

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


@pytest.fixture
def exact(monkeypatch):
    """No stabiliser."""
    monkeypatch.setattr(lrp_attention, "EPSILON", 0)


def relevances(model, images, targets):
    """Of every attention, layer by layer."""
    reader = Reader(model, ruled(model, KINDS, CALLS))
    with torch.enable_grad():
        logits = reader(images).gather(1, targets[:, None])
        return torch.autograd.grad(logits.sum(), reader.attention), reader


def backward(rule, part, *inputs, upstream):
    leaves = [x.clone().requires_grad_() for x in inputs]
    value = rule(part, *leaves)
    assert torch.equal(value, part(*inputs))
    return torch.autograd.grad(value, leaves, upstream)


def test_a_linear_layer_shares_among_positive_contributions():
    torch.manual_seed(0)
    layer, x = nn.Linear(12, 4).requires_grad_(False), torch.randn(2, 3, 12)
    relevance = torch.randn(2, 3, 4)
    (found,) = backward(lrp_attention.positive, layer, x, upstream=relevance)
    for image in range(2):
        for token in range(3):
            wanted = torch.zeros(12)
            for row, amount in zip(layer.weight, relevance[image, token], strict=True):
                contributions = (row * x[image, token]).clamp(min=0)
                wanted += contributions / contributions.sum() * amount
            assert torch.allclose(found[image, token], wanted, atol=1e-5)
    assert torch.allclose(found.sum((1, 2)), relevance.sum((1, 2)), atol=1e-4)


def test_a_sum_by_hand(exact):
    # Shares 6 and 2 of the first image; of the second 12 and -4, of which |12| and |-4| are left.
    a, b = torch.tensor([[3.0], [3.0]]), torch.tensor([[1.0], [-1.0]])
    to_a, to_b = backward(lrp_attention.add, Add(), a, b, upstream=torch.full((2, 1), 8.0))
    assert torch.allclose(to_a.flatten(), torch.tensor([6.0, 6.0]), rtol=1e-4)
    assert torch.allclose(to_b.flatten(), torch.tensor([2.0, 2.0]), rtol=1e-4)


def test_a_product_gives_one_half_to_either_operand(exact):
    torch.manual_seed(0)
    a, b, relevance = torch.rand(2, 4, 3), torch.rand(2, 3, 5) + 0.1, torch.randn(2, 4, 5)
    to_a, to_b = backward(lrp_attention.product, torch.matmul, a, b, upstream=relevance)
    wanted_a, wanted_b = torch.zeros_like(a), torch.zeros_like(b)
    y = a @ b
    for n in range(2):
        for i in range(4):
            for j in range(5):
                for k in range(3):
                    share = a[n, i, k] * b[n, k, j] / y[n, i, j] * relevance[n, i, j] / 2
                    wanted_a[n, i, k] += share
                    wanted_b[n, k, j] += share
    assert torch.allclose(to_a, wanted_a, atol=1e-4)
    assert torch.allclose(to_b, wanted_b, atol=1e-4)
    for share in (to_a, to_b):
        assert torch.allclose(share.sum((1, 2)), relevance.sum((1, 2)) / 2, atol=1e-4)


class OneLayer(nn.Module):
    """A class token and 2x2 patches of one pixel each; the logit is what the token sees."""

    def __init__(self, skips=False):
        super().__init__()
        self.skips = skips
        self.patches = nn.Conv2d(1, 1, 1, bias=False)
        nn.init.ones_(self.patches.weight)
        self.token = nn.Parameter(torch.ones(1, 1, 1))

    def forward(self, x):
        patches = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), patches], 1).unsqueeze(1)
        mixed = torch.softmax(tokens @ tokens.transpose(2, 3), -1) @ tokens
        value = ((tokens + mixed) if self.skips else mixed).squeeze(1)[:, 0]
        return torch.cat([value, 2 * value], 1)


@pytest.mark.parametrize("target", [0, 1])
def test_on_one_layer_it_is_attention_times_gradient(target, exact):
    model = prepare(OneLayer())
    values = torch.tensor([0.5, -1.0, 2.0, 0.3])
    images, targets = values.view(1, 1, 2, 2), torch.tensor([target])
    # The class token is 1, so that it attends by the values themselves.
    tokens = torch.cat([torch.ones(1), values])
    weights = tokens.softmax(0)
    seen = (weights * tokens).sum()
    ((relevance,), _) = relevances(model, images, targets)
    # Half of the relevance, one, in proportion to A_0j x_j, whatever factor the logit has.
    assert torch.allclose(relevance[0, 0, 0], weights * tokens / seen / 2, atol=1e-5)
    assert relevance[0, 0, 1:].abs().max() == 0
    # The gradient is the tokens, times the factor.
    wanted = (weights * tokens / seen / 2 * tokens * (1 + target)).clamp(min=0)[1:]
    found = method.get("chefer_lrp").attribute(model, images, targets)
    assert torch.allclose(found.flatten(), wanted, atol=1e-5)
    other = method.get("chefer").attribute(model, images, targets)
    gradient = tokens[1:] * (1 + target)
    assert torch.allclose(other.flatten(), (weights[1:] * gradient).clamp(min=0), atol=1e-5)


def test_a_skip_takes_its_part(exact):
    model = prepare(OneLayer(skips=True))
    values = torch.tensor([0.5, 1.0, 2.0, 0.3])
    images, targets = values.view(1, 1, 2, 2), torch.tensor([0])
    tokens = torch.cat([torch.ones(1), values])
    weights = tokens.softmax(0)
    seen = (weights * tokens).sum()
    ((relevance,), _) = relevances(model, images, targets)
    wanted = weights * tokens / seen / 2 * seen / (1 + seen)
    assert torch.allclose(relevance[0, 0, 0], wanted, atol=1e-5)


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


class Odd(nn.Module):
    """A transformer with something behind its attention that has no rule."""

    def __init__(self, odd):
        super().__init__()
        self.odd = odd
        self.patches, self.head = nn.Conv2d(3, 4, 2, 2), nn.Linear(4, 3)
        self.token, self.matrix = nn.Parameter(torch.zeros(1, 1, 4)), nn.Parameter(torch.eye(4))
        self.conv = nn.Conv2d(1, 1, 1)

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), tokens], 1)[:, None]
        seen = torch.softmax(tokens @ tokens.transpose(2, 3), -1) @ tokens
        if self.odd == "conv":
            seen = self.conv(seen)
        elif self.odd == "matrix":
            seen = seen @ self.matrix
        elif self.odd == "exp":
            seen = torch.exp(seen)
        elif self.odd == "product":
            seen = seen * tokens
        return self.head(seen.squeeze(1)[:, 0])


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        ("", None),
        ("conv", "no rule for Conv2d behind attention (at conv)"),
        ("matrix", "a product with a constant matrix"),
        ("exp", "no rule for exp()"),
        ("product", "no rule for Multiply"),
    ],
)
def test_what_has_no_rule_is_declined(odd, reason):
    found = method.get("chefer_lrp").not_applicable(prepare(Odd(odd)))
    assert found is None if reason is None else reason in found


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
