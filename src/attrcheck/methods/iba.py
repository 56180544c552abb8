"""IBA: how many bits of each region the class needs (Schulz et al. 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.contracts import Dataset
from attrcheck.graph.halves import needs_middle
from attrcheck.methods import method
from attrcheck.methods._bottleneck import Halved, information
from attrcheck.tensors.batching import in_batches

STEPS, SAMPLES = 10, 10


@method(
    "iba",
    not_applicable=needs_middle,
    family="perturbation",
    # An upper bound: of the half before the bottleneck one pass is enough.
    passes=(STEPS * SAMPLES, STEPS * SAMPLES),
    reference="Schulz et al. 2020",
)
def iba(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    seeds: tuple[int, ...],
    dataset: Dataset,
) -> Tensor:
    """Bits that pass a bottleneck z = g r + (1 - g) noise at the middle of the model.

    The gate g minimises cross-entropy + 10 * mean KL(z | noise), where the noise is as features
    r of the dataset's first 100 images are; summed over channels and enlarged to the image.
    """
    return bottleneck_maps(model, images, targets, seeds, dataset, STEPS, SAMPLES)


def bottleneck_maps(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    seeds: tuple[int, ...],
    dataset: Dataset,
    steps: int,
    samples: int,
) -> Tensor:
    """The map of every image, as many images at once as go through the model at once."""
    images = images.detach()
    halved = Halved.of(model, images, dataset)

    def bits(part: slice) -> Tensor:
        draws = [torch.Generator().manual_seed(seed) for seed in seeds[part]]
        gate, normal = halved.bottleneck(images[part], targets[part], draws, steps, samples)
        found = information(gate, normal).sum(1, keepdim=True) / math.log(2)
        return F.interpolate(found, images.shape[2:], mode="bilinear", align_corners=False)[:, 0]

    return torch.cat(list(in_batches(bits, len(images), model, images)))
