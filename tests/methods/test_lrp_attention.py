"""The rules that carry relevance through a transformer, by hand."""

import pytest
import torch
from torch import nn

from attrcheck.graph.kinds import Add, Product
from attrcheck.graph.preparing import prepare
from attrcheck.methods import lrp_attention, method
from attrcheck.methods._rules import ruled
from attrcheck.methods.attention import Reader
from attrcheck.methods.lrp_attention import CALLS, KINDS


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
    to_a, to_b = backward(lrp_attention.product, Product(), a, b, upstream=relevance)
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
        ("matrix", "no rule for matmul()"),
        ("exp", "no rule for exp()"),
        ("product", "no rule for Multiply"),
    ],
)
def test_what_has_no_rule_is_declined(odd, reason):
    found = method.get("chefer_lrp").not_applicable(prepare(Odd(odd)))
    assert found is None if reason is None else reason in found
