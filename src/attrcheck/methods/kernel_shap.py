"""KernelSHAP on superpixels (Lundberg and Lee 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._superpixels import denormalised, game, spread, superpixels

SAMPLES = 256


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
) -> Tensor:
    """Shapley values of superpixels in the game of the target's logit, spread over their pixels.

    By regression on 256 coalitions; absent superpixels are zero. The map sums to f(x) - f(0).
    """
    return shapley_maps(model, images, targets, seeds, dataset, SAMPLES)


def shapley_maps(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    seeds: tuple[int, ...],
    dataset: Dataset,
    samples: int,
) -> Tensor:
    """The map of every image from its own coalitions."""
    maps = []
    regions = map(superpixels, denormalised(images, dataset))
    for image, target, labels, seed in zip(images.detach(), targets, regions, seeds, strict=True):
        generator = torch.Generator().manual_seed(seed)
        players = int(labels.max()) + 1
        drawn = draw_coalitions(players, samples, generator)
        ends = torch.stack([torch.zeros(players), torch.ones(players)]).bool()
        empty, full, *values = game(model, image, target, labels, torch.cat([ends, drawn]))
        weights = torch.ones(len(drawn), dtype=torch.float64)
        found = shapley_values(drawn, weights, torch.stack(values) - empty, full - empty)
        maps.append(spread(found, labels))
    return torch.stack(maps).to(images)


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
    found = torch.linalg.lstsq(free * scale[:, None], rest * scale, driver="gelsd").solution
    return torch.cat([found, (total - found.sum())[None]])
