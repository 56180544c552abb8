"""Layers that a network calls as functions, with weights of its own, as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, fx, nn
from torch.fx.node import map_aggregate

from attrcheck.graph.kinds import UPSAMPLED
from attrcheck.graph.nodes import NDIM, call_name, module_of

Layer = TypeVar("Layer", bound=nn.Module)


def conv2d(
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> nn.Module:
    """As F.conv2d."""
    outputs, inputs, height, width = weight.shape
    layer = nn.Conv2d(
        inputs * groups,
        outputs,
        (height, width),
        stride,
        padding,
        dilation,
        groups,
        bias=bias is not None,
    )
    return _with(layer, weight=weight, bias=bias)


def linear(weight: Tensor, bias: Tensor | None = None) -> nn.Module:
    """As F.linear."""
    outputs, inputs = weight.shape
    return _with(nn.Linear(inputs, outputs, bias is not None), weight=weight, bias=bias)


def layer_norm(
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> nn.Module:
    """As F.layer_norm."""
    norm = nn.LayerNorm(normalized_shape, eps, weight is not None, bias is not None)
    return _with(norm, weight=weight, bias=bias)


def group_norm(
    num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> nn.Module | None:
    """As F.group_norm, if it has weights: they tell how many channels there are."""
    if weight is None or bias is None:
        return None
    return _with(nn.GroupNorm(num_groups, len(weight), eps), weight=weight, bias=bias)


def batch_norm(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    axes: int,
) -> nn.Module | None:
    """As F.batch_norm, if it does not normalise by the batch; of images, or of their features."""
    if running_mean is None or running_var is None or training:
        return None
    kind = nn.BatchNorm2d if axes == 4 else nn.BatchNorm1d
    norm = kind(len(running_mean), eps, affine=not (weight is None and bias is None))
    ones, zeros = torch.ones_like(running_mean), torch.zeros_like(running_mean)
    if norm.affine:
        weight, bias = ones if weight is None else weight, zeros if bias is None else bias
    norm = _with(norm, weight=weight, bias=bias)
    norm.running_mean, norm.running_var = running_mean.clone(), running_var.clone()
    return norm.to(running_mean)


def interpolate(
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> nn.Module | None:
    """As F.interpolate, where no weight is negative."""
    if mode not in UPSAMPLED or antialias:
        return None
    return nn.Upsample(size, scale_factor, mode, align_corners, recompute_scale_factor)


def pad(pad: Any, mode: str = "constant", value: float | None = None) -> nn.Module | None:
    """As F.pad, if it pads rows and columns; of other axes it stays a call."""
    if len(pad) != 4 or mode == "circular":
        return None
    if mode == "constant":
        return nn.ConstantPad2d(tuple(pad), value) if value else nn.ZeroPad2d(tuple(pad))
    return {"reflect": nn.ReflectionPad2d, "replicate": nn.ReplicationPad2d}[mode](tuple(pad))


LAYERS: dict[str, Callable[..., nn.Module | None]] = {
    made.__name__: made
    for made in (conv2d, linear, layer_norm, group_norm, batch_norm, interpolate, pad)
}
"""From the arguments of a function, the input aside, to the module that does the same."""


def layer_of(model: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    """The layer that a node calls as one of these functions; None if its weights depend on the
    image, or there is no such layer."""
    name = call_name(node)
    make = LAYERS[name]
    try:
        settings, options = _constant(model, (node.args[1:], dict(node.kwargs)))
    except DependentError:
        return None
    if make is batch_norm:
        return batch_norm(*settings, **options, axes=_axes(model, node))
    return make(*settings, **options)


class DependentError(Exception):
    """A value depends on the image."""


def _constant(model: fx.GraphModule, value: Any) -> Any:
    """What an argument is, with the values of the nodes in it; raises DependentError."""

    def known(part: Any) -> Any:
        return _computed(model, part) if isinstance(part, fx.Node) else part

    return map_aggregate(value, known)


def _computed(model: fx.GraphModule, node: fx.Node) -> Any:
    target: Any = node.target
    if node.op == "get_attr":
        owner, _, name = target.rpartition(".")
        return getattr(model.get_submodule(owner), name)
    if not call_name(node):
        raise DependentError
    args, kwargs = _constant(model, (node.args, dict(node.kwargs)))
    function = getattr(Tensor, target) if node.op == "call_method" else target
    with torch.no_grad():
        return function(*args, **kwargs)


def _axes(model: fx.GraphModule, node: fx.Node) -> int:
    """How many axes a tensor has: behind a linear layer two, if nobody knows, else four."""
    features = isinstance(module_of(model, node.all_input_nodes[0]), nn.Linear)
    return int(node.meta.get(NDIM, 2 if features else 4))


def _with(module: Layer, **weights: Tensor | None) -> Layer:
    """The module with copies of these weights."""
    for name, value in weights.items():
        if value is not None:
            setattr(module, name, nn.Parameter(value.detach().clone(), requires_grad=False))
    return module
