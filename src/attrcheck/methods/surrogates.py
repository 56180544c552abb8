"""LIME and KernelSHAP: linear models of what the network says without some superpixels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.tensors.batching import in_batches
from attrcheck.tensors.transfers import exact, sent

CELLS = 7
"""Superpixels start as a grid of CELLS x CELLS."""
ROUNDS = 10
COMPACTNESS = 0.1
"""A difference in colour, of [0, 1], that counts as much as a distance of one cell."""
SAMPLES = 256
WIDTH = 0.25
"""Width of the kernel over cosine distances from the whole image."""
RIDGE = 1.0
"""Penalty on squared coefficients."""

Draw = Callable[[int, torch.Generator], Tensor]
"""Coalitions [S, K] of so many superpixels."""
Solve = Callable[[Tensor, Tensor], Tensor]
"""The value of every superpixel, from coalitions and their logits."""


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


def game(
    model: nn.Module, image: Tensor, target: Tensor, labels: Tensor, coalitions: Tensor
) -> Tensor:
    """Logits [S], in double precision, with the superpixels present that coalitions [S, K] say.

    The others become zero.
    """
    labels, coalitions = (sent(part, image.device) for part in (labels, coalitions))

    def logits(part: slice) -> Tensor:
        keep = coalitions[part].to(image.dtype)[:, labels]
        with torch.no_grad():
            outputs: Tensor = model(image * keep[:, None])
        return outputs.index_select(1, target.view(1))[:, 0]

    return exact(torch.cat(list(in_batches(logits, len(coalitions), model, image[None]))))


def spread(values: Tensor, labels: Tensor) -> Tensor:
    """A superpixel's value in equal shares to its pixels: a map with the same sum."""
    return (values / labels.flatten().bincount())[labels]


def maps_of(
    draw: Draw,
    solve: Solve,
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    seeds: tuple[int, ...],
    dataset: Dataset,
) -> Tensor:
    """The map of every image from the values of its superpixels.

    All games are played before the first is solved, so that a GPU is not waited for in between.
    """
    regions = [superpixels(image) for image in dataset.denormalise(images).detach().cpu()]
    drawn = [
        draw(int(labels.max()) + 1, torch.Generator().manual_seed(seed))
        for labels, seed in zip(regions, seeds, strict=True)
    ]
    games = zip(images.detach(), targets, regions, drawn, strict=True)
    played = torch.cat([game(model, *one) for one in games]).cpu()
    values = map(solve, drawn, torch.split(played, [len(coalitions) for coalitions in drawn]))
    return sent(torch.stack([*map(spread, values, regions)]), images)


@method("lime", family="perturbation", passes=(SAMPLES, 0), reference="Ribeiro et al. 2016")
def lime(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    seeds: tuple[int, ...],
    dataset: Dataset,
    samples: int = SAMPLES,
) -> Tensor:
    """Coefficients of a local linear model of the target's logit, spread over superpixels' pixels.

    By ridge regression on 256 samples in which every superpixel is zero with probability 1/2.
    """

    def draw(players: int, generator: torch.Generator) -> Tensor:
        present = torch.rand(samples, players, generator=generator) < 0.5
        present[0] = True
        return present

    return maps_of(draw, local_coefficients, model, images, targets, seeds, dataset)


def local_coefficients(present: Tensor, values: Tensor) -> Tensor:
    """Ridge regression with intercept, weighted by nearness to the whole image.

    The weight is exp(-(d / WIDTH)^2 / 2), where d = 1 - sqrt(share that is present) is the cosine
    distance from the whole.
    """
    present = present.double()
    distance = 1 - present.mean(1).sqrt()
    weights = torch.exp(-((distance / WIDTH) ** 2) / 2)
    shares = weights / weights.sum()
    centred = present - shares @ present
    gram = centred.T @ (weights[:, None] * centred)
    moment = centred.T @ (weights * (values - shares @ values))
    gram.diagonal().add_(RIDGE)
    coefficients: Tensor = torch.linalg.solve(gram, moment)
    return coefficients


@method(
    "kernel_shap",
    axioms={"completeness": 1e-3},
    family="perturbation",
    passes=(SAMPLES + 2, 0),
    reference="Lundberg and Lee 2017",
)
def kernel_shap(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    seeds: tuple[int, ...],
    dataset: Dataset,
    samples: int = SAMPLES,
) -> Tensor:
    """Shapley values of superpixels in the game of the target's logit, spread over their pixels.

    By regression on 256 coalitions; absent superpixels are zero. The map sums to f(x) - f(0).
    """

    def draw(players: int, generator: torch.Generator) -> Tensor:
        drawn = draw_coalitions(players, samples, generator)
        ends = torch.stack([torch.zeros(players), torch.ones(players)]).bool()
        return torch.cat([ends, drawn])

    def shares(coalitions: Tensor, values: Tensor) -> Tensor:
        empty, full = values[:2]
        weights = torch.ones(len(coalitions) - 2, dtype=torch.float64)
        return shapley_values(coalitions[2:], weights, values[2:] - empty, full - empty)

    return maps_of(draw, shares, model, images, targets, seeds, dataset)


def draw_coalitions(players: int, samples: int, generator: torch.Generator) -> Tensor:
    """Coalitions [samples, players] as often as the Shapley kernel weighs them, in pairs of
    complements: of size s with probability in proportion to 1 / (s (players - s))."""
    sizes = torch.arange(1, players)
    pairs = -(-samples // 2)
    chosen = (1 / (sizes * (players - sizes))).multinomial(pairs, True, generator=generator)
    ranks = torch.rand(pairs, players, generator=generator).argsort(1).argsort(1)
    drawn = ranks < sizes[chosen][:, None]
    return torch.stack([drawn, ~drawn], 1).flatten(0, 1)[:samples]


def shapley_values(coalitions: Tensor, weights: Tensor, values: Tensor, total: Tensor) -> Tensor:
    """The additive game that is nearest, by weighted squares, to values v(S) - v(empty), and
    whose players share `total`.

    The least norm solution, should there be fewer coalitions than players.
    """
    present = coalitions.double()
    # The last player gets what the others leave, which makes the constraint hold by itself.
    free = present[:, :-1] - present[:, -1:]
    rest = values - total * present[:, -1]
    scale = weights.sqrt()
    shares = torch.linalg.lstsq(free * scale[:, None], rest * scale, driver="gelsd").solution
    return torch.cat([shares, (total - shares.sum())[None]])
