"""Turn functions and operators that rules must see into modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx, nn

from attrcheck.graph.kinds import Add, Concat, Mean, Multiply, Sum
from attrcheck.graph.layers import LAYERS, layer_of
from attrcheck.graph.nodes import NDIM, call_name, signals
from attrcheck.graph.rewriting import insert

POOLING = ("kernel_size", "stride", "padding")
FUNCTIONS: dict[str, tuple[Callable[..., nn.Module], tuple[str, ...]]] = {
    "relu": (nn.ReLU, ()),
    "relu6": (nn.ReLU6, ()),
    "leaky_relu": (nn.LeakyReLU, ("negative_slope",)),
    "elu": (nn.ELU, ("alpha",)),
    "celu": (nn.CELU, ("alpha",)),
    "selu": (nn.SELU, ()),
    "gelu": (nn.GELU, ("approximate",)),
    "silu": (nn.SiLU, ()),
    "mish": (nn.Mish, ()),
    "hardswish": (nn.Hardswish, ()),
    "softplus": (nn.Softplus, ("beta", "threshold")),
    "sigmoid": (nn.Sigmoid, ()),
    "hardsigmoid": (nn.Hardsigmoid, ()),
    "tanh": (nn.Tanh, ()),
    "hardtanh": (nn.Hardtanh, ("min_val", "max_val")),
    "softsign": (nn.Softsign, ()),
    "max_pool2d": (nn.MaxPool2d, (*POOLING, "dilation", "ceil_mode", "return_indices")),
    "avg_pool2d": (nn.AvgPool2d, (*POOLING, "ceil_mode", "count_include_pad", "divisor_override")),
    "adaptive_max_pool2d": (nn.AdaptiveMaxPool2d, ("output_size", "return_indices")),
    "adaptive_avg_pool2d": (nn.AdaptiveAvgPool2d, ("output_size",)),
}
"""Functions and tensor methods with a module of the same meaning, and its settings in order."""
REDUCTIONS: dict[str, type[Mean]] = {"mean": Mean, "sum": Sum}
UNLESS_KNOWN = {-1, -2}
"""Axes counted from the end that are taken not to be the batch where nobody knows how many there
are."""


def expose(model: fx.GraphModule) -> None:
    """Turn every call into a module of the same meaning, where there is one."""
    tensors = signals(model.graph)
    for node in model.graph.nodes:
        if node not in tensors or not call_name(node):
            continue
        if not node.args and "input" in node.kwargs:
            options = dict(node.kwargs)
            node.args, node.kwargs = (options.pop("input"),), options
        if not node.args:
            continue
        if operands := _operands(node, ("cat", "concat", "concatenate"), tensors):
            options = node.kwargs
            dim: Any = [*node.args[1:], options.get("dim", options.get("axis", 0))][0]
            insert(model, node, Concat(dim), operands)
        elif operands := _operands(node, ("add",), tensors):
            insert(model, node, Add(), operands)
        elif operands := _operands(node, ("mul", "multiply"), tensors):
            insert(model, node, Multiply(), operands)
        elif module := _equivalent(model, node):
            insert(model, node, module, node.args[:1])


def _operands(node: fx.Node, names: tuple[str, ...], tensors: set[fx.Node]) -> tuple[Any, ...]:
    """The operands of a call by one of these names, if all are signals and nothing is scaled."""
    if call_name(node) not in names or "alpha" in node.kwargs:
        return ()
    first, *rest = node.args
    others = [node.kwargs["other"]] if "other" in node.kwargs else rest
    operands = first if isinstance(first, (list, tuple)) else (first, *others)
    return tuple(operands) if all(operand in tensors for operand in operands) else ()


def _equivalent(model: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    """The module that does what a function does, if there is one and its settings are constant."""
    name = call_name(node)
    settings: Any = node.args[1:]
    options: dict[str, Any] = dict(node.kwargs)
    if name in LAYERS:
        return layer_of(model, node)
    if len(node.all_input_nodes) > 1:
        return None
    if name in REDUCTIONS:
        return _reduction(REDUCTIONS[name], node.args[0], *settings, **options)
    if name not in FUNCTIONS:
        return None
    kind, names = FUNCTIONS[name]
    given = {**dict(zip(names, settings, strict=False)), **options}
    return kind(**{key: value for key, value in given.items() if key in names})


def _reduction(kind: type[Mean], operand: Any, *settings: Any, **options: Any) -> Mean | None:
    """A mean or sum over axes of each image; None if images are mixed, or it cannot be told."""
    given = {**dict(zip(("dim", "keepdim"), settings, strict=False)), **options}
    dim, keepdim = given.pop("dim", given.pop("axis", None)), given.pop("keepdim", False)
    dims = (dim,) if isinstance(dim, int) else tuple(dim or ())
    ndim = operand.meta.get(NDIM)

    def within(axis: Any) -> bool:
        """Whether an axis is not that of the batch."""
        if not isinstance(axis, int):
            return False
        return axis % ndim > 0 if ndim else axis > 0 or axis in UNLESS_KNOWN

    return kind(dims, keepdim) if dims and all(map(within, dims)) and not given else None
