"""DeepLIFT through transformers: step by step in quotients, and complete."""

import copy

import pytest
import torch
from torch import nn

from attrcheck.graph.kinds import Product, Unit
from attrcheck.graph.preparing import prepare
from attrcheck.methods import _token_multipliers, method
from attrcheck.methods._multipliers import Tape
from attrcheck.methods.deeplift import UnboundedError, contributions
from tests.methods.token_world import each_network, error, subject
from tests.worlds import random_family, smooth_images, trained_family

both_weights = pytest.mark.parametrize("weights", ["random", "trained"])


class Change:
    """A value at the image and at the baseline; steps note how multipliers go back."""

    def __init__(self, end, start, sources=()):
        self.end, self.start, self.sources = end, start, sources
        self.multiplier = torch.zeros_like(end)

    def step(self, function, *others):
        """Of one number: the quotient of the changes."""
        end, start = function(self.end), function(self.start)
        slope = (end - start) / (self.end - self.start)
        return Change(end, start, [(self, lambda m: m * slope)])

    def affine(self, function):
        """Whatever is affine: its derivative."""

        def back(multiplier):
            with torch.enable_grad():
                leaf = self.end.clone().requires_grad_()
                return torch.autograd.grad(function(leaf), leaf, multiplier.contiguous())[0]

        return Change(function(self.end), function(self.start), [(self, back)])

    def __add__(self, other):
        end, start = self.end + other.end, self.start + other.start
        return Change(end, start, [(t, lambda m, t=t: _like(m, t.end)) for t in (self, other)])

    def __sub__(self, other):
        return self + other.affine(lambda x: -x)

    def __mul__(self, other):
        (a, a0), (b, b0) = (self.end, self.start), (other.end, other.start)
        sources = [
            (self, lambda m: _like(m * (b + b0) / 2, a)),
            (other, lambda m: _like(m * (a + a0) / 2, b)),
        ]
        return Change(a * b, a0 * b0, sources)

    def __matmul__(self, other):
        """Product by product, then their sums."""
        left, right = (
            self.affine(lambda x: x.unsqueeze(-1)),
            other.affine(lambda x: x.unsqueeze(-3)),
        )
        return (left * right).affine(lambda x: x.sum(-2))

    def norm(self, layer):
        centred = self - self.affine(lambda x: x.mean(-1, keepdim=True))
        variance = (centred * centred).affine(lambda x: x.mean(-1, keepdim=True) + layer.eps)
        return (centred * variance.step(torch.rsqrt)).affine(
            lambda x: x * layer.weight + layer.bias
        )

    def softmax(self):
        total = self.step(torch.exp).affine(lambda x: x.sum(-1, keepdim=True)).step(torch.log)
        return (self - total).step(torch.exp)


def _like(multiplier, x):
    """Summed over the axes along which x was spread."""
    axes = [i for i, size in enumerate(x.shape) if size != multiplier.shape[i]]
    return multiplier.sum(axes, keepdim=True) if axes else multiplier


def run_back(change, seed):
    """Multipliers of all that led to a change, the last first."""
    order, seen = [], set()

    def visit(node):
        if id(node) not in seen:
            seen.add(id(node))
            for source, _ in node.sources:
                visit(source)
            order.append(node)

    visit(change)
    change.multiplier = seed
    for node in reversed(order):
        for source, back in node.sources:
            source.multiplier = source.multiplier + back(node.multiplier)


def attended(layer, tokens):
    """What comes out of an attention layer of the embedded transformer."""

    def heads(part):
        return lambda t: part(t).unflatten(2, (layer.heads, -1)).transpose(1, 2)

    q, k, v = (tokens.affine(heads(part)) for part in (layer.query, layer.key, layer.value))
    scores = (q @ k.affine(lambda t: t.transpose(2, 3))).affine(lambda t: t * layer.scale)
    return (scores.softmax() @ v).affine(lambda t: layer.mix(t.transpose(1, 2).flatten(2)))


def slow(network, image, start, target):
    """(x - x0) times the multiplier, for the embedded transformer."""
    first = x = Change(image[None], start[None])
    for layer in network.patches:
        x = x.step(layer) if isinstance(layer, nn.GELU) else x.affine(layer)
    x = x.affine(lambda t: t.flatten(2).transpose(1, 2))
    x = x.affine(lambda t: torch.cat([network.token, t], 1) + network.positions)
    for block in network.blocks:
        x = x + attended(block.attention, x.norm(block.norm1))
        hidden = x.norm(block.norm2).affine(block.mlp[0]).step(block.mlp[1])
        x = x + hidden.affine(block.mlp[2])
    logits = x.norm(network.norm).affine(lambda t: network.head(t)[:, 0])
    seed = torch.zeros_like(logits.end)
    seed[0, target] = 1
    run_back(logits, seed)
    return (first.multiplier * (image - start))[0].sum(0)


@both_weights
def test_it_equals_the_slow_one(weights):
    if weights == "trained":
        network, images, targets = trained_family("vit", 3)
    else:
        network, images, targets = random_family("vit"), smooth_images(3), torch.tensor([1, 2, 3])
    network, images = network.double().requires_grad_(False), images.double()
    # From an image: from a blank one many changes are zero, and quotients undefined.
    start, images, targets = images[2], images[:2], targets[:2]
    wanted = [slow(network, x, start, int(t)) for x, t in zip(images, targets, strict=True)]
    found = contributions(prepare(network), images, targets, start[None])[:, 0]
    assert error(found, torch.stack(wanted)) < 1e-4


@each_network
def test_it_is_complete(name):
    _, model, images, targets = subject(name)
    assert method.get("deeplift").not_applicable(model) is None
    baselines = smooth_images(3, images.shape[2], seed=5).double()
    maps = contributions(model, images, targets, torch.cat([0 * images[:1], baselines]))
    for place, start in enumerate([0 * images[0], *baselines]):
        change = (model(images) - model(start[None])).gather(1, targets[:, None])[:, 0]
        # Rescaling an activation takes noise of 1e-5 for no change.
        assert (maps[:, place].sum((1, 2)) - change).abs().max() < 1e-6 * change.abs().max()


@both_weights
@pytest.mark.parametrize("name", ["deeplift", "deepshap"])
def test_single_precision_is_enough(name, weights):
    if weights == "trained":
        network, images, targets = trained_family("vit", 4)
    else:
        network, images, targets = random_family("vit"), smooth_images(4), torch.arange(4)
    settings = {"dataset": data_of(images)} if name == "deepshap" else {}
    single, double = (
        method.get(name).attribute(
            prepare(copy.deepcopy(network).to(kind)), images.to(kind), targets, **settings
        )
        for kind in (torch.float32, torch.float64)
    )
    assert error(single.double(), double) < 1e-2
    assert (single.sum((1, 2)) - double.sum((1, 2))).abs().max() < 1e-4


def data_of(images):
    from attrcheck.contracts import Dataset

    known, labels = smooth_images(12, seed=7), torch.zeros(12, dtype=torch.int64)
    ids = tuple(map(str, range(12)))
    return Dataset("noise", known, labels, 10, (0.0,) * 3, (1.0,) * 3, ids)


def both_ways(rule, part, *inputs, upstream):
    """Multipliers of a pair, and what they make of the inputs' change."""
    tape = Tape(1, 1)
    shares = rule(part, tape, upstream[None], *inputs)
    changes = [t[:1] - t[1:] for t in inputs]
    return shares, sum((s[0] * c).sum() for s, c in zip(shares, changes, strict=True))


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("size", [1e-3, 1.0, 50.0])
def test_no_part_loses_anything(size, alike):
    torch.manual_seed(0)
    x, y = (size * torch.randn(2, 3, 4, 5).double() for _ in range(2))
    if alike:  # but for one number
        x[1], y[1] = x[0], y[0]
        x[1, 0, 0, 0] += size
    norm = nn.LayerNorm(5).double().requires_grad_(False)
    nn.init.normal_(norm.weight)
    square = y.transpose(2, 3).contiguous()
    cases = [
        (_token_multipliers.layer_norm, norm, (x,)),
        (_token_multipliers.layer_norm, nn.LayerNorm((4, 5), elementwise_affine=False), (x,)),
        (_token_multipliers.softmax, nn.Softmax(-1), (x,)),
        (_token_multipliers.softmax, nn.Softmax(2), (x,)),
        (_token_multipliers.unit, Unit(-1, 1e-12), (x,)),
        (_token_multipliers.product, Product(), (x, square)),
    ]
    for rule, part, inputs in cases:
        value = part(*inputs)
        upstream = torch.randn_like(value[:1])
        shares, total = both_ways(rule, part, *inputs, upstream=upstream)
        wanted = (upstream * (value[:1] - value[1:])).sum()
        assert all(share.isfinite().all() for share in shares)
        assert (total - wanted).abs() <= 1e-9 * (upstream * value).abs().sum()


def test_where_nothing_changes_the_multiplier_is_the_slope():
    torch.manual_seed(0)
    x = torch.randn(1, 3, 5).double().repeat(2, 1, 1)
    for rule, part in (
        (_token_multipliers.layer_norm, nn.LayerNorm(5).double()),
        (_token_multipliers.softmax, nn.Softmax(-1)),
        (_token_multipliers.unit, Unit(-1, 1e-12)),
    ):
        upstream = torch.randn(1, 3, 5).double()
        leaf = x[:1].clone().requires_grad_()
        (slope,) = torch.autograd.grad(part(leaf), leaf, upstream)
        ((found,), _) = both_ways(rule, part, x, upstream=upstream)
        assert torch.allclose(found[0], slope, atol=1e-9)


class Sequence(nn.Module):
    """Tokens before images."""

    def __init__(self):
        super().__init__()
        self.norm, self.head = nn.LayerNorm(3), nn.Linear(3, 2)

    def forward(self, x):
        return self.head(self.norm(x.flatten(2).permute(2, 0, 1))).mean(0)


def test_images_must_come_first():
    images, targets = smooth_images(2, 5), torch.tensor([0, 1])
    with pytest.raises(ValueError, match="is not that of the images"):
        contributions(prepare(Sequence()), images, targets, images[:1])


def test_maps_that_are_rounding_noise_are_refused():
    torch.manual_seed(0)
    layers = [nn.Flatten()]
    for _ in range(8):  # without biases, so that a black image has no variance anywhere
        layers += [nn.LayerNorm(12), nn.Linear(12, 12, bias=False)]
    network = prepare(nn.Sequential(*layers).eval())
    with pytest.raises(UnboundedError, match="multipliers of this network grow without bound"):
        method.get("deeplift").attribute(network, torch.rand(2, 3, 2, 2), torch.tensor([0, 1]))
