"""Attention of vision transformers: rollout, and Chefer's two ways to weigh it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor, fx, nn

from attrcheck.graph.landmarks import attentions
from attrcheck.graph.nodes import PART, call_name, module_of, no_graph, sees_all
from attrcheck.methods import method
from attrcheck.methods._rules import ruled
from attrcheck.methods.lrp_attention import CALLS, KINDS, uncovered
from attrcheck.tensors.images import enlarge
from attrcheck.tensors.memo import PerModel

_NAMES: PerModel[frozenset[str]] = PerModel()
_READING: PerModel[fx.GraphModule] = PerModel()


class Reader:
    """Runs a prepared transformer; keeps each attention [N, heads, T, T] and the patch grid.

    What is run may be the same graph under rules, whose nodes have the same names.
    """

    def __init__(self, model: nn.Module, under_rules: fx.GraphModule | None = None) -> None:
        if not isinstance(model, fx.GraphModule):
            raise TypeError(f"attention is read from a prepared graph, not {type(model).__name__}")
        self._run = under_rules or model
        self._names = _NAMES.get(
            model, (), lambda: frozenset(node.name for node in attentions(model))
        )
        self.attention: list[Tensor] = []
        self.grid = (0, 0)

    def __call__(self, images: Tensor) -> Tensor:
        """Logits; raises ValueError where attention is not from every token to every token."""
        logits: Tensor
        (logits,) = self._read(images, logits=True)
        return logits

    def read(self, images: Tensor) -> None:
        """Without logits: nothing behind the last attention is run."""
        self._read(images, logits=False)

    def _read(self, images: Tensor, logits: bool) -> list[Tensor]:
        run, names = self._run, self._names
        reading = _READING.get(run, (names, logits), lambda: _reading(run, names, logits))
        outputs: list[Tensor]
        *outputs, self.attention, patches = reading(images.detach())
        self.grid = height, width = patches.shape[2:]
        tokens = self.attention[0].shape[-1]
        for layer in self.attention:
            if layer.ndim != 4 or layer.shape[2:] != (tokens, tokens) or tokens <= height * width:
                raise ValueError(
                    f"attention of shape {list(layer.shape)} is not that of a class token and "
                    f"{height}x{width} patches to each other"
                )
        return outputs

    def on_image(self, relevance: Tensor, images: Tensor) -> Tensor:
        """The class token's row of [N, T, T], as a map: the last tokens are the patches."""
        height, width = self.grid
        row = relevance[:, 0, -height * width :]
        return enlarge(row.view(-1, height, width), images)


def _reading(model: fx.GraphModule, names: Collection[str], logits: bool) -> fx.GraphModule:
    """The model that returns its logits, if they are wanted, its attentions, and the patches that
    the last convolution before them cuts."""
    graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    last = graph.graph_copy(model.graph, copies)
    read: list[fx.Node] = []
    patches = None
    for node, copied in copies.items():
        if node.name in names:
            with graph.inserting_after(copied):
                read.append(graph.call_function(_end, (copied,)))
            copied.replace_all_uses_with(read[-1], lambda user: user is not read[-1])
        elif not read and isinstance(module_of(model, node), nn.Conv2d):
            patches = copied
    graph.output((last, read, patches) if logits else (read, patches))
    reading = fx.GraphModule(model, graph)
    graph.eliminate_dead_code()
    reading.recompile()
    return reading


def _end(attention: Tensor) -> Tensor:
    """What gradients end in, if none would come as far."""
    if torch.is_grad_enabled() and not attention.requires_grad:
        return attention.detach().requires_grad_()
    return attention


def summed(layers: list[Tensor]) -> Tensor:
    """R = I, then R <- R + mean over heads of relu(layer) @ R: [N, T, T]."""
    total = torch.eye(layers[0].shape[-1]).to(layers[0])
    for layer in layers:
        total = total + layer.relu().mean(1) @ total
    return total


def needs_attention(model: nn.Module) -> str | None:
    """Why a model is not a vision transformer that reads its class off a token, or None."""
    if not isinstance(model, fx.GraphModule):
        return no_graph(model)
    softmaxes = attentions(model)
    if not softmaxes:
        return "the model has no attention"
    if not sees_all(model):
        return PART
    nodes = list(model.graph.nodes)
    first, last = nodes.index(softmaxes[0]), nodes.index(softmaxes[-1])
    if not any(isinstance(module_of(model, node), nn.Conv2d) for node in nodes[:first]):
        return "no convolution cuts the image into patches"
    if [token for node in nodes[last:] for token in _taken(node)] != [0]:
        return "the logits are not read off one class token, the first"
    return None


def _taken(node: fx.Node) -> list[int]:
    """The token that a node takes, if it does so as x[:, 0] does."""
    place: Any = node.args[1] if call_name(node) == "getitem" else None
    one = isinstance(place, tuple) and len(place) == 2 and isinstance(place[1], int)
    return [place[1]] if one and place[0] == slice(None) else []


def rollout(attention: list[Tensor]) -> Tensor:
    """Product over layers, the last one first, of (mean over heads of A + I) / 2: [N, T, T]."""
    identity = torch.eye(attention[0].shape[-1]).to(attention[0])
    total = identity
    for weights in attention:
        total = (weights.mean(1) + identity) / 2 @ total
    return total


@method(
    "attention_rollout",
    family="transformer",
    passes=(1, 0),
    reference="Abnar and Zuidema 2020",
    not_applicable=needs_attention,
)
def attention_rollout(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """How much of each patch reaches the class token, were attention all that moves content.

    Bilinearly enlarged. The same for every target: attention does not know the class.
    """
    reader = Reader(model)
    with torch.no_grad():
        reader.read(images)
    return reader.on_image(rollout(reader.attention), images)


@method(
    "chefer",
    family="transformer",
    passes=(1, 1),
    reference="Chefer et al. 2021 (ICCV)",
    not_applicable=needs_attention,
    constant="zero everywhere if no attention speaks for the class",
)
def chefer(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """R = I, then R <- R + mean over heads of relu(A * df/dA) @ R, layer by layer.

    The class token's row at the patches, bilinearly enlarged.
    """
    reader = Reader(model)
    with torch.enable_grad():
        logits = reader(images).gather(1, targets[:, None])
        gradients = torch.autograd.grad(logits.sum(), reader.attention)
    layers = [a.detach() * g for a, g in zip(reader.attention, gradients, strict=True)]
    return reader.on_image(summed(layers), images)


def needs_attention_rules(model: nn.Module) -> str | None:
    """Why a model is not a vision transformer with a rule for all behind its first attention."""
    if reason := needs_attention(model):
        return reason
    assert isinstance(model, fx.GraphModule)
    return uncovered(model)


@method(
    "chefer_lrp",
    family="transformer",
    passes=(4, 3),  # the gradient; and linear layers run forward three times, backward twice
    reference="Chefer et al. 2021 (CVPR)",
    not_applicable=needs_attention_rules,
    constant="zero everywhere if no attention speaks for the class",
)
def chefer_lrp(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """R = I, then R <- R + mean over heads of relu(r * df/dA) @ R, layer by layer.

    r is the relevance of the attention A: that of the target's logit, one, shared out by LRP. The
    class token's row at the patches, bilinearly enlarged.
    """
    reader, ruled_reader = Reader(model), Reader(model, ruled(model, KINDS, CALLS))
    with torch.enable_grad():
        gradients, relevances = (
            torch.autograd.grad(run(images).gather(1, targets[:, None]).sum(), run.attention)
            for run in (reader, ruled_reader)
        )
    return reader.on_image(
        summed([a * b for a, b in zip(gradients, relevances, strict=True)]), images
    )
