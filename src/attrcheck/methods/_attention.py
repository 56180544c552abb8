"""Attention of a vision transformer: read from its graph, and laid out over the image."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from attrcheck.graph.kinds import attentions, call_name, module_of

_READING: WeakKeyDictionary[nn.Module, fx.GraphModule] = WeakKeyDictionary()


class Reader:
    """Runs a prepared transformer; keeps each attention [N, heads, T, T] and the patch grid.

    What is run may be the same graph under rules, whose nodes have the same names.
    """

    def __init__(self, model: nn.Module, under_rules: fx.GraphModule | None = None) -> None:
        if not isinstance(model, fx.GraphModule):
            raise TypeError(f"attention is read from a prepared graph, not {type(model).__name__}")
        run = under_rules or model
        if run not in _READING:
            _READING[run] = _reading(run, {node.name for node in attentions(model)})
        self._run = _READING[run]
        self.attention: list[Tensor] = []
        self.grid = (0, 0)

    def __call__(self, images: Tensor) -> Tensor:
        """Logits; raises ValueError where attention is not from every token to every token."""
        logits: Tensor
        logits, self.attention, patches = self._run(images.detach())
        self.grid = height, width = patches.shape[2:]
        tokens = self.attention[0].shape[-1]
        for each in self.attention:
            if each.ndim != 4 or each.shape[2:] != (tokens, tokens) or tokens <= height * width:
                raise ValueError(
                    f"attention of shape {list(each.shape)} is not that of a class token and "
                    f"{height}x{width} patches to each other"
                )
        return logits

    def on_image(self, relevance: Tensor, images: Tensor) -> Tensor:
        """The class token's row of [N, T, T], as a map: the last tokens are the patches."""
        height, width = self.grid
        row = relevance[:, 0, -height * width :].view(-1, 1, height, width)
        return F.interpolate(row, images.shape[2:], mode="bilinear", align_corners=False)[:, 0]


def _reading(model: fx.GraphModule, names: set[str]) -> fx.GraphModule:
    """The model that also returns its attentions, and the patches that the last convolution before
    them cuts."""
    graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    logits = graph.graph_copy(model.graph, copies)
    found: list[fx.Node] = []
    patches = None
    for node, copied in copies.items():
        if node.name in names:
            with graph.inserting_after(copied):
                found.append(graph.call_function(_end, (copied,)))
            copied.replace_all_uses_with(found[-1], lambda user: user is not found[-1])
        elif not found and isinstance(module_of(model, node), nn.Conv2d):
            patches = copied
    graph.output((logits, found, patches))
    return fx.GraphModule(model, graph)


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
    """Why a model is no vision transformer that reads its class off a token, or None."""
    if not isinstance(model, fx.GraphModule):
        return "the model is not a prepared graph: it could not be traced, see the warning"
    found = attentions(model)
    if not found:
        return "the model has no attention"
    nodes = list(model.graph.nodes)
    first, last = nodes.index(found[0]), nodes.index(found[-1])
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
