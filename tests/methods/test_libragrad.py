"""LibraGrad: against the author's network with paths cut by hand, and what it conserves."""

import copy

import pytest
import torch
from torch.nn import functional as F

from attrcheck.graph.preparing import prepare
from attrcheck.methods import method
from tests.methods.token_world import error, subject
from tests.worlds import random_family


def attribute(model, images, targets):
    return method.get("libragrad").attribute(model, images, targets)


def norm(layer, x):
    centred = x - x.mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + layer.eps).sqrt().detach()
    return centred / deviation * layer.weight + layer.bias


def gelu(x):
    gate = (1 + torch.erf(x / 2**0.5)) / 2
    return x * gate.detach()


def attend(layer, x):
    parts = (layer.query, layer.key, layer.value)
    query, key, value = (part(x).unflatten(2, (layer.heads, -1)).transpose(1, 2) for part in parts)
    weights = torch.softmax(query @ key.transpose(2, 3) * layer.scale, -1).detach()
    return layer.mix((weights @ value).transpose(1, 2).flatten(2))


def balanced(network, x):
    """The logits of the embedded transformer, with paths that only scale a signal cut."""
    for layer in network.patches:
        x = gelu(x) if isinstance(layer, torch.nn.GELU) else layer(x)
    tokens = torch.cat([network.token.expand(len(x), -1, -1), x.flatten(2).transpose(1, 2)], 1)
    tokens = tokens + network.positions
    for block in network.blocks:
        tokens = tokens + attend(block.attention, norm(block.norm1, tokens))
        first, _, second = block.mlp
        tokens = tokens + second(gelu(first(norm(block.norm2, tokens))))
    return network.head(norm(network.norm, tokens)[:, 0])


def test_it_is_input_x_gradient_of_a_network_with_paths_cut_by_hand_and_complete():
    network, model, images, targets = subject("embedded")
    assert method.get("libragrad").not_applicable(model) is None
    network, rows = copy.deepcopy(network).requires_grad_(), torch.arange(len(images))
    added = {"token": network.token, "positions": network.positions}
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            added[name] = parameter
    inputs = images.clone().requires_grad_()
    logits = balanced(network, inputs)
    assert torch.allclose(logits, network(images))
    for row, target in zip(rows, targets, strict=True):
        # Biases of queries and keys have no slope.
        slopes = torch.autograd.grad(
            logits[row, target],
            [inputs, *added.values()],
            retain_graph=True,
            materialize_grads=True,
        )
        wanted = (slopes[0] * images).sum(1)[row]
        assert error(attribute(model, images, targets)[row][None], wanted[None].detach()) < 1e-9
        rest = dict(zip(added, slopes[1:], strict=True))
        total = wanted.sum()
        for name, slope in rest.items():
            value = added[name].clone()
            layer = network.get_submodule(name.rpartition(".")[0])
            if isinstance(layer, torch.nn.BatchNorm2d):
                value -= layer.running_mean * layer.weight / (layer.running_var + layer.eps).sqrt()
            total = total + (value * slope).sum()
        assert torch.allclose(total, logits[row, target], rtol=1e-9)


# A mixer has no attention, swin scales its scores by what it has learnt.
@pytest.mark.parametrize("name", ["embedded", "timm-vit", "timm-mixer", "timm-swin"])
def test_without_anything_added_all_of_the_logit_is_in_the_map(name):
    network, _, images, _ = subject(name)
    network = copy.deepcopy(network)
    for part, value in (*network.named_parameters(), *network.named_buffers()):
        if part.endswith(("bias", "running_mean", "token", "positions", "pos_embed")):
            value.data.zero_()
    model = prepare(network, images)
    targets = model(images).abs().argmax(1)
    found = attribute(model, images, targets).sum((1, 2))
    wanted = model(images).gather(1, targets[:, None])[:, 0]
    assert torch.allclose(found, wanted, rtol=1e-6)
    assert F.cosine_similarity(found, wanted, dim=0) > 0.999


def test_it_is_not_attn_lrp():
    _, model, images, targets = subject("embedded")
    other = method.get("attn_lrp").attribute(model, images, targets)
    assert error(attribute(model, images, targets), other) > 0.1


def test_elsewhere_it_is_known_by_another_name():
    reason = method.get("libragrad").not_applicable(prepare(random_family("resnet")))
    assert "lrp_epsilon" in reason
