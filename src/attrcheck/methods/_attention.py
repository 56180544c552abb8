"""Attention of a vision transformer: read from its graph, and laid out over the image."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from attrcheck.models._graph import attentions, call_name, module_of


class Reader(fx.Interpreter):
    """Runs a prepared transformer; keeps each attention [N, heads, T, T] and the patch grid.

    What is run may be the same graph under rules, whose nodes have the same names.
    """

    def __init__(self, model: nn.Module, under_rules: fx.GraphModule | None = None) -> None:
        if not isinstance(model, fx.GraphModule):
            raise TypeError(f"attention is read from a prepared graph, not {type(model).__name__}")
        self.graph_module = under_rules or model
        super().__init__(self.graph_module)
        self.names = [node.name for node in attentions(model)]
        self.attention: list[Tensor] = []
        self.grid = (0, 0)

    def run_node(self, n: fx.Node) -> Any:
        """Run one node."""
        value = super().run_node(n)
        if n.name in self.names:
            if torch.is_grad_enabled() and not value.requires_grad:
                value = value.detach().requires_grad_()  # what gradients end in
            self.attention.append(value)
        elif not self.attention and isinstance(module_of(self.graph_module, n), nn.Conv2d):
            self.grid = tuple(value.shape[2:])
        return value

    def __call__(self, images: Tensor) -> Tensor:
        """Logits; raises ValueError where attention is not from every token to every token."""
        logits: Tensor = self.run(images.detach())
        height, width = self.grid
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
