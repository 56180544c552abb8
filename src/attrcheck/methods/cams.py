"""Class activation maps: weighted sums of the activations of a stage, enlarged to the image."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, fx, nn

from attrcheck.graph.tails import Tail
from attrcheck.methods import method
from attrcheck.methods.noise import OURS, Noise, noisy
from attrcheck.methods.stages import (
    ALL_ZERO,
    combine,
    grad_cam,
    needs_stage,
    stage_activations,
    stage_maps,
    stage_of,
    stage_tensors,
)
from attrcheck.tensors.batching import in_batches, samples_at_once
from attrcheck.tensors.images import enlarge

CHANNELS = 128
"""Of the last stage of the widest embedded families; a map costs one pass per channel, and one."""
TAILS = 16
"""Passes that take as long as those of what follows the last stage, one per channel: the most of
the embedded families."""
ROUNDS, POWER = 3, 8
"""A matrix is taken to this power to find its first eigenvector, and again if need be."""
REST = 5e-4
"""How much of a power the second eigenvalue may be: the next square leaves rounding of it."""
TINY = 1e-12
"""The least length of a vector that is told from zero."""


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


@method(
    "ablation_cam",
    default=False,
    family="cam",
    passes=(TAILS + 1, 0),
    reference="Desai and Ramaswamy 2020",
    not_applicable=needs_stage,
    constant=ALL_ZERO,
)
def ablation_cam(
    model: nn.Module, images: Tensor, targets: Tensor, *, stage: str | None = None
) -> Tensor:
    """relu(sum of w_k A_k), w_k = f(x) - f(x with A_k = 0): what the class loses without it.

    Dividing by f(x), as published, would scale the map as a whole, and turn it over below zero.
    """
    node, layout = stage_of(model, images, stage)
    assert isinstance(model, fx.GraphModule)
    # As many copies of each image as fill a batch, each without a channel of its own.
    copies = max(1, samples_at_once(model, images) // len(images))

    def cams(part: slice) -> Tensor:
        some, chosen = (tensor[part].repeat_interleave(copies, 0) for tensor in (images, targets))
        tail = Tail(model, node, some.detach())
        activations = layout.maps(tail.values)
        channels = activations.shape[1]
        numbers = torch.arange(channels, device=images.device)
        drops = []
        for first in range(0, channels, copies):
            ablated = first + torch.arange(len(some), device=images.device) % copies
            kept = (numbers != ablated[:, None])[:, :, None, None]
            logits = tail.logits_of(layout.put(activations * kept, tail.values))
            drop = (tail.logits - logits).gather(1, chosen[:, None])
            drops.append(drop.view(-1, copies))
        weights = torch.cat(drops, 1)[:, :channels, None, None]
        return combine(weights, activations[::copies], images)

    with torch.no_grad():
        return torch.cat(list(in_batches(cams, len(images), model, images)))


@method(
    "eigencam",
    default=False,
    family="cam",
    passes=(1, 0),
    reference="Muhammad and Yeasin 2020",
    not_applicable=needs_stage,
    constant="the same everywhere if all cells of the stage are alike",
)
def eigencam(
    model: nn.Module, images: Tensor, targets: Tensor, *, stage: str | None = None
) -> Tensor:
    """sum over k of v_k A_k, v = the first right singular vector of A [cells, channels].

    Of no class. v is known up to its sign, which is chosen so that the map's sum is not negative;
    where no A_k is negative, no cell is. As published, A is not centred.
    """
    with torch.no_grad():
        return enlarge(principal(stage_maps(model, images, stage)), images)


def principal(activations: Tensor) -> Tensor:
    """Maps [N, K, h, w] projected on their first right singular vector: [N, h, w]."""
    cells = activations.flatten(2)
    # The smaller of the two matrices of products: its first eigenvector is singular on that side.
    few_cells = cells.shape[2] <= cells.shape[1]
    vector = first_eigenvector(cells.mT @ cells if few_cells else cells @ cells.mT)
    if few_cells:
        vector = cells @ vector
    # Projected last, so that cells that are alike stay so, and those that are zero.
    projections = (vector * cells).sum(1)
    length = torch.linalg.vector_norm(vector, dim=1).clamp_(min=TINY)
    projections /= length.copysign_(projections.sum(1, keepdim=True))
    return projections.view(len(activations), *activations.shape[2:])


def first_eigenvector(matrices: Tensor) -> Tensor:
    """Of the largest eigenvalue of matrices [N, n, n] that have none below zero: [N, n, 1].

    Of any length. A high power of a matrix is a multiple of v v^T, with v in every column. It takes
    a fraction of the time of a decomposition, which is left to matrices whose two largest
    eigenvalues hardly differ, and to those that are zero.
    """
    powers = matrices
    for _ in range(ROUNDS):
        powers = torch.linalg.matrix_power(powers / powers.amax((1, 2), keepdim=True), POWER)
        # The eigenvalues' sum, and the root of the sum of their squares: the same if one is left.
        diagonals = powers.diagonal(dim1=1, dim2=2)
        settled = torch.linalg.vector_norm(powers, dim=(1, 2)) > diagonals.sum(1).mul_(1 - REST)
        if all_settled := bool(settled.all()):
            break
    largest = powers[torch.arange(len(powers), device=powers.device), diagonals.argmax(1), None]
    vectors = (powers * largest).sum(2, keepdim=True)
    if all_settled:
        return vectors
    first = torch.linalg.eigh(matrices).eigenvectors[:, :, -1:]
    return torch.where(settled[:, None, None], vectors, first)
