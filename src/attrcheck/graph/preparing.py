"""Prepare a network for attribution: rewrite a copy of its graph so that rules can act on it."""

from __future__ import annotations

import copy
import operator
import warnings
from itertools import filterfalse
from typing import Any

import torch
from torch import fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from attrcheck.graph.attention import open_attention, unfuse
from attrcheck.graph.bcos import BcosConv2d, Encode
from attrcheck.graph.exposing import expose, insert
from attrcheck.graph.kinds import (
    GATES,
    SHAPE_CALLS,
    Add,
    Concat,
    Mean,
    Multiply,
    call_name,
    module_of,
)

INACTIVE = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
STOCHASTIC = ("dropout", "dropout2d", "alpha_dropout", "feature_dropout", "stochastic_depth")
PURE: dict[Any, Any] = {
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
    operator.ipow: operator.pow,
}


class NotTraceable(UserWarning):
    """A network that torch.fx cannot trace: methods that act on its graph are not applicable."""


def prepare(network: nn.Module) -> nn.Module:
    """A rewritten copy in eval mode that computes the same: an fx.GraphModule without gradients.

    Every activation and pooling is a module of its own, none in place; sums, products and
    concatenations of tensors are modules; what does nothing in eval mode is gone; batch norms
    that follow a convolution or a linear layer are folded into it; the softmax of every attention
    is a node.
    """
    network = copy.deepcopy(network).eval().requires_grad_(False)
    for module in network.modules():
        # DenseNet's checkpointed path hides its layers from the graph.
        if getattr(module, "memory_efficient", False):
            module.memory_efficient = False  # type: ignore[assignment]
    try:
        model = _traced(network)
    except Exception as error:
        reason = f"{type(network).__name__} cannot be traced ({type(error).__name__}: {error})"
        warnings.warn(f"{reason}; some methods are not applicable", NotTraceable, stacklevel=2)
        return network
    for rewrite in (drop_inactive, redirect, separate, unfuse, expose, _mark_gates):
        rewrite(model)
    # Before folding: what only an assertion looked at would pass for a second user.
    model.graph.eliminate_dead_code()
    fold(model)
    model.graph.lint()
    model.delete_all_unused_submodules()
    model.recompile()
    return model.eval()


def _traced(network: nn.Module) -> fx.GraphModule:
    """The graph of a network, with attention opened if it can be."""
    opened = open_attention(copy.deepcopy(network))
    try:
        return fx.GraphModule(opened, Tracer().trace(opened))
    except Exception:  # an attention may have a mask
        return fx.GraphModule(network, Tracer().trace(network))


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


class Tracer(fx.Tracer):
    """Takes B-cos layers, and the modules of an already prepared graph, as they are."""

    def proxy(self, node: fx.Node) -> fx.Proxy:
        """A proxy that keeps changes in place apart."""
        return _Proxy(node, self)

    def create_args_for_root(self, root_fn: Any, is_module: bool, concrete_args: Any = None) -> Any:
        """Only the image is an input; whatever else forward() takes keeps its default."""
        _, (root, image, *others) = super().create_args_for_root(root_fn, is_module, concrete_args)

        def optional(each: fx.Proxy) -> bool:
            return bool(each.node.args) or str(each.node.target).startswith("*")

        for each in filter(optional, others):
            self.graph.erase_node(each.node)
        return root_fn, [root, image, *filterfalse(optional, others)]

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a module is one node of the graph."""
        own = isinstance(m, (Add, Multiply, Concat, Mean, BcosConv2d, Encode))
        return own or super().is_leaf_module(m, module_qualified_name)


def drop_inactive(model: fx.GraphModule) -> None:
    """Remove what does nothing in eval mode: dropout, stochastic depth, identities, assertions."""
    for node in list(model.graph.nodes):
        off = call_name(node) in STOCHASTIC and node.kwargs.get("training", node.args[-1]) is False
        if off or type(module_of(model, node)) in INACTIVE:
            node.replace_all_uses_with(node.all_input_nodes[0])
            model.graph.erase_node(node)
        elif node.target is torch._assert:
            model.graph.erase_node(node)


def redirect(model: fx.GraphModule) -> None:
    """Give what follows an in-place operation its result, so that it no longer needs to be one."""
    order = {node: place for place, node in enumerate(model.graph.nodes)}
    for node in order:
        if _in_place(model, node):
            operand = node.all_input_nodes[0]
            for user in list(operand.users):
                if order[user] > order[node]:
                    user.replace_input_with(operand, node)
            _make_pure(node)


def _in_place(model: fx.GraphModule, node: fx.Node) -> bool:
    if node.op == "call_module":
        return bool(getattr(module_of(model, node), "inplace", False))
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return bool(call_name(node)) and (
        name.endswith("_") or node.target in PURE or node.kwargs.get("inplace", False) is True
    )


def _make_pure(node: fx.Node) -> None:
    """Let a function or tensor method return its result instead of changing its operand."""
    if node.op == "call_method":
        node.target = call_name(node)
    elif node.op == "call_function":
        homes = (home for home in (torch, nn.functional) if hasattr(home, call_name(node)))
        pure = next((getattr(home, call_name(node)) for home in homes), node.target)
        node.target = PURE.get(node.target, pure)
        node.kwargs = {key: value for key, value in node.kwargs.items() if key != "inplace"}


def separate(model: fx.GraphModule) -> None:
    """Give every call of a module its own copy, and make no activation work in place."""
    called: set[str] = set()
    for node in model.graph.nodes:
        module = module_of(model, node)
        if module is None:
            continue
        if isinstance(getattr(module, "inplace", None), bool):
            module.inplace = False  # type: ignore[assignment]
        if str(node.target) in called:
            insert(model, node, copy.deepcopy(module), node.args, node.kwargs)
        called.add(str(node.target))


def _mark_gates(model: fx.GraphModule) -> None:
    """Note in every product which operand comes out of a sigmoid, if one alone does."""
    for node in model.graph.nodes:
        product = module_of(model, node)
        if isinstance(product, Multiply):
            gates = [place for place, operand in enumerate(node.args) if _is_gate(model, operand)]
            product.gate = gates[0] if len(gates) == 1 else None


def _is_gate(model: fx.GraphModule, node: Any) -> bool:
    while call_name(node) in SHAPE_CALLS or isinstance(module_of(model, node), nn.Flatten):
        node = node.all_input_nodes[0]
    return type(module_of(model, node)) in GATES


def fold(model: fx.GraphModule) -> None:
    """Fold every batch norm into the convolution or linear layer that it alone follows."""
    for node in list(model.graph.nodes):
        norm = module_of(model, node)
        if norm is None or len(node.all_input_nodes[0].users) > 1:
            continue
        before = node.all_input_nodes[0]
        layer = module_of(model, before)
        if type(norm) is nn.BatchNorm2d and type(layer) is nn.Conv2d and norm.track_running_stats:
            folded: nn.Module = fuse_conv_bn_eval(layer, norm)
        elif type(norm) is nn.BatchNorm1d and type(layer) is nn.Linear and norm.track_running_stats:
            folded = fuse_linear_bn_eval(layer, norm)
        else:
            continue
        owner, _, name = str(before.target).rpartition(".")
        setattr(model.get_submodule(owner), name, folded)
        node.replace_all_uses_with(before)
        model.graph.erase_node(node)
