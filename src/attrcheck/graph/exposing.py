"""Turn functions and operators that rules must see into modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, fx, nn

from attrcheck.graph.kinds import Add, Concat, Mean, Multiply
from attrcheck.graph.nodes import call_name, signals
from attrcheck.graph.rewriting import insert

SPATIAL = {2, 3, -1, -2}
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


def expose(model: fx.GraphModule) -> None:
    """Turn every call into a module of the same meaning, where there is one."""
    tensors = signals(model.graph)
    for node in model.graph.nodes:
        if node not in tensors or not call_name(node) or not node.args:
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
    if name == "batch_norm":
        return _batch_norm(model, settings, options)
    if len(node.all_input_nodes) > 1:
        return None
    if name == "mean":
        return _mean(*settings, **options)
    if name not in FUNCTIONS:
        return None
    kind, names = FUNCTIONS[name]
    given = {**dict(zip(names, settings, strict=False)), **options}
    return kind(**{key: value for key, value in given.items() if key in names})


def _mean(dim: Any = None, keepdim: bool = False, **other: Any) -> nn.Module | None:
    dims = (dim,) if isinstance(dim, int) else tuple(dim or ())
    return Mean(dims, keepdim) if dims and SPATIAL.issuperset(dims) and not other else None


def _batch_norm(model: fx.GraphModule, settings: Any, options: dict[str, Any]) -> nn.Module | None:
    """Norm layers with a built-in activation call the function with their own buffers."""
    names = ("running_mean", "running_var", "weight", "bias")
    given = {**dict(zip(names, settings, strict=False)), **options}
    state = {name: _constant(model, given.get(name)) for name in names}
    mean = state["running_mean"]
    if mean is None or given.get("training", False):
        return None
    norm = nn.BatchNorm2d(len(mean), given.get("eps", 1e-5), affine=state["weight"] is not None)
    norm.to(mean).requires_grad_(False)
    norm.load_state_dict({k: v for k, v in state.items() if v is not None}, strict=False)
    return norm


def _constant(model: fx.GraphModule, value: Any) -> Tensor | None:
    if not isinstance(value, fx.Node) or value.op != "get_attr":
        return None
    owner, _, name = str(value.target).rpartition(".")
    return getattr(model.get_submodule(owner), name)  # type: ignore[no-any-return]
