"""Whether two networks behave alike on the same images: what fine-tuning has changed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attrcheck.methods.stages import grad_cam, needs_stage
from attrcheck.tensors.transfers import exact

BATCH = 250


def similarity(
    one: nn.Module, other: nn.Module, images: Tensor, labels: Tensor
) -> dict[str, float | None]:
    """How far two prepared networks are apart, all in [0, 1] with 0 for a network and itself.

    `label_probability` and `total_variation` compare outputs, `gradcam` the Grad-CAM maps for the
    label; the last is None where a network has no stage to make such maps of.
    """
    first, second = (_in_batches(_logits, network, images, labels) for network in (one, other))
    gradcam = None
    if not (needs_stage(one) or needs_stage(other)):
        maps = (_in_batches(grad_cam, network, images, labels) for network in (one, other))
        gradcam = map_difference(*maps)
    return {
        "label_probability": label_difference(first, second, labels),
        "total_variation": total_variation(first, second),
        "gradcam": gradcam,
    }


def label_difference(one: Tensor, other: Tensor, labels: Tensor) -> float:
    """Mean absolute difference of the softmax probability at the label, from logits [N, K].

    The label only: a mean over all classes shrinks with their number.
    """
    apart = _softmax(one) - _softmax(other)
    return float(apart.gather(1, labels[:, None].to(apart.device)).abs().mean())


def total_variation(one: Tensor, other: Tensor) -> float:
    """Mean total variation, half the L1 distance, of the softmax distributions of logits [N, K]."""
    return float((_softmax(one) - _softmax(other)).abs().sum(1).mean() / 2)


def map_difference(one: Tensor, other: Tensor) -> float:
    """Mean absolute difference of maps [N, H, W], each brought to [0, 1]."""
    return float((_min_max(one) - _min_max(other)).abs().mean())


def _softmax(logits: Tensor) -> Tensor:
    return exact(logits).softmax(1)


def _min_max(maps: Tensor) -> Tensor:
    """Each map from its minimum to its maximum; a constant one, which says nothing, is zero."""
    maps = exact(maps)
    low, high = maps.amin((1, 2), keepdim=True), maps.amax((1, 2), keepdim=True)
    spread = high - low
    return (maps - low) / torch.where(spread > 0, spread, 1)


def _logits(network: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    with torch.no_grad():
        logits: Tensor = network(images)
    return logits


def _in_batches(
    function: Callable[[nn.Module, Tensor, Tensor], Tensor],
    network: nn.Module,
    images: Tensor,
    labels: Tensor,
) -> Tensor:
    parts = zip(torch.split(images, BATCH), torch.split(labels, BATCH), strict=True)
    return torch.cat([function(network, *part) for part in parts])
