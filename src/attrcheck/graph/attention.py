"""Open what torch computes in one piece, so that a graph shows the softmax of every attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from attrcheck.graph.kinds import PRODUCTS, Product, Unit
from attrcheck.graph.nodes import call_name, signals
from attrcheck.graph.rewriting import insert

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
HIDDEN = -1e30
"""Added to a score it is zero behind the softmax, and unlike infinity has a difference of zero."""
FUSED = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")


class OpenAttention(nn.Module):
    """What nn.MultiheadAttention computes in eval mode, in steps that can be traced."""

    def __init__(self, closed: nn.MultiheadAttention) -> None:
        super().__init__()
        width = closed.embed_dim
        self.heads, self.batch_first = closed.num_heads, closed.batch_first
        weights = torch.split(closed.in_proj_weight, width)
        bias = closed.in_proj_bias
        biases = (None,) * 3 if bias is None else torch.split(bias, width)
        self.query, self.key, self.value = map(_linear, weights, biases)
        self.mix = _linear(closed.out_proj.weight, closed.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: None = None,
        need_weights: bool = True,
        attn_mask: None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """softmax(q k^T / sqrt(d)) v in each head, then a mix; and the softmax, if it is wanted."""
        if key_padding_mask is not None or attn_mask is not None or is_causal:
            raise ValueError("an attention with a mask is left closed")
        if not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q, k, v = (
            layer(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for layer, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        attention, mixed = attend(q, k, v)
        seen = attention.mean(1) if average_attn_weights else attention
        out = self.mix(mixed.transpose(1, 2).flatten(2))
        return out if self.batch_first else out.transpose(0, 1), seen if need_weights else None


def attend(
    query: Tensor, key: Tensor, value: Tensor, scale: Any = None, bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The weights softmax(q k^T * scale + bias), and the values that they weigh."""
    scale = query.size(-1) ** -0.5 if scale is None else scale
    scores = torch.matmul(query * scale, key.transpose(-2, -1))
    attention = torch.softmax(scores if bias is None else scores + bias, -1)
    return attention, torch.matmul(attention, value)


def bias_of(mask: Tensor) -> Tensor:
    """What a mask adds to scores: itself, or a number that leaves nothing where it is false."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=torch.float32).masked_fill_(~mask, HIDDEN)


def open_attention(network: nn.Module) -> nn.Module:
    """The network, with every nn.MultiheadAttention of the usual kind opened.

    But those inside a layer of torch, which stays in one piece in a graph anyway.
    """
    for module in list(network.modules()):
        if type(module).__module__.startswith("torch.nn") and not isinstance(module, CONTAINERS):
            continue
        for name, child in list(module.named_children()):
            if type(child) is nn.MultiheadAttention and _usual(child):
                setattr(module, name, OpenAttention(child).eval().requires_grad_(False))
    return network


def _usual(closed: nn.MultiheadAttention) -> bool:
    same_width = closed.in_proj_weight is not None
    return same_width and closed.bias_k is None and not closed.add_zero_attn


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, weight.device)
    layer.weight = nn.Parameter(weight.detach().clone())
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach().clone())
    return layer


def unfuse(model: fx.GraphModule) -> None:
    """Write attention out in steps, and let softmax, products and unit lengths be modules."""
    for node in list(model.graph.nodes):
        if node.target is F.scaled_dot_product_attention:
            _write_out(model, node)
    tensors = signals(model.graph)
    for node in model.graph.nodes:
        operands = (*node.args, *node.kwargs.values())
        if call_name(node) in PRODUCTS and len(operands) == 2 and tensors.issuperset(operands):
            insert(model, node, Product(), operands)
        elif call_name(node) in STEPS and node in tensors:
            make, names = STEPS[call_name(node)]
            given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
            if step := make(model, **{k: v for k, v in given.items() if k != "input"}):
                insert(model, node, step, (given["input"],))


def _softmax(
    model: fx.GraphModule, dim: Any = None, dtype: torch.dtype | None = None, **rest: Any
) -> nn.Module | None:
    """The module, unless numbers change their type on the way."""
    same = dtype is None or {parameter.dtype for parameter in model.parameters()} == {dtype}
    return nn.Softmax(dim) if isinstance(dim, int) and same else None


def _unit(
    model: fx.GraphModule, p: Any = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None
) -> nn.Module | None:
    return Unit(dim, eps) if p == 2 and isinstance(dim, int) and out is None else None


STEPS: dict[str, tuple[Callable[..., nn.Module | None], tuple[str, ...]]] = {
    "softmax": (_softmax, ("input", "dim", "_stacklevel", "dtype")),
    "normalize": (_unit, ("input", "p", "dim", "eps", "out")),
}
"""Functions that are made modules here, and their arguments in order."""


def _write_out(model: fx.GraphModule, node: fx.Node) -> None:
    given: dict[str, Any] = {**dict(zip(FUSED, node.args, strict=False)), **node.kwargs}
    query, key, value, scale = (given.pop(k, None) for k in ("query", "key", "value", "scale"))
    mask = given.pop("attn_mask", None)
    if any(given.values()):
        return
    tracer = fx.proxy.GraphAppendingTracer(model.graph)
    with model.graph.inserting_before(node):
        q, k, v = (cast(Any, fx.Proxy(part, tracer)) for part in (query, key, value))
        bias: Any = None
        if mask is not None:
            bias = fx.Proxy(model.graph.call_function(bias_of, (mask,)), tracer)
        out: Any = attend(q, k, v, scale, bias)[1]
    node.replace_all_uses_with(out.node)
    model.graph.erase_node(node)
