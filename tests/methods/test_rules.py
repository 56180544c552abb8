"""Each backward rule on its own, against its formula."""

import gc
import weakref

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attrcheck.graph.kinds import ACTIVATIONS, GATES, RECTIFIERS, Add, Mean, Multiply
from attrcheck.graph.preparing import prepare
from attrcheck.methods import _affine, backprop, deeplift, lrp, lrp_rules
from attrcheck.methods._multipliers import Tape
from attrcheck.methods._rules import ruled
from tests.reference import dense, share_by_sign
from tests.worlds import smooth_images

POINTS = torch.tensor([-7.0, -3.1, -1.5, -0.4, 0.3, 1.2, 4.4, 8.0])
UPSTREAM = torch.tensor([1.0, -2.0, 3.0, -0.5, 2.0, -1.0, 0.5, -4.0])


def backward(rule, module, *inputs, upstream):
    """What a rule brings back to its inputs; its value must be the module's."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    value = rule(module, *leaves)
    assert torch.equal(value, module(*inputs))
    found = torch.autograd.grad(value, leaves, upstream, allow_unused=True)
    return tuple(
        torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)
    )


def pulled(module, *inputs, upstream):
    """What DeepLIFT's rule brings back to a module's inputs; the last row is the baseline."""
    rule = deeplift.RULES[type(module)]
    value, kept = rule.see(module, *inputs)
    assert torch.equal(value, module(*inputs))
    found = rule.pull(module, Tape(len(upstream), 1), upstream[:, None], *kept)
    return tuple(each[:, 0] for each in found)


@pytest.mark.parametrize("kind", RECTIFIERS)
def test_guided_and_deconvolved(kind):
    module = kind().eval().requires_grad_(False)
    (found,) = backward(backprop.GUIDED[kind], module, POINTS, upstream=UPSTREAM)
    leaf = POINTS.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(module(leaf), leaf, UPSTREAM.clamp(min=0))
    assert torch.allclose(found, wanted)
    (found,) = backward(backprop.DECONVOLVED[kind], module, POINTS, upstream=UPSTREAM)
    assert torch.equal(found, UPSTREAM.clamp(min=0))


def test_gates_keep_their_derivative():
    assert not {*GATES, nn.Tanh} & {*backprop.GUIDED, *backprop.DECONVOLVED}


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_rescale_explains_the_whole_change(kind):
    module = kind().eval().requires_grad_(False)
    baseline = torch.tensor(0.7)
    x = torch.cat([POINTS, torch.tensor([0.698, 0.703]), baseline[None]])[:, None]
    (slope,) = pulled(module, x, upstream=torch.ones_like(x[:-1]))
    explained = slope * (x[:-1] - baseline)
    assert torch.allclose(explained, module(x[:-1]) - module(baseline[None]), 1e-4, 1e-7)


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_rescale_is_the_derivative_where_next_to_nothing_changes(kind):
    module = kind().eval().requires_grad_(False)
    level = torch.tensor([-4.4, 0.0, 1e-3, 1.2, 5.5])
    noise = torch.tensor([0.0, 1e-12, 3e-7, 1e-6, 1e-4])[:, None]
    x = torch.cat([level * (1 + noise) + 1e-6 * noise, level[None]])
    (slope,) = pulled(module, x, upstream=torch.ones_like(x[:-1]))
    around = (level + torch.tensor([-1e-3, 0, 1e-3])[:, None]).requires_grad_()
    (slopes,) = torch.autograd.grad(module(around).sum(), around)
    assert (slopes.amin(0) - 1e-2 <= slope).all()
    assert (slope <= slopes.amax(0) + 1e-2).all()


POOLS = [nn.MaxPool2d(2), nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(3, 1, 1), nn.AdaptiveMaxPool2d(3)]


@pytest.mark.parametrize("module", POOLS)
def test_pooling_explains_the_whole_change(module):
    x = torch.randn(5, 2, 8, 8, generator=torch.Generator().manual_seed(0))
    y = module(x)
    upstream = torch.randn(y[:-1].shape, generator=torch.Generator().manual_seed(1))
    (slope,) = pulled(module, x, upstream=upstream)
    explained = (slope * (x[:-1] - x[-1:])).sum((1, 2, 3))
    wanted = (upstream * (y[:-1] - y[-1:])).sum((1, 2, 3))
    assert torch.allclose(explained, wanted, atol=1e-4)
    assert wanted.abs().min() > 0.1


def test_pooling_gives_the_change_to_one_winner():
    x = torch.randn(4, 1, 7, 7, generator=torch.Generator().manual_seed(0))
    (slope,) = pulled(nn.MaxPool2d(3, 2), x, upstream=torch.ones(3, 1, 3, 3))
    wanted = torch.zeros(3, 7, 7)
    for image in range(3):
        for top in (0, 2, 4):
            for left in (0, 2, 4):
                window = slice(top, top + 3), slice(left, left + 3)
                mine, base = x[image, 0][window], x[-1, 0][window]
                winner = (mine if mine.max() >= base.max() else base).argmax()
                place = top + int(winner) // 3, left + int(winner) % 3
                moved = mine.max() - base.max()
                wanted[image][place] += moved / (x[image, 0][place] - x[-1, 0][place])
    assert torch.allclose(slope[:, 0], wanted, atol=1e-5)


def test_pooling_of_what_does_not_change():
    x = torch.ones(2, 1, 2, 2)
    (slope,) = pulled(nn.MaxPool2d(2), x, upstream=torch.ones(1, 1, 1, 1))
    assert torch.equal(slope[0].flatten(), torch.tensor([1.0, 0, 0, 0]))


@pytest.mark.parametrize("shape", [(3, 4, 5, 5), (3, 4, 1, 1)])
def test_a_product_explains_the_whole_change(shape):
    torch.manual_seed(0)
    a, b = torch.randn(3, 4, 5, 5), torch.randn(shape)
    upstream = torch.randn(2, 4, 5, 5)
    to_a, to_b = pulled(Multiply(), a, b, upstream=upstream)
    explained = (to_a * (a[:-1] - a[-1:]) + to_b * (b[:-1] - b[-1:])).sum((1, 2, 3))
    wanted = (upstream * (a[:-1] * b[:-1] - a[-1:] * b[-1:])).sum((1, 2, 3))
    assert torch.allclose(explained, wanted, atol=1e-4)
    assert torch.allclose(to_a, upstream * (b[:-1] + b[-1:]) / 2)


@pytest.mark.parametrize(
    ("rule", "module"),
    [
        (lrp_rules.plus, nn.Conv2d(2, 3, 3, padding=1)),
        (lrp_rules.plus, nn.Conv2d(2, 4, 3, 2, groups=2, bias=False)),
        (lrp_rules.plus, nn.Conv2d(2, 3, 2, dilation=2)),
        (lrp_rules.average, nn.AvgPool2d(3, 1, 1)),
        (lrp_rules.average, nn.AdaptiveAvgPool2d(2)),
        (lrp_rules.average, Mean((2, 3), keepdim=True)),
    ],
)
def test_relevance_goes_to_contributions_of_the_outputs_sign(rule, module):
    torch.manual_seed(0)
    module.requires_grad_(False)
    for weights in module.parameters():
        nn.init.normal_(weights)
    x = torch.randn(1, 2, 5, 5)
    y = module(x)
    shift = module(torch.zeros_like(x))
    upstream = torch.randn(y.shape)
    (found,) = backward(rule, module, x, upstream=upstream)
    matrix = dense(lambda t: module(t) - shift, (2, 5, 5))
    values = (t.flatten().double().numpy() for t in (shift, x, upstream))
    wanted = share_by_sign(matrix, *values)
    assert (y < 0).any()
    assert (y > 0).any()
    np.testing.assert_allclose(found.flatten(), wanted, rtol=1e-3, atol=1e-5)


def test_a_sum_shares_by_sign_even_if_it_cancels():
    a = torch.tensor([3.0, 3.0, -1.0, 1e4, 0.0])
    b = torch.tensor([1.0, -1.0, -3.0, -1e4 + 1e-3, 0.0])
    to_a, to_b = backward(lrp_rules.add, Add(), a, b, upstream=torch.full((5,), 8.0))
    assert torch.allclose(to_a, torch.tensor([6.0, 8.0, 2.0, 8.0, 0.0]))
    assert torch.allclose(to_b, torch.tensor([2.0, 0.0, 6.0, 0.0, 0.0]))


def test_a_sum_that_spreads_one_operand():
    a, b = torch.full((1, 2, 2, 2), 3.0), torch.ones(1, 2, 1, 1)
    to_a, to_b = backward(lrp_rules.add, Add(), a, b, upstream=torch.ones(1, 2, 2, 2))
    assert torch.allclose(to_a, torch.full_like(a, 0.75))
    assert torch.allclose(to_b, torch.full_like(b, 1.0))


def test_epsilon_shares_by_contribution():
    torch.manual_seed(0)
    module = nn.Linear(4, 3).requires_grad_(False)
    x, upstream = torch.randn(2, 4), torch.randn(2, 3)
    (found,) = backward(lrp_rules.epsilon, module, x, upstream=upstream)
    contributions = module.weight[None] * x[:, None]
    y = module(x)
    wanted = (contributions / (y + 1e-6 * y.sign())[:, :, None] * upstream[:, :, None]).sum(1)
    assert torch.allclose(found, wanted, rtol=1e-4)


@pytest.mark.parametrize(
    ("gate", "shape", "shares"),
    [
        (0, (1, 2, 3, 3), (0, 1)),
        (1, (1, 2, 3, 3), (1, 0)),
        (None, (1, 2, 3, 3), (0.5, 0.5)),
        (None, (1, 2, 1, 1), (1, 0)),
    ],
)
def test_a_gate_gets_no_relevance(gate, shape, shares):
    torch.manual_seed(0)
    upstream = torch.randn(1, 2, 3, 3)
    operands = torch.randn(1, 2, 3, 3), torch.randn(shape)
    found = backward(lrp_rules.multiply, Multiply(gate), *operands, upstream=upstream)
    for relevance, share in zip(found, shares, strict=True):
        assert torch.allclose(relevance.sum(), share * upstream.sum(), atol=1e-6)
        assert share == 0 or torch.allclose(relevance, share * upstream)


class Scaled(nn.Module):
    """Constants around one linear layer."""

    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.full((3, 1, 1), 0.1))
        self.head = nn.Linear(12, 2, bias=False)

    def forward(self, x):
        return self.head(((x * 3 - self.shift) / self.shift).mul(2).flatten(1))


def test_constants_neither_create_nor_take_relevance():
    model = prepare(Scaled())
    images, targets = smooth_images(2, 2), torch.tensor([0, 1])
    assert lrp.needs_lrp_rules(model) is None
    total = lrp.lrp(model, images, targets).sum((1, 2))
    wanted = model(images).gather(1, targets[:, None])[:, 0]
    assert torch.allclose(total, wanted, rtol=1e-4)


class Silu(nn.Module):
    """A hand-written activation: a signal times its own sigmoid."""

    def forward(self, x):
        return x * torch.sigmoid(x)


def test_relevance_through_hand_written_silu_is_that_of_silu():
    def network(activation):
        torch.manual_seed(0)
        layers = [nn.Conv2d(3, 4, 3), activation, nn.AvgPool2d(2), nn.Flatten(), nn.Linear(36, 2)]
        return prepare(nn.Sequential(*layers))

    images, targets = smooth_images(2, 8), torch.tensor([0, 1])
    found = lrp.lrp(network(Silu()), images, targets)
    assert torch.allclose(found, lrp.lrp(network(nn.SiLU()), images, targets), atol=1e-5)


def test_rules_change_derivatives_only():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 4, 3), nn.SiLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)]
    model, images = prepare(nn.Sequential(*layers)), smooth_images(2, 8)
    for table in (
        backprop.GUIDED,
        backprop.DECONVOLVED,
        lrp_rules.EPSILON_PLUS,
        lrp.EPSILON_AS_GRADIENT,
    ):
        assert torch.allclose(ruled(model, table)(images), model(images), atol=1e-6)


def test_a_rule_gets_the_module_and_its_inputs():
    model = prepare(nn.Sequential(nn.Flatten(), nn.Linear(3, 2)))
    seen = []

    def rule(module, x):
        seen.append((type(module), tuple(x.shape)))
        return F.relu(module(x))

    output = ruled(model, {nn.Linear: rule})(torch.randn(4, 3, 1, 1))
    assert seen == [(nn.Linear, (4, 3))]
    assert (output >= 0).all()


def test_a_graph_under_rules_is_made_once_and_follows_the_weights():
    model = prepare(nn.Sequential(nn.Flatten(), nn.Linear(3, 2), nn.ReLU()))
    first = ruled(model, backprop.GUIDED)
    assert ruled(model, dict(backprop.GUIDED)) is first
    assert ruled(model, backprop.DECONVOLVED) is not first
    images = torch.randn(4, 3, 1, 1)
    model.get_submodule("1").weight.data.mul_(2)
    assert torch.equal(first(images), model(images))
    # Nor does what is known of a model keep it alive.
    gone = weakref.ref(model)
    del model, first
    gc.collect()
    assert gone() is None


def test_rules_of_calls_get_what_is_called_with_its_keywords():
    class Calls(nn.Module):
        def forward(self, x):
            return torch.sub(x.mul(3), 1, alpha=2).flatten(1)

    def doubled(call, *args):
        return 2 * call(*args)

    model, images = prepare(Calls()), torch.randn(2, 3, 1, 1)
    found = ruled(model, {}, {"mul": doubled, "sub": doubled})(images)
    assert torch.allclose(found, 2 * (6 * images - 2).flatten(1))


@pytest.mark.parametrize(("rule", "runs"), [("plus", 2), ("gamma", 2), ("epsilon", 1)])
@pytest.mark.parametrize("positive", [True, False])
def test_passes_of_a_convolution(rule, runs, positive, monkeypatch):
    """As many as the methods state: one backward is enough between ReLUs."""
    module = nn.Conv2d(3, 4, 3, padding=1).requires_grad_(False)
    x = torch.rand(2, 3, 5, 5) - (0 if positive else 0.5)
    forward, backward = [], []
    there, back = F.conv2d, _affine._BACKWARD
    monkeypatch.setattr(F, "conv2d", lambda *all_: forward.append(1) or there(*all_))
    monkeypatch.setattr(_affine, "_BACKWARD", lambda *all_: backward.append(1) or back(*all_))
    leaf = x.requires_grad_()
    y = getattr(lrp_rules, rule)(module, leaf)
    torch.autograd.grad(y, leaf, y.detach().clamp(min=0))
    assert len(forward) == runs
    assert len(backward) == (1 if positive else runs)


def test_two_ways_back_are_one():
    """What is left out between ReLUs is what would have been nothing."""
    module = nn.Conv2d(3, 4, 3, padding=1).requires_grad_(False)
    x = torch.rand(2, 3, 5, 5)
    relevance = module(x).clamp(min=0)
    for rule in (lrp_rules.plus, lrp_rules.gamma):
        (short,) = backward(rule, module, x, upstream=relevance)
        # One relevant negative output in another image, and all go the long way.
        longer = torch.cat([relevance, module(-x)])
        (long,) = backward(rule, module, torch.cat([x, -x]), upstream=longer)
        assert torch.allclose(short, long[:2], atol=1e-5)
