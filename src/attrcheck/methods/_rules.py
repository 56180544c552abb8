"""Backward rules without hooks: a prepared graph with other derivatives for some modules.

A rule is a function of a module (or of what a node calls) and its inputs that returns what the
module would, and whose backward pass is whatever the rule says. A method is then a table of rules,
by kind of module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, fx, nn
from torch.autograd import Function

from attrcheck.graph.kinds import (
    ACTIVATIONS,
    LINEAR,
    MAXIMA,
    RECTIFIERS,
    SHAPE_CALLS,
    Multiply,
    call_name,
    module_of,
    obstacle,
)

Rule = Callable[..., Tensor]

SMOOTH_KINDS = (nn.LayerNorm, nn.GroupNorm, nn.InstanceNorm2d, nn.Softmax, nn.MultiheadAttention)
SMOOTH_CALLS = ("matmul", "bmm", "softmax", "layer_norm", "scaled_dot_product_attention", "sum")
"""What rectifies nothing and hides no rectifier, so that its true derivative is right."""


_RULED: WeakKeyDictionary[nn.Module, dict[Any, fx.GraphModule]] = WeakKeyDictionary()


def ruled(
    model: nn.Module, kinds: Mapping[type[nn.Module], Rule], calls: Mapping[str, Rule] | None = None
) -> fx.GraphModule:
    """A prepared model with a rule in place of every module of a kind in the table.

    `calls` holds rules for functions and tensor methods, by name. Made once per model and table,
    of the model's own modules.
    """
    if not isinstance(model, fx.GraphModule):
        raise TypeError(f"rules act on a prepared graph, not on {type(model).__name__}")
    known = _RULED.setdefault(model, {})
    key = frozenset(kinds.items()), frozenset((calls or {}).items())
    if key not in known:
        known[key] = _with_rules(model, kinds, calls or {})
    return known[key]


def _with_rules(
    model: fx.GraphModule, kinds: Mapping[type[nn.Module], Rule], calls: Mapping[str, Rule]
) -> fx.GraphModule:
    graph = fx.Graph()
    graph.output(graph.graph_copy(model.graph, {}))
    changed = fx.GraphModule(model, graph)
    for node in graph.nodes:
        module = module_of(changed, node)
        rule = calls.get(call_name(node)) if module is None else kinds.get(type(module))
        if rule:
            node.target = _bound(rule, module or _function(node))
            node.op = "call_function"
    changed.delete_all_unused_submodules()
    changed.recompile()
    return changed


def _bound(rule: Rule, part: Callable[..., Any]) -> Rule:
    def ruled(*args: Any, **kwargs: Any) -> Any:
        return rule(partial(part, **kwargs) if kwargs else part, *args)

    return ruled


def _function(node: fx.Node) -> Callable[..., Any]:
    target: Any = node.target
    return getattr(Tensor, target) if node.op == "call_method" else target  # type: ignore[no-any-return]


def backpropagate(
    forward: Callable[[Tensor], Tensor],
    images: Tensor,
    targets: Tensor,
    seed: Callable[[Tensor], Tensor] = torch.ones_like,
) -> Tensor:
    """What the backward pass brings to each image from `seed(logit)` at its target's logit."""
    with torch.enable_grad():
        inputs = images.detach().clone().requires_grad_()
        logits = forward(inputs).gather(1, targets[:, None])[:, 0]
        return torch.autograd.grad(logits, inputs, seed(logits.detach()))[0]


class _Valued(Function):
    @staticmethod
    def forward(ctx: Any, path: Tensor, value: Tensor) -> Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0], None


class _Rectified(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0].clamp(min=0)


def valued(path: Tensor, value: Tensor) -> Tensor:
    """`value` in the forward pass, the derivative of `path` in the backward pass."""
    return _Valued.apply(path, value.detach())  # type: ignore[no-any-return,no-untyped-call]


def rectified(x: Tensor) -> Tensor:
    """x, but only positive gradient passes back through it: relu(upstream)."""
    return _Rectified.apply(x)  # type: ignore[no-any-return,no-untyped-call]


def guided(module: nn.Module, x: Tensor) -> Tensor:
    """act'(x) * relu(upstream)."""
    return rectified(module(x))


def deconvolved(module: nn.Module, x: Tensor) -> Tensor:
    """relu(upstream), whatever x is."""
    return valued(rectified(x), module(x.detach()))


# A gate is no rectifier: it never blocks, it weighs, and a negative gradient at a gate tells of
# the signal that it weighs, not of a feature that speaks against the class. So gates keep their
# derivative under both rules; the rectifiers inside the branch that computes a gate do not.
GUIDED: dict[type[nn.Module], Rule] = dict.fromkeys(RECTIFIERS, guided)
DECONVOLVED: dict[type[nn.Module], Rule] = dict.fromkeys(RECTIFIERS, deconvolved)


def needs_rectifiers(model: nn.Module) -> str | None:
    """Why a rule on rectifiers would miss some of a model's, or would be the plain gradient."""
    kinds = (*ACTIVATIONS, *LINEAR, *MAXIMA, Multiply, *SMOOTH_KINDS)
    if reason := obstacle(model, kinds, (*SHAPE_CALLS, *SMOOTH_CALLS)):
        return reason
    if not any(type(module) in RECTIFIERS for module in model.modules()):
        return "the model has no rectifying activation, so this would be the plain gradient"
    return None
