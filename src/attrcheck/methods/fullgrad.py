"""FullGrad: what the image and what every bias contribute to a logit, as one map."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.node import map_aggregate

from attrcheck.graph.kinds import (
    ACTIVATIONS,
    LINEAR,
    MAXIMA,
    SCALINGS,
    SHAPE_CALLS,
    Multiply,
)
from attrcheck.graph.nodes import call_name, module_of, no_graph, obstacle, signals
from attrcheck.methods import method
from attrcheck.methods._rules import called
from attrcheck.tensors.batching import in_batches
from attrcheck.tensors.images import enlarge
from attrcheck.tensors.memo import PerModel

HOMOGENEOUS = (nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.RReLU)
"""Activations y = y'x, which add nothing."""
KINDS = {*LINEAR, *ACTIVATIONS, *MAXIMA, Multiply} - {nn.ConstantPad2d}

_WATCHED: PerModel[fx.GraphModule] = PerModel()


def needs_biases(model: nn.Module) -> str | None:
    """Why it is not known what an operation adds to its signal, or None."""
    return obstacle(model, KINDS, SHAPE_CALLS)


def _watched(model: fx.GraphModule) -> fx.GraphModule:
    """The model that also returns, for nodes that add to their signal, y and what they add."""
    graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    logits = graph.graph_copy(model.graph, copies)
    carrying = signals(model.graph)
    values, added = list[fx.Node](), list[fx.Node]()
    for node, copied in copies.items():
        addition = _addition(model, node) if node in carrying else None
        if addition:
            values.append(copied)
            with graph.inserting_after(copied):
                given = (copied, *copied.args)
                added.append(graph.call_function(addition, given, copied.kwargs))
    graph.output((logits, values, added))
    return fx.GraphModule(model, graph)


def _addition(model: fx.GraphModule, node: fx.Node) -> Callable[..., Tensor] | None:
    """y - y'x as a function of y and of all that the node is given; None if it is zero."""
    module = module_of(model, node)
    if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
        return _bias(module, partial(_shift, module))
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
        return None if module.bias is None else _bias(module, partial(getattr, module, "bias"))
    if isinstance(module, Multiply):
        return _of_product
    if isinstance(module, ACTIVATIONS):
        return None if isinstance(module, HOMOGENEOUS) else _of_activation
    return _of_zero(called(node)) if call_name(node) in SCALINGS else None


def _bias(layer: nn.Module, vector: Callable[[], Tensor]) -> Callable[..., Tensor]:
    """A number for each channel, or for each feature."""

    def bias(y: Tensor, *_: Any, **__: Any) -> Tensor:
        behind = 0 if isinstance(layer, nn.Linear) else y.ndim - 2
        return vector().view(-1, *(1,) * behind)

    return bias


def _of_product(y: Tensor, *_: Any) -> Tensor:
    return -y.detach()  # of degree two: y - 2y


def _of_activation(y: Tensor, x: Tensor) -> Tensor:
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    return y.detach() - slope * x.detach()


def _of_zero(call: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """What an affine call of one tensor makes of zero."""

    def at_zero(part: Any) -> Any:
        signal = isinstance(part, Tensor) and part.requires_grad
        return torch.zeros_like(part) if signal else part

    def of_zero(y: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        zeroed, named = map_aggregate((args, kwargs), at_zero)
        return call(*zeroed, **named)

    return of_zero


def _shift(norm: nn.BatchNorm1d | nn.BatchNorm2d) -> Tensor:
    """b of a norm wx + b in eval mode."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    shift = -norm.running_mean / (norm.running_var + norm.eps).sqrt()
    return norm.bias + shift * norm.weight if norm.affine else shift


def full_gradients(
    model: nn.Module, images: Tensor, targets: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """x * df/dx and all b * df/db, with a value for every place: together they sum to f(x)."""
    if not isinstance(model, fx.GraphModule):
        raise TypeError(no_graph(model))
    run = _WATCHED.get(model, (), lambda: _watched(model))
    with torch.enable_grad():
        inputs = images.detach().clone().requires_grad_()
        logits, values, added = run(inputs)
        chosen = logits.gather(1, targets[:, None]).sum()
        slopes = torch.autograd.grad(chosen, [inputs, *values], materialize_grads=True)
    pairs = zip(added, slopes[1:], strict=True)
    return slopes[0] * images, [constant.detach() * slope for constant, slope in pairs]


@method(
    "fullgrad",
    default=False,
    not_applicable=needs_biases,
    family="gradient",
    passes=(1, 1),
    reference="Srinivas and Fleuret 2019",
)
def fullgrad(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """psi(x * df/dx) + sum of psi(b * df/db) over layers that hold maps.

    psi: absolute values, scaled to [0, 1] in each layer, summed over channels, enlarged. b: biases
    (of a convolution and its batch norm as one), and what other operations y add to their signal x,
    y - y'x. Before psi, and with biases of layers that hold no maps, all sum to f(x).
    """

    def maps(part: slice) -> Tensor:
        pixels, biases = full_gradients(model, images[part], targets[part])
        total = _scaled(pixels)
        sums = {total.shape: total}
        for layer in biases:
            if layer.ndim == 4:
                scaled = _scaled(layer)
                known = sums.setdefault(scaled.shape, scaled)
                if known is not scaled:
                    known += scaled
        # Layers of a size are enlarged as one, those of the images' size not at all.
        del sums[total.shape]
        for layers in sums.values():
            total += enlarge(layers, images)
        return total

    return torch.cat(list(in_batches(maps, len(images), model, images)))


def _scaled(layer: Tensor) -> Tensor:
    """Absolute values of [N, C, h, w], from 0 to 1 over all of an image's, summed over channels.

    Zero if all are alike. What is in the layer is lost.
    """
    sizes = layer.abs_()
    low, high = sizes.amin((1, 2, 3), keepdim=True), sizes.amax((1, 2, 3), keepdim=True)
    span = (high - low).clamp_(min=torch.finfo(layer.dtype).tiny)
    return sizes.sub_(low).sum(1).div_(span[:, 0])
