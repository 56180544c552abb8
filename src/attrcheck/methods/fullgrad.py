"""FullGrad: what the image and what every bias contribute to a logit, as one map."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.node import map_aggregate

from attrcheck.graph.kinds import (
    ACTIVATIONS,
    LINEAR,
    MAXIMA,
    NORMS,
    SCALINGS,
    SHAPE_CALLS,
    Multiply,
)
from attrcheck.graph.nodes import call_name, module_of, no_graph, obstacle
from attrcheck.methods import method
from attrcheck.tensors.batching import in_batches
from attrcheck.tensors.images import enlarge

HOMOGENEOUS = (nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.RReLU)
"""Activations y = y'x, which add nothing."""
KINDS = {*LINEAR, *ACTIVATIONS, *MAXIMA, Multiply} - {nn.ConstantPad2d}


def needs_biases(model: nn.Module) -> str | None:
    """Why it is not known what an operation adds to its signal, or None."""
    return obstacle(model, KINDS, SHAPE_CALLS)


class _Additions(fx.Interpreter):
    """Runs a graph, and keeps what each node adds to its signal: y - y'x, and y."""

    def __init__(self, model: fx.GraphModule) -> None:
        super().__init__(model)
        self.values: list[Tensor] = []
        self.added: list[Tensor] = []

    def run_node(self, n: fx.Node) -> Any:
        """Run one node."""
        value = super().run_node(n)
        if isinstance(value, Tensor) and value.requires_grad and n.op != "placeholder":
            added = self._added(n, value)
            if added is not None:
                self.values.append(value)
                self.added.append(added)
        return value

    def _added(self, node: fx.Node, value: Tensor) -> Tensor | None:
        assert isinstance(self.module, fx.GraphModule)
        module = module_of(self.module, node)
        if isinstance(module, NORMS):
            assert isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d))
            return _along_channels(_shift(module), value)
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            return None if module.bias is None else _along_channels(module.bias, value)
        if isinstance(module, nn.Linear):
            return module.bias
        if isinstance(module, Multiply):
            return -value.detach()  # of degree two: y - 2y
        if isinstance(module, ACTIVATIONS) and not isinstance(module, HOMOGENEOUS):
            x: Tensor = self.fetch_args_kwargs_from_env(node)[0][0]
            (slope,) = torch.autograd.grad(value, x, torch.ones_like(value), retain_graph=True)
            return value.detach() - slope * x.detach()
        return self._constant(node) if call_name(node) in SCALINGS else None

    def _constant(self, node: fx.Node) -> Tensor:
        """What an affine call of one tensor makes of zero."""

        def at_zero(part: Any) -> Any:
            signal = isinstance(part, Tensor) and part.requires_grad
            return torch.zeros_like(part) if signal else part

        args, kwargs = map_aggregate(self.fetch_args_kwargs_from_env(node), at_zero)
        result: Tensor = getattr(self, node.op)(node.target, args, kwargs)
        return result


def _shift(norm: nn.BatchNorm1d | nn.BatchNorm2d) -> Tensor:
    """b of a norm wx + b in eval mode."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    shift = -norm.running_mean / (norm.running_var + norm.eps).sqrt()
    return norm.bias + shift * norm.weight if norm.affine else shift


def _along_channels(vector: Tensor, value: Tensor) -> Tensor:
    return vector.view(-1, *(1,) * (value.ndim - 2))


def full_gradients(
    model: nn.Module, images: Tensor, targets: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """x * df/dx and all b * df/db, with a value for every place: together they sum to f(x)."""
    if not isinstance(model, fx.GraphModule):
        raise TypeError(no_graph(model))
    run = _Additions(model)
    with torch.enable_grad():
        inputs = images.detach().clone().requires_grad_()
        chosen = run.run(inputs).gather(1, targets[:, None]).sum()
        slopes = torch.autograd.grad(chosen, [inputs, *run.values], materialize_grads=True)
    pairs = zip(run.added, slopes[1:], strict=True)
    return slopes[0] * images, [added.detach() * slope for added, slope in pairs]


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
        total = _scaled(pixels).sum(1)
        for layer in biases:
            if layer.ndim == 4:
                total += enlarge(_scaled(layer).sum(1), images)
        return total

    return torch.cat(list(in_batches(maps, len(images), model, images)))


def _scaled(layer: Tensor) -> Tensor:
    """Absolute values [N, C, h, w], from 0 to 1 over all of an image's; zero if all are alike."""
    sizes = layer.abs()
    low, high = sizes.amin((1, 2, 3), keepdim=True), sizes.amax((1, 2, 3), keepdim=True)
    return torch.where(high > low, (sizes - low) / (high - low), 0)
