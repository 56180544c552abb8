"""From a network to its graph: what is one node of it, and what is taken apart."""

from __future__ import annotations

import operator
from itertools import filterfalse
from typing import Any

from torch import fx, nn

from attrcheck.graph.bcos import BcosConv2d, Encode
from attrcheck.graph.kinds import Add, Concat, Mean, Multiply, Product

LEAVES = (Add, Multiply, Product, Concat, Mean, BcosConv2d, Encode)
"""Modules that are one node of a graph, as layers of torch are: those of an already prepared graph,
and what rules for B-cos networks act on."""


def trace(network: nn.Module) -> fx.GraphModule:
    """The graph of a network, made of its own modules; raises whatever the tracer stumbles over."""
    return fx.GraphModule(network, Tracer().trace(network))


class Tracer(fx.Tracer):
    """Takes LEAVES as they are, beside the layers of torch, and the image as the only input."""

    def proxy(self, node: fx.Node) -> fx.Proxy:
        """A proxy that keeps changes in place apart."""
        return _Proxy(node, self)

    def create_args_for_root(self, root_fn: Any, is_module: bool, concrete_args: Any = None) -> Any:
        """Only the image is an input; whatever else forward() takes keeps its default."""
        _, (root, image, *others) = super().create_args_for_root(root_fn, is_module, concrete_args)

        def optional(argument: fx.Proxy) -> bool:
            return bool(argument.node.args) or str(argument.node.target).startswith("*")

        for argument in filter(optional, others):
            self.graph.erase_node(argument.node)
        return root_fn, [root, image, *filterfalse(optional, others)]

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a module is one node of the graph."""
        return isinstance(m, LEAVES) or super().is_leaf_module(m, module_qualified_name)


class _Proxy(fx.Proxy):
    """Keeps `a += b` apart from `a = a + b`, since the first also changes other names of a."""

    def __iadd__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.iadd, other)

    def __isub__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.isub, other)

    def __imul__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.imul, other)

    def __itruediv__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.itruediv, other)

    def __ipow__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.ipow, other)

    def _in_place(self, change: Any, other: Any) -> fx.Proxy:
        return self.tracer.create_proxy("call_function", change, (self, other), {})
