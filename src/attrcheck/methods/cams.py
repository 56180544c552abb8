"""Class activation maps: weighted sums of the activations of a stage, enlarged to the image."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods.noise import OURS, Noise, noisy
from attrcheck.methods.stages import (
    ALL_ZERO,
    combine,
    grad_cam,
    needs_stage,
    stage_activations,
    stage_tensors,
)
from attrcheck.tensors.batching import in_batches
from attrcheck.tensors.images import enlarge

CHANNELS = 128
"""Of the last stage of the widest embedded families; a map costs one pass per channel, and one."""


@method(
    "gradcam",
    family="cam",
    passes=(1, 1),
    reference="Selvaraju et al. 2017",
    not_applicable=needs_stage,
    constant=ALL_ZERO,
)
def gradcam(
    model: nn.Module, images: Tensor, targets: Tensor, *, stage: str | None = None
) -> Tensor:
    """relu(sum over k of A_k * mean of df/dA_k) at the last stage, of maps or of tokens."""
    return grad_cam(model, images, targets, stage)


@method(
    "gradcam_pp",
    family="cam",
    passes=(1, 1),
    reference="Chattopadhay et al. 2018",
    not_applicable=needs_stage,
    constant=ALL_ZERO,
)
def gradcam_pp(
    model: nn.Module, images: Tensor, targets: Tensor, *, stage: str | None = None
) -> Tensor:
    """relu(sum of w_k A_k), w_k = sum of g^2 / (2 g^2 + g^3 sum of A_k) * relu(g), g = df/dA_k.

    As published, the derivatives are those of exp(f): where f is piecewise linear in A the n-th is
    exp(f) g^n. exp(f) drops out of the ratio, and would scale the map as a whole. A sum of
    rectified A_k is never negative; one that is counts as zero, so that the ratio stays finite.
    """
    activations, g = stage_tensors(model, images, targets, stage)
    total = activations.sum((2, 3), keepdim=True)
    weights = (g.relu() / (2 + (g * total).relu())).sum((2, 3), keepdim=True)
    return combine(weights, activations, images)


@method(
    "layercam",
    family="cam",
    passes=(1, 1),
    reference="Jiang et al. 2021",
    not_applicable=needs_stage,
    constant=ALL_ZERO,
)
def layercam(
    model: nn.Module, images: Tensor, targets: Tensor, *, stage: str | None = None
) -> Tensor:
    """relu(sum over k of A_k * relu(df/dA_k)): every cell has its own weight."""
    activations, gradients = stage_tensors(model, images, targets, stage)
    return combine(gradients.relu(), activations, images)


@method(
    "xgradcam",
    default=False,
    family="cam",
    passes=(1, 1),
    reference="Fu et al. 2020",
    not_applicable=needs_stage,
    constant=ALL_ZERO,
)
def xgradcam(
    model: nn.Module, images: Tensor, targets: Tensor, *, stage: str | None = None
) -> Tensor:
    """relu(sum of w_k A_k), w_k = the mean of df/dA_k weighted by A_k; nothing for a dead map."""
    activations, gradients = stage_tensors(model, images, targets, stage)
    total = activations.sum((2, 3), keepdim=True)
    weighted = (activations * gradients).sum((2, 3), keepdim=True)
    return combine(torch.where(total == 0, 0, weighted / total), activations, images)


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


@method(
    "smooth_gradcam_pp",
    family="cam",
    passes=(OURS.samples, OURS.samples),
    reference="Omeiza et al. 2019",
    not_applicable=needs_stage,
    constant=ALL_ZERO,
)
def smooth_gradcam_pp(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    seeds: tuple[int, ...],
    stage: str | None = None,
    noise: Noise = OURS,
) -> Tensor:
    """The mean of Grad-CAM++ maps over 16 noisy copies of the image.

    Maps, not derivatives alone: behind a global mean and a linear head these know no noise.
    """
    return noisy(partial(gradcam_pp, stage=stage), model, images, targets, seeds, noise)
