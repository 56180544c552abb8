"""Places of a prepared graph that methods look for: its attentions, evidence and last stage."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx, nn

from attrcheck.graph.kinds import AVERAGES, MAXIMA, PRODUCTS, SHAPE_CALLS, Mean
from attrcheck.graph.nodes import call_name, module_of
from attrcheck.tensors.memo import PerModel


def attentions(model: fx.GraphModule) -> list[fx.Node]:
    """The softmaxes that weigh tokens: those that multiply a matrix from the left."""

    def weighs(node: fx.Node) -> bool:
        return any(call_name(user) in PRODUCTS and user.args[0] is node for user in node.users)

    return [
        node
        for node in model.graph.nodes
        if (call_name(node) == "softmax" or type(module_of(model, node)) is nn.Softmax)
        and weighs(node)
    ]


def evidence(model: fx.GraphModule) -> fx.Node | None:
    """The convolution whose maps, one per class, are averaged into the logits, if any."""
    (output,) = model.graph.find_nodes(op="output")
    node = output.args[0]
    while isinstance(module_of(model, node), nn.Flatten) or call_name(node) in SHAPE_CALLS:
        node = node.all_input_nodes[0]
    pool = module_of(model, node)
    if not _averages_all(pool):
        return None
    (before,) = node.all_input_nodes
    return before if isinstance(module_of(model, before), nn.Conv2d) else None


def _averages_all(pool: nn.Module | None) -> bool:
    """Whether a module is the mean over all places of a map."""
    if type(pool) is Mean:
        return {axis % 4 for axis in pool.dims} == {2, 3}
    return type(pool) is nn.AdaptiveAvgPool2d and pool.output_size in (1, (1, 1))


class _Shapes(fx.Interpreter):
    """Runs a graph and notes the shape of every tensor."""

    def __init__(self, model: fx.GraphModule) -> None:
        super().__init__(model)
        self.shapes: dict[str, torch.Size] = {}

    def run_node(self, n: fx.Node) -> Any:
        """Run one node."""
        value = super().run_node(n)
        if isinstance(value, Tensor):
            self.shapes[n.name] = value.shape
        return value


_STAGES: PerModel[str | None] = PerModel()


def last_stage(model: fx.GraphModule, images: Tensor) -> str | None:
    """The node with the last map of more than one pixel behind a convolution, poolings aside.

    That is where Grad-CAM looks; None where there is none. A convolution that classifies is not
    a stage if there is another. Found once per model and image size.
    """
    return _STAGES.get(model, images.shape[1:], lambda: _find_stage(model, images))


def _find_stage(model: fx.GraphModule, images: Tensor) -> str | None:
    interpreter = _Shapes(model)
    with torch.no_grad():
        interpreter.run(torch.zeros_like(images[:1]))
    maps = []
    convolved = False
    for node in model.graph.nodes:
        kind = type(module_of(model, node))
        convolved = convolved or issubclass(kind, nn.Conv2d) or call_name(node) == "conv2d"
        pools = kind in (*AVERAGES, *MAXIMA) or "pool" in call_name(node)
        shape = interpreter.shapes.get(node.name, ())
        if convolved and not pools and node.op != "output" and len(shape) == 4:
            maps += [node] if shape[2] * shape[3] > 1 else []
    classifier = evidence(model)
    stages = [node for node in maps if node is not classifier] or maps
    return stages[-1].name if stages else None
