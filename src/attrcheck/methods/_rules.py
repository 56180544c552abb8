"""Backward rules without hooks: a prepared graph with other derivatives for some modules.

A rule is a function of a module (or of what a node calls) and its inputs that returns what the
module would, and whose backward pass is whatever the rule says. A method is then a table of rules,
by kind of module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.autograd import Function

from attrcheck.graph.nodes import call_name, module_of
from attrcheck.tensors.memo import PerModel

BackwardRule = Callable[..., Tensor]
"""(module or function, *inputs) -> its value, with a derivative of the rule's choice."""

_RULED: PerModel[fx.GraphModule] = PerModel()


def ruled(
    model: nn.Module,
    kinds: Mapping[type[nn.Module], BackwardRule],
    calls: Mapping[str, BackwardRule] | None = None,
) -> fx.GraphModule:
    """A prepared model with a rule in place of every module of a kind in the table.

    `calls` holds rules for functions and tensor methods, by name. Made once per model and table,
    of the model's own modules.
    """
    if not isinstance(model, fx.GraphModule):
        raise TypeError(f"rules act on a prepared graph, not on {type(model).__name__}")
    key = frozenset(kinds.items()), frozenset((calls or {}).items())
    return _RULED.get(model, key, lambda: _with_rules(model, kinds, calls or {}))


def _with_rules(
    model: fx.GraphModule,
    kinds: Mapping[type[nn.Module], BackwardRule],
    calls: Mapping[str, BackwardRule],
) -> fx.GraphModule:
    graph = fx.Graph()
    graph.output(graph.graph_copy(model.graph, {}))
    changed = fx.GraphModule(model, graph)
    for node in graph.nodes:
        module = module_of(changed, node)
        rule = calls.get(call_name(node)) if module is None else kinds.get(type(module))
        if rule:
            node.target = _bound(rule, module or called(node))
            node.op = "call_function"
    changed.delete_all_unused_submodules()
    changed.recompile()
    return changed


def _bound(rule: BackwardRule, part: Callable[..., Any]) -> BackwardRule:
    def ruled(*args: Any, **kwargs: Any) -> Any:
        return rule(partial(part, **kwargs) if kwargs else part, *args)

    return ruled


def called(node: fx.Node) -> Callable[..., Any]:
    """The function that a node calls, also where it is a method of a tensor."""
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


def valued(path: Tensor, value: Tensor) -> Tensor:
    """`value` in the forward pass, the derivative of `path` in the backward pass."""
    return _Valued.apply(path, value.detach())  # type: ignore[no-any-return,no-untyped-call]
