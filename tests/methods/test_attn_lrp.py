"""AttnLRP: against relevance shared out layer by layer, and against an autograd of its own."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from attrcheck.graph.kinds import Product, Unit
from attrcheck.graph.preparing import prepare
from attrcheck.methods import attn_lrp, method
from tests.methods.token_world import each_network, error, subject
from tests.worlds import random_family, smooth_images, trained_family

both_weights = pytest.mark.parametrize("weights", ["random", "trained"])


def attribute(model, images, targets):
    return method.get("attn_lrp").attribute(model, images, targets)


# --- one layer after the other, relevance by relevance, as the paper writes it


def linear_shares(layer, x, relevance):
    """R_i = sum over j of w_ji x_i / y_j R_j."""
    return x * ((relevance / layer(x)) @ layer.weight)


def norm_shares(norm, x, relevance):
    """All that is left of the shift goes on to x - mean, and from there in proportion."""
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (x.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt() * norm.weight
    passed = relevance * scaled / (scaled + norm.bias)
    ratio = passed / centred
    return x * (ratio - ratio.mean(-1, keepdim=True))


def softmax_shares(x, y, relevance):
    """Proposition 3.1: R_i = x_i (R_i - y_i sum of R)."""
    return x * (relevance - y * relevance.sum(-1, keepdim=True))


def product_shares(a, b, relevance):
    """Proposition 3.3: half of the summand's share to either of its factors."""
    summands = a.unsqueeze(-1) * b.unsqueeze(-3)
    shares = summands * (relevance / (a @ b)).unsqueeze(-2) / 2
    return shares.sum(-1), shares.sum(-3)


def sum_shares(a, b, relevance):
    ratio = relevance / (a + b)
    return a * ratio, b * ratio


def slow(network, image, target):
    """The map of one image of the embedded transformer."""
    patches, kept = [image[None]], []
    for layer in network.patches:
        patches.append(layer(patches[-1]))
    cells = patches[-1].flatten(2).transpose(1, 2)
    start = torch.cat([network.token, cells], 1)
    x = (start + network.positions)[0]
    for block in network.blocks:
        layer, n1 = block.attention, block.norm1(x)
        q, k, v = (
            part(n1).unflatten(1, (layer.heads, -1)).transpose(0, 1)
            for part in (layer.query, layer.key, layer.value)
        )
        scores = q @ k.transpose(1, 2) * layer.scale
        seen = (scores.softmax(2) @ v).transpose(0, 1).flatten(1)
        middle = x + layer.mix(seen)
        hidden = block.mlp[1](block.mlp[0](block.norm2(middle)))
        kept.append((block, x, n1, q, k, v, scores, seen, middle, hidden))
        x = middle + block.mlp[2](hidden)
    final = network.norm(x)
    seed = F.one_hot(torch.tensor(target), network.head.out_features) * network.head(final[0])
    relevance = torch.zeros_like(x)
    relevance[0] = linear_shares(network.head, final[0], seed.to(x))
    relevance = norm_shares(network.norm, x, relevance)
    for block, x, n1, q, k, v, scores, seen, middle, hidden in reversed(kept):
        layer, n2 = block.attention, block.norm2(middle)
        to_middle, to_mlp = sum_shares(middle, block.mlp[2](hidden), relevance)
        to_n2 = linear_shares(block.mlp[0], n2, linear_shares(block.mlp[2], hidden, to_mlp))
        to_middle = to_middle + norm_shares(block.norm2, middle, to_n2)
        relevance, to_mixed = sum_shares(x, layer.mix(seen), to_middle)
        to_seen = linear_shares(layer.mix, seen, to_mixed)
        to_seen = to_seen.unflatten(1, (layer.heads, -1)).transpose(0, 1)
        attention = scores.softmax(2)
        to_attention, to_v = product_shares(attention, v, to_seen)
        to_scores = softmax_shares(scores, attention, to_attention)
        to_q, to_k = product_shares(q, k.transpose(1, 2), to_scores)
        to_n1 = sum(
            linear_shares(part, n1, share.transpose(0, 1).flatten(1))
            for part, share in (
                (layer.query, to_q),
                (layer.key, to_k.transpose(1, 2)),
                (layer.value, to_v),
            )
        )
        relevance = relevance + norm_shares(block.norm1, x, to_n1)
    tokens = relevance * (start / (start + network.positions))[0]
    relevance = tokens[1:].T.reshape(patches[-1].shape)
    for layer, x in zip(reversed(network.patches), reversed(patches[:-1]), strict=True):
        relevance = affine_shares(layer, x, relevance)
    return relevance[0].sum(0)


def affine_shares(layer, x, relevance):
    """Of a convolution or a batch norm in proportion; an activation passes all on."""
    if isinstance(layer, nn.GELU):
        return relevance
    with torch.enable_grad():
        leaf = x.clone().requires_grad_()
        y = layer(leaf)
        # In one piece: of other strides torch 2.13 makes another gradient of a batch norm.
        (back,) = torch.autograd.grad(y, leaf, (relevance / y).detach().contiguous())
    return x * back


@both_weights
def test_it_equals_relevance_shared_out_layer_by_layer(weights):
    if weights == "trained":
        network, images, targets = trained_family("vit", 2)
    else:
        network, images, targets = random_family("vit"), smooth_images(2), torch.tensor([1, 2])
    network, images = network.double().requires_grad_(False), images.double()
    wanted = torch.stack([slow(network, *pair) for pair in zip(images, targets, strict=True)])
    assert error(attribute(prepare(network), images, targets), wanted) < 1e-8


# --- rules as an autograd of its own, on the network as its author wrote it


class Relevant(TorchFunctionMode):
    """Calls with the derivatives of AttnLRP; keeps what goes into each softmax and out of it."""

    def __init__(self):
        super().__init__()
        self.softmaxes = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        rule = getattr(self, f"on_{name.strip('_')}", None)
        return rule(func, *args, **kwargs) if rule else func(*args, **kwargs)

    def on_matmul(self, func, a, b):
        y = a @ b
        both = a.requires_grad and b.requires_grad
        return y / 2 + y.detach() / 2 if both else y

    on_rmatmul = on_matmul

    def on_layer_norm(self, func, x, shape, weight=None, bias=None, eps=1e-5):
        centred = x - x.mean(-1, keepdim=True)
        y = centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt().detach()
        return y * (1 if weight is None else weight) + (0 if bias is None else bias)

    def on_normalize(self, func, x, p=2.0, dim=1, eps=1e-12, out=None):
        return x / x.norm(dim=dim, keepdim=True).clamp(min=eps).detach()

    def on_gelu(self, func, x, approximate="none"):
        return x * (func(x, approximate=approximate) / x).detach()

    def on_silu(self, func, x, inplace=False):
        return x * torch.sigmoid(x).detach()

    def on_mul(self, func, a, b):
        both = all(isinstance(t, torch.Tensor) and t.requires_grad for t in (a, b))
        return a * b / 2 + (a * b).detach() / 2 if both else a * b

    def on_softmax(self, func, x, *args, **kwargs):
        y = func(x, *args, **kwargs)
        for t in (x, y):
            if t.requires_grad:
                t.retain_grad()
        self.softmaxes.append((x, y))
        return y

    def on_scaled_dot_product_attention(self, func, q, k, v, attn_mask=None, **settings):
        scale = settings.get("scale") or q.shape[-1] ** -0.5
        scores = self.on_matmul(func, q * scale, k.transpose(-2, -1))
        scores = scores if attn_mask is None else scores + attn_mask
        return self.on_matmul(func, self.on_softmax(torch.softmax, scores, -1), v)

    def on_multi_head_attention_forward(self, func, q, k, v, width, heads, *rest, **settings):
        weight, bias, _, _, _, _, mix, shift = rest
        parts = zip((q, k, v), weight.chunk(3), bias.chunk(3), strict=True)
        q, k, v = (
            F.linear(x.transpose(0, 1), w, b).unflatten(-1, (heads, -1)).transpose(1, 2)
            for x, w, b in parts
        )
        mixed = self.on_scaled_dot_product_attention(func, q, k, v).transpose(1, 2).flatten(2)
        return F.linear(mixed, mix, shift).transpose(0, 1), None

    def on_shifted_window_attention(self, func, *args, **kwargs):
        with self:
            return func(*args, **kwargs)


ADDED = ("bias", "token", "pos_embed", "positions", "embedding", "embeddings", "bias_table")
"""Names of what a network adds to the signal, or puts beside it."""


def by_autograd(name, ledger=True):
    """Logits at the targets, the relevance of pixels, and in all of what is added, and left over.

    Without a ledger nothing but the signal has a gradient.
    """
    network, _, images, targets = subject(name)
    network, images = copy.deepcopy(network), images.clone().requires_grad_()
    for norm in network.modules():
        if isinstance(norm, nn.BatchNorm2d):  # all that it adds as one bias
            norm.bias.sub_(norm.running_mean * norm.weight / (norm.running_var + norm.eps).sqrt())
            norm.running_mean.zero_()
    added = [p for n, p in network.named_parameters() if n.endswith(ADDED)] if ledger else []
    for parameter in added:
        parameter.requires_grad_()
    with torch.enable_grad(), Relevant() as mode:
        logits = network(images).gather(1, targets[:, None])[:, 0]
    logits.sum().backward()
    with torch.no_grad():
        constants = sum((p * p.grad).sum() for p in added if p.grad is not None)
        left = sum((y * y.grad - x * x.grad).sum() for x, y in mode.softmaxes)
    return logits.detach(), (images * images.grad).detach(), constants, left


# One learns a query, others a scale: with a gradient these would be taken for signals.
WITHOUT_LEDGER = {"timm-siglip", "timm-eva", "timm-swin-v2", "torchvision-swin-v2"}


@each_network
def test_it_equals_an_autograd_of_its_own_and_conserves(name):
    """Both to rounding: no rule has a stabiliser."""
    _, model, images, targets = subject(name)
    assert method.get("attn_lrp").not_applicable(model) is None
    found = attribute(model, images, targets)
    ledger = name not in WITHOUT_LEDGER
    logits, wanted, constants, left = by_autograd(name, ledger)
    assert error(found, wanted.sum(1)) < 1e-9
    if ledger:
        total = found.sum() + constants + left
        assert (total - logits.sum()).abs() < 1e-9 * logits.abs().sum()


@both_weights
def test_in_single_precision_as_well(weights):
    if weights == "trained":
        network, images, targets = trained_family("vit", 2)
    else:
        network, images, targets = random_family("vit"), smooth_images(2), torch.tensor([1, 2])
    single, double = (
        attribute(prepare(copy.deepcopy(network).to(kind)), images.to(kind), targets)
        for kind in (torch.float32, torch.float64)
    )
    assert error(single.double(), double) < 1e-4


def test_what_is_added_and_the_expansions_take_their_part():
    """So the map alone does not sum to the logit."""
    logits, pixels, constants, left = by_autograd("timm-vit")
    assert (pixels.sum() - logits.sum()).abs() > 0.1 * logits.abs().sum()
    assert constants.abs() > 0
    assert left.abs() > 0


# --- rules by hand


def backward(rule, part, *inputs, upstream):
    leaves = [x.clone().requires_grad_() for x in inputs]
    value = rule(part, *leaves)
    assert torch.equal(value, part(*inputs))
    return torch.autograd.grad(value, leaves, upstream)


def test_a_norm_keeps_its_deviation():
    norm = nn.LayerNorm(2, eps=0.0).requires_grad_(False)
    norm.weight.copy_(torch.tensor([1.0, 2.0]))
    x = torch.tensor([[1.0, 5.0]])  # mean 3, deviation 2
    (found,) = backward(attn_lrp.normalise, norm, x, upstream=torch.tensor([[1.0, 1.0]]))
    # (1, 2) / 2, and of that the mean, 0.75, is taken away.
    assert torch.allclose(found, torch.tensor([[-0.25, 0.25]]))
    plain = nn.LayerNorm(2, eps=0.0, elementwise_affine=False)
    (found,) = backward(attn_lrp.normalise, plain, x, upstream=torch.tensor([[1.0, 3.0]]))
    assert torch.allclose(found, torch.tensor([[-0.5, 0.5]]))


def test_a_product_gives_one_half_to_either():
    a, b = torch.tensor([[2.0, 1.0]]), torch.tensor([[3.0], [5.0]])
    to_a, to_b = backward(attn_lrp.product, Product(), a, b, upstream=torch.tensor([[4.0]]))
    assert torch.equal(to_a, torch.tensor([[6.0, 10.0]]))
    assert torch.equal(to_b, torch.tensor([[4.0], [2.0]]))


def test_a_unit_vector_keeps_its_length():
    x = torch.tensor([[3.0, 4.0]])
    (found,) = backward(attn_lrp.unit, Unit(-1, 1e-12), x, upstream=torch.tensor([[1.0, 2.0]]))
    assert torch.allclose(found, torch.tensor([[0.2, 0.4]]))


def test_where_it_does_not_apply():
    applies = method.get("attn_lrp").not_applicable
    assert "lrp_epsilon" in applies(prepare(random_family("resnet")))
    odd = nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.LayerNorm(4), nn.Sigmoid())
    assert "a sigmoid that is not a gate (at 3)" in applies(prepare(odd))
    grouped = nn.Sequential(nn.Conv2d(3, 4, 1), nn.GroupNorm(2, 4), nn.Flatten())
    assert "no rule for GroupNorm (at 1)" in applies(prepare(grouped))


def test_it_is_neither_lrp_of_attention_nor_the_plain_gradient():
    network, images, targets = trained_family("vit", 2)
    model = prepare(network)
    maps = attribute(model, images, targets)
    for name in ("chefer_lrp", "input_x_gradient"):
        others = method.get(name).attribute(model, images, targets)
        for one, other in zip(maps, others, strict=True):
            both = torch.stack([one.flatten(), other.flatten()])
            assert torch.corrcoef(both)[0, 1] < 0.95
