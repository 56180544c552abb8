"""Superpixels, and what a model says of images in which some of them are missing."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.tensors.batching import in_batches

CELLS = 7
"""Superpixels start as a grid of CELLS x CELLS."""
ROUNDS = 10
COMPACTNESS = 0.1
"""A difference in colour, of [0, 1], that counts as much as a distance of one cell."""


def superpixels(image: Tensor, cells: int = CELLS) -> Tensor:
    """Labels [H, W], 0 to K - 1, of regions alike in place and colour; image [C, H, W] in [0, 1].

    The clustering of SLIC (Achanta et al. 2012) in RGB, without joining what falls apart: k-means
    over places in units of a cell and colours over COMPACTNESS, from a regular grid.
    """
    image = image.detach().cpu()
    height, width = image.shape[1:]
    down, right = min(cells, height), min(cells, width)
    rows = (torch.arange(height) + 0.5) * down / height
    columns = (torch.arange(width) + 0.5) * right / width
    place = torch.stack(torch.meshgrid(rows, columns, indexing="ij"))
    points = torch.cat([place, image / COMPACTNESS]).flatten(1).T
    labels = (rows.long()[:, None] * right + columns.long()).flatten()
    for _ in range(ROUNDS):
        sizes = labels.bincount()[:, None]
        centres = points.new_zeros(len(sizes), points.shape[1]).index_add(0, labels, points) / sizes
        labels = _without_gaps(torch.cdist(points, centres).argmin(1))
    return labels.view(height, width)


def _without_gaps(labels: Tensor) -> Tensor:
    """The same groups, numbered from zero on."""
    used = labels.bincount() > 0
    return (used.cumsum(0) - 1)[labels]


def denormalised(images: Tensor, dataset: Dataset) -> Tensor:
    """Images in [0, 1] again."""
    mean, std = (
        images.new_tensor(value).view(1, -1, 1, 1) for value in (dataset.mean, dataset.std)
    )
    return images * std + mean


def game(
    model: nn.Module, image: Tensor, target: Tensor, labels: Tensor, coalitions: Tensor
) -> Tensor:
    """Logits [S], in double precision, with the superpixels present that coalitions [S, K] say.

    The others become zero.
    """
    labels = labels.to(image.device)

    def logits(part: slice) -> Tensor:
        keep = coalitions[part].to(image)[:, labels]
        with torch.no_grad():
            found: Tensor = model(image * keep[:, None])
        return found[:, target]

    return torch.cat(list(in_batches(logits, len(coalitions), model, image[None]))).double().cpu()


def spread(values: Tensor, labels: Tensor) -> Tensor:
    """A superpixel's value in equal shares to its pixels: a map with the same sum."""
    return (values / labels.flatten().bincount())[labels]
