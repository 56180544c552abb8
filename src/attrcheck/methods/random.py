"""Random: the floor that every method must beat."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.methods import method


@method("random", family="dummy", passes=(0, 0), dummy=True)
def random(model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]) -> Tensor:
    """Uniform noise in [0, 1) from each image's own seed."""
    size = images.shape[2:]
    # Drawn on the CPU: generators of other devices give other numbers.
    noise = [torch.rand(size, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    return torch.stack(noise).to(images)
