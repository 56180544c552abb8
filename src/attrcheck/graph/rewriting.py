"""Changes to a graph that leave what it computes alone: dropping, separating, folding."""

from __future__ import annotations

import copy
import operator
from typing import Any

import torch
from torch import fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from attrcheck.graph.kinds import GATES, SHAPE_CALLS, Multiply
from attrcheck.graph.nodes import call_name, module_of

INACTIVE = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
STOCHASTIC = ("dropout", "dropout2d", "alpha_dropout", "feature_dropout", "stochastic_depth")
PURE: dict[Any, Any] = {
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
    operator.ipow: operator.pow,
}


def insert(
    model: fx.GraphModule, node: fx.Node, module: nn.Module, args: Any, kwargs: Any = None
) -> None:
    """Make a node call a new module, named after the node."""
    name = node.name
    while hasattr(model, name):
        name += "_"
    model.add_module(name, module.eval())
    node.op, node.target, node.args, node.kwargs = "call_module", name, args, kwargs or {}


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


def mark_gates(model: fx.GraphModule) -> None:
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
