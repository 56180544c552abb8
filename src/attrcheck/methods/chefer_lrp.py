"""Chefer's relevance for transformers, the variant with relevance in place of the attention.

The earlier one of the two that Chefer et al. published in 2021, "Transformer Interpretability
Beyond Attention Visualization" (CVPR); `chefer` is the later one.
"""

from __future__ import annotations

import torch
from torch import Tensor, fx, nn

from attrcheck.methods import method
from attrcheck.methods._attention import Reader, needs_attention, summed
from attrcheck.methods._attention_lrp import CALLS, KINDS, uncovered
from attrcheck.methods._rules import ruled


def applies(model: nn.Module) -> str | None:
    """It must be a vision transformer, with a rule for all that follows its first attention."""
    if reason := needs_attention(model):
        return reason
    assert isinstance(model, fx.GraphModule)
    return uncovered(model)


@method(
    "chefer_lrp",
    family="transformer",
    passes=(4, 3),  # the gradient; and linear layers run forward three times, backward twice
    reference="Chefer et al. 2021 (CVPR)",
    not_applicable=applies,
    constant="zero everywhere if no attention speaks for the class",
)
def chefer_lrp(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """R = I, then R <- R + mean over heads of relu(r * df/dA) @ R, layer by layer.

    r is the relevance of the attention A: that of the target's logit, one, shared out by LRP. The
    class token's row at the patches, bilinearly enlarged.
    """
    reader, relevances = Reader(model), Reader(model, ruled(model, KINDS, CALLS))
    with torch.enable_grad():
        found = [
            torch.autograd.grad(each(images).gather(1, targets[:, None]).sum(), each.attention)
            for each in (reader, relevances)
        ]
    return reader.on_image(summed([a * b for a, b in zip(*found, strict=True)]), images)
