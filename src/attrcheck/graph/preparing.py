"""Prepare a network for attribution: rewrite a copy of its graph so that rules can act on it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx, nn

from attrcheck.errors import cut, line_of, text_of
from attrcheck.graph.attention import open_attention, unfuse
from attrcheck.graph.exposing import expose
from attrcheck.graph.nodes import NOT_TRACED
from attrcheck.graph.rewriting import drop_inactive, fold, mark_gates, redirect, separate
from attrcheck.graph.tracing import Leaf, Tracer, compare
from attrcheck.graph.windows import open_windows

OTHERS = tuple(str(Path(str(file)).parent) for file in (torch.__file__, Path(__file__).parent))
"""Where no author of a network writes."""


class NotTraceable(UserWarning):
    """A network that torch.fx cannot trace: methods that act on its graph are not applicable."""


def prepare(
    network: nn.Module,
    images: Tensor | None = None,
    leaf: Collection[Leaf] = (),
    concrete_args: Mapping[str, Any] | None = None,
) -> nn.Module:
    """A rewritten copy in eval mode that computes the same: an fx.GraphModule without gradients.

    Every activation and pooling is a module of its own, none in place; sums, products and
    concatenations of tensors are modules; what does nothing in eval mode is gone; batch norms
    that follow a convolution or a linear layer are folded into it; the softmax of every attention
    is a node.

    images: some of those that it will see; all others must be of their size. The network may then
    branch on sizes, and its graph is compared with it. leaf, concrete_args: see `Tracer`.
    """
    network = copy.deepcopy(network).eval().requires_grad_(False)
    for module in network.modules():
        # DenseNet's checkpointed path hides its layers from the graph.
        if getattr(module, "memory_efficient", False):
            module.memory_efficient = False  # type: ignore[assignment]
    tracer = Tracer(images, leaf, concrete_args)
    try:
        model = _rewritten(_traced(network, tracer))
        if images is not None:
            compare(network, model, images)
    except Exception as error:
        reason = _why(error, tracer)
        warnings.warn(
            f"{type(network).__name__} cannot be traced ({reason}); methods that act on its graph "
            "are not applicable, unless `leaf=` or `concrete_args=` of its decorator help",
            NotTraceable,
            stacklevel=2,
        )
        setattr(network, NOT_TRACED, reason)
        return network
    return model


def _traced(network: nn.Module, tracer: Tracer) -> fx.GraphModule:
    """The graph of a network, with attention opened if it can be."""
    opened = open_attention(copy.deepcopy(network))
    try:
        return tracer.graph_of(opened)
    except Exception:  # an attention may have a mask
        tracer.stuck_in = ""
        return tracer.graph_of(copy.deepcopy(network))


def _rewritten(model: fx.GraphModule) -> fx.GraphModule:
    for rewrite in (drop_inactive, redirect, separate, open_windows, unfuse, expose, mark_gates):
        rewrite(model)
    # Before folding: what only an assertion looked at would pass for a second user.
    model.graph.eliminate_dead_code()
    fold(model)
    model.graph.lint()
    model.delete_all_unused_submodules()
    model.recompile()
    return model.eval()


def _why(error: Exception, tracer: Tracer) -> str:
    """What could not be traced, and where."""
    line = line_of(error, lambda file: not file.startswith(OTHERS))
    place = " in ".join(filter(None, (tracer.stuck_in, line)))
    return cut(f"{type(error).__name__}: {text_of(error)}{place and f', at {place}'}")
