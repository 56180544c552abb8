"""Attention rollout (Abnar and Zuidema 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._attention import Reader, needs_attention


def rollout(attention: list[Tensor]) -> Tensor:
    """Product over layers, the last one first, of (mean over heads of A + I) / 2: [N, T, T]."""
    identity = torch.eye(attention[0].shape[-1]).to(attention[0])
    total = identity
    for weights in attention:
        total = (weights.mean(1) + identity) / 2 @ total
    return total


@method(
    "attention_rollout",
    family="transformer",
    passes=(1, 0),
    reference="Abnar and Zuidema 2020",
    not_applicable=needs_attention,
)
def attention_rollout(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """How much of each patch reaches the class token, were attention all that moves content.

    Bilinearly enlarged. The same for every target: attention does not know the class.
    """
    reader = Reader(model)
    with torch.no_grad():
        reader(images)
    return reader.on_image(rollout(reader.attention), images)
