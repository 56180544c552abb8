"""Prepare a network for attribution: rewrite a copy of its graph so that rules can act on it."""

from __future__ import annotations

import copy
import warnings

from torch import fx, nn

from attrcheck.graph.attention import open_attention, unfuse
from attrcheck.graph.exposing import expose
from attrcheck.graph.rewriting import drop_inactive, fold, mark_gates, redirect, separate
from attrcheck.graph.tracing import trace


class NotTraceable(UserWarning):
    """A network that torch.fx cannot trace: methods that act on its graph are not applicable."""


def prepare(network: nn.Module) -> nn.Module:
    """A rewritten copy in eval mode that computes the same: an fx.GraphModule without gradients.

    Every activation and pooling is a module of its own, none in place; sums, products and
    concatenations of tensors are modules; what does nothing in eval mode is gone; batch norms
    that follow a convolution or a linear layer are folded into it; the softmax of every attention
    is a node.
    """
    network = copy.deepcopy(network).eval().requires_grad_(False)
    for module in network.modules():
        # DenseNet's checkpointed path hides its layers from the graph.
        if getattr(module, "memory_efficient", False):
            module.memory_efficient = False  # type: ignore[assignment]
    try:
        model = _traced(network)
    except Exception as error:
        reason = f"{type(network).__name__} cannot be traced ({type(error).__name__}: {error})"
        warnings.warn(f"{reason}; some methods are not applicable", NotTraceable, stacklevel=2)
        return network
    for rewrite in (drop_inactive, redirect, separate, unfuse, expose, mark_gates):
        rewrite(model)
    # Before folding: what only an assertion looked at would pass for a second user.
    model.graph.eliminate_dead_code()
    fold(model)
    model.graph.lint()
    model.delete_all_unused_submodules()
    model.recompile()
    return model.eval()


def _traced(network: nn.Module) -> fx.GraphModule:
    """The graph of a network, with attention opened if it can be."""
    opened = open_attention(copy.deepcopy(network))
    try:
        return trace(opened)
    except Exception:  # an attention may have a mask
        return trace(network)
