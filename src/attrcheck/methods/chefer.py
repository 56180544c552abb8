"""Chefer's relevance for transformers, the generic variant that weighs attention by its gradient.

Of the two that Chefer et al. published in 2021 this is the later one, "Generic Attention-model
Explainability" (ICCV). `chefer_lrp` is the earlier one.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._attention import Reader, needs_attention, summed


@method(
    "chefer",
    family="transformer",
    passes=(1, 1),
    reference="Chefer et al. 2021 (ICCV)",
    not_applicable=needs_attention,
    constant="zero everywhere if no attention speaks for the class",
)
def chefer(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """R = I, then R <- R + mean over heads of relu(A * df/dA) @ R, layer by layer.

    The class token's row at the patches, bilinearly enlarged.
    """
    reader = Reader(model)
    with torch.enable_grad():
        logits = reader(images).gather(1, targets[:, None])
        gradients = torch.autograd.grad(logits.sum(), reader.attention)
    layers = [a.detach() * g for a, g in zip(reader.attention, gradients, strict=True)]
    return reader.on_image(summed(layers), images)
