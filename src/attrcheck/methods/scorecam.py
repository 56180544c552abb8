"""Score-CAM (Wang et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._cam import ALL_ZERO, combine, enlarge, needs_stage, stage_activations
from attrcheck.tensors.batching import in_batches

CHANNELS = 128
"""Of the last stage of the widest embedded families; a map costs one pass a channel, and one."""


@method(
    "scorecam",
    family="cam",
    passes=(CHANNELS + 1, 0),
    reference="Wang et al. 2020",
    not_applicable=needs_stage,
    constant=ALL_ZERO,
)
def scorecam(
    model: nn.Module, images: Tensor, targets: Tensor, *, stage: str | None = None
) -> Tensor:
    """relu(sum of w_k A_k), w = softmax over k of f(x * M_k), M_k = A_k enlarged, scaled to [0, 1].

    Subtracting f of the blank image, as published, changes no softmax. A constant A_k has no M_k.
    """
    with torch.no_grad():
        activations, _ = stage_activations(model, images, stage)
        channels = activations.shape[1]
        rows = torch.arange(len(images) * channels, device=images.device)

        def scores(part: slice) -> Tensor:
            image, channel = rows[part] // channels, rows[part] % channels
            masks, defined = _scaled(enlarge(activations[image, channel], images))
            logits = model(images[image] * masks[:, None])
            chosen = logits.gather(1, targets[image, None])[:, 0]
            return torch.where(defined, chosen, -torch.inf)

        score = torch.cat(list(in_batches(scores, len(rows), model, images)))
        # Where every map is constant the softmax is undefined, and the CAM says nothing.
        weights = score.view(len(images), channels, 1, 1).softmax(1).nan_to_num(0)
        return combine(weights, activations, images)


def _scaled(maps: Tensor) -> tuple[Tensor, Tensor]:
    """Maps scaled to [0, 1], and which of them are not constant."""
    low, high = maps.amin((1, 2), keepdim=True), maps.amax((1, 2), keepdim=True)
    defined = high > low
    return torch.where(defined, (maps - low) / (high - low), 0), defined[:, 0, 0]
