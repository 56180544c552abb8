"""A copy of a network that only looks at images: the same logits, in less time."""

from __future__ import annotations

import copy
import operator
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, fx, nn

from attrcheck.contracts import Precision
from attrcheck.graph.nodes import module_of
from attrcheck.graph.rewriting import drop_inactive, fold, redirect, separate
from attrcheck.graph.tracing import Leaf, Tracer, compare
from attrcheck.tensors.precision import computing_in

FRESH = nn.Conv2d | nn.Linear | nn.BatchNorm2d
"""Modules whose output is a tensor of its own."""


class Predictor(nn.Module):
    """Runs a network that needs no gradients, in its device's favourite layout; counts images.

    pure: whether the network is known to leave what it is given as it was. precision: with how many
    digits it computes; logits are of the type of the images in any case.
    """

    def __init__(self, network: nn.Module, pure: bool, precision: Precision = "float32") -> None:
        super().__init__()
        self.network = network
        self.pure = pure
        self.precision = precision
        self.passes = 0
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        """Logits [N, classes]."""
        self.passes += len(images)
        if not self.pure:
            images = images.clone()
        if images.device.type == "cpu":
            images = images.contiguous(memory_format=torch.channels_last)
        if self.precision == "float32":
            logits: Tensor = self.network(images)
            return logits
        with computing_in(self.precision, images.device):
            logits = self.network(images)
        return logits.to(images.dtype)


def predictor_of(
    network: nn.Module,
    images: Tensor | None = None,
    leaf: Collection[Leaf] = (),
    concrete_args: Mapping[str, Any] | None = None,
    precision: Precision = "float32",
) -> Predictor:
    """A copy with batch norms folded into convolutions, on a CPU in channels-last layout.

    A network that cannot be traced is copied as it is. The other settings are those of `prepare`.
    """
    network = copy.deepcopy(network).eval().requires_grad_(False)
    try:
        model = _fast(Tracer(images, leaf, concrete_args).graph_of(copy.deepcopy(network)))
        if images is not None:
            compare(network, model, images)
    except Exception:  # whatever the tracer stumbles over; `prepare` warns of it
        return Predictor(_laid_out(network), False, precision)
    return Predictor(_laid_out(model), True, precision)


def _fast(model: fx.GraphModule) -> fx.GraphModule:
    for rewrite in (drop_inactive, redirect, separate):
        rewrite(model)
    model.graph.eliminate_dead_code()
    fold(model)
    model.graph.lint()
    model.delete_all_unused_submodules()
    overwrite(model)
    model.recompile()
    return model.eval()


def overwrite(model: fx.GraphModule) -> None:
    """Let sums and activations work in place where nothing else needs what they are given."""

    def free(operand: fx.Node) -> bool:
        """Whether it is a tensor of its own that has no other use."""
        fresh = isinstance(module_of(model, operand), FRESH) or operand.target in ADDED
        return fresh and len(operand.users) == 1

    for node in model.graph.nodes:
        module = module_of(model, node)
        if module is not None and isinstance(getattr(module, "inplace", None), bool):
            (operand,) = node.all_input_nodes
            module.inplace = free(operand)  # type: ignore[assignment]
        elif _adds_two(node) and free(node.args[0]):
            node.target = add_to


def add_to(one: Tensor, other: Tensor) -> Tensor:
    """The sum, in the place of the first if it fits there."""
    fits = one.shape == other.shape and one.dtype == other.dtype
    return one.add_(other) if fits else one + other


ADDED = (operator.add, torch.add, add_to)


def _adds_two(node: fx.Node) -> bool:
    """Whether it is a plain sum of two tensors."""
    return node.target in ADDED and len(node.all_input_nodes) == 2 and not node.kwargs


def _laid_out(network: nn.Module) -> nn.Module:
    """The network with its kernels in channels-last layout, if it is on a CPU."""
    for parameter in network.parameters():
        if parameter.device.type == "cpu" and parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return network
