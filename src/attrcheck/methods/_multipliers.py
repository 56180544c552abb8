"""Multipliers between images and baselines: DeepLIFT's backward pass, for all pairs of them.

Every image and every baseline runs forward once. Then each pair runs backward only: what a pair
needs in the forward direction are shapes, and the values of both of its sides are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.autograd import Function
from torch.nn import functional as F
from torch.nn.grad import conv2d_input


@dataclass(frozen=True)
class Sides:
    """Which rows of a tensor are images: the first so many; those behind them are baselines."""

    images: int

    def ends(self, values: Tensor) -> Tensor:
        """Of the images, to be paired with `starts` by broadcasting: [images, 1, ...]."""
        return values[: self.images, None]

    def starts(self, values: Tensor) -> Tensor:
        """Of the baselines: [1, baselines, ...]."""
        return values[None, self.images :]


Rule = Callable[..., tuple[Tensor, ...]]
"""(module, upstream [images, baselines, ...], sides, output, *inputs) -> upstream of the inputs."""
Pull = Callable[[Tensor], tuple[Tensor, ...]]


class _Pulled(Function):
    """Nothing but a shape in the forward pass; whatever `pull` says in the backward pass."""

    @staticmethod
    def forward(ctx: Any, shape: tuple[int, ...], pull: Pull, *inputs: Tensor) -> Tensor:
        ctx.pull = pull
        return inputs[0].new_zeros(()).expand(shape)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *ctx.pull(grads[0])


class _Recorder(fx.Interpreter):
    """Runs a prepared model, and keeps inputs and output of every module."""

    def __init__(self, model: fx.GraphModule) -> None:
        super().__init__(model)
        self.before: dict[str, tuple[Tensor, ...]] = {}
        self.after: dict[str, Tensor] = {}

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A module as it is."""
        self.before[target] = args
        self.after[target] = super().call_module(target, args, kwargs)
        return self.after[target]


class _Pairs(fx.Interpreter):
    """Runs a prepared model on pairs without content, whose backward pass has the multipliers."""

    def __init__(
        self, seen: _Recorder, sides: Sides, rules: Mapping[type[nn.Module], Rule]
    ) -> None:
        super().__init__(seen.module)
        self.seen, self.sides, self.rules = seen, sides, rules

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """By its rule, by the transposed of its weights, or as it is if it is cheap and affine."""
        module = self.fetch_attr(target)
        output = self.seen.after[target]
        rule = self.rules.get(type(module))
        if rule:

            def pull(upstream: Tensor) -> tuple[Tensor, ...]:
                pairs = upstream.unflatten(0, (self.sides.images, -1))
                found = rule(module, pairs, self.sides, output, *self.seen.before[target])
                return tuple(each.flatten(0, 1) for each in found)

        elif transposed := _transposed(module, args[0].shape):
            pull = transposed
        else:
            return super().call_module(target, args, kwargs)
        return _Pulled.apply((len(args[0]), *output.shape[1:]), pull, *args)  # type: ignore[no-untyped-call]


def _transposed(module: nn.Module, shape: torch.Size) -> Pull | None:
    """What a layer's transposed does with the upstream of inputs of this shape."""
    if type(module) is nn.Linear:
        return lambda upstream: (upstream @ module.weight,)
    if type(module) is nn.Conv2d and module.padding_mode == "zeros":
        settings: Any = module.stride, module.padding, module.dilation, module.groups
        return lambda upstream: (conv2d_input(shape, module.weight, upstream, *settings),)
    return None


def multipliers(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    baselines: Tensor,
    rules: Mapping[type[nn.Module], Rule],
) -> Tensor:
    """How the target's logit changes from each baseline to each image: [N, baselines, C, H, W]."""
    if not isinstance(model, fx.GraphModule):
        raise TypeError(f"rules act on a prepared graph, not on {type(model).__name__}")
    shape = len(images), len(baselines)
    with torch.no_grad():
        seen = _Recorder(model)
        logits: Tensor = seen.run(torch.cat([images, baselines]))
    with torch.enable_grad():
        pairs = images.new_zeros(()).expand(shape[0] * shape[1], *images.shape[1:])
        found: Tensor = _Pairs(seen, Sides(len(images)), rules).run(pairs.requires_grad_())
        chosen = F.one_hot(targets, logits.shape[1]).to(logits).repeat_interleave(shape[1], 0)
        (slopes,) = torch.autograd.grad(found, pairs, chosen)
    return slopes.unflatten(0, shape)
