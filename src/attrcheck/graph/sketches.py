"""Sketches: what a network computes, in shapes alone, while it is being traced.

A call is sketched on torch's meta device, for batches of several sizes at once. What is the same
for all of them is known when the network is traced, so that it may branch on the size of an image.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.node import map_aggregate

BATCHES = (1, 2, 5)
"""Images of the batches that are sketched."""


class UnknownError(Exception):
    """A value that a sketch cannot tell."""


class Sketches:
    """The value of every node for each batch: tensors without numbers, sizes, settings."""

    def __init__(self, network: nn.Module, images: Tensor) -> None:
        shape = images.shape[1:]
        self.network = _bare(network)
        self.inputs = [images.new_empty(count, *shape, device="meta") for count in BATCHES]
        self._values: dict[fx.Node, list[Any]] = {}

    def note(self, node: fx.Node, args: Any, kwargs: Any) -> None:
        """Sketch what a node computes of proxies and constants; nothing, if it cannot be done."""
        try:
            values = [
                self._run(node, *self._of((args, kwargs), place)) for place in range(len(BATCHES))
            ]
        except Exception:  # the meta device has no numbers, and not every operation
            return
        self._values[node] = values

    def known(self, node: fx.Node) -> list[Any]:
        """The node's value in each batch; raises UnknownError."""
        try:
            return self._values[node]
        except KeyError:
            raise UnknownError from None

    def constant(self, node: fx.Node, read: Callable[[Any], Any] = lambda value: value) -> Any:
        """What is read off a node's value, if it is the same, and no tensor, in all batches."""
        first, *others = [read(value) for value in self.known(node)]
        if isinstance(first, Tensor) or any(other != first for other in others):
            raise UnknownError
        return first

    def sizes(self, node: fx.Node) -> list[int | None]:
        """The sizes of a tensor; None where they depend on the batch."""
        shapes: Sequence[Any] = [getattr(value, "shape", None) for value in self.known(node)]
        if None in shapes or len({len(shape) for shape in shapes}) > 1:
            raise UnknownError
        return [axis[0] if len(set(axis)) == 1 else None for axis in zip(*shapes, strict=True)]

    def _of(self, arguments: Any, place: int) -> Any:
        """Arguments of a call, as they are in one of the batches."""

        def sketched(argument: Any) -> Any:
            if isinstance(argument, fx.Proxy):
                return self.known(argument.node)[place]
            return argument.to("meta") if isinstance(argument, Tensor) else argument

        return map_aggregate(arguments, sketched)

    def _run(self, node: fx.Node, args: Any, kwargs: Any) -> Any:
        target: Any = node.target
        with torch.no_grad():
            if node.op == "get_attr":
                owner, _, name = target.rpartition(".")
                return getattr(self.network.get_submodule(owner), name)
            if node.op == "call_module":
                return self.network.get_submodule(target)(*args, **kwargs)
            if node.op == "call_method":
                return getattr(args[0], target)(*args[1:], **kwargs)
            return target(*args, **kwargs)

    def start(self, node: fx.Node) -> None:
        """Let a node stand for the images."""
        self._values[node] = list(self.inputs)


def _bare(network: nn.Module) -> nn.Module:
    """A copy whose weights are shapes."""
    state = [*network.parameters(), *network.buffers()]
    return copy.deepcopy(network, {id(value): value.detach().to("meta") for value in state})
