"""Scenes: small worlds whose truth is known, in which laws are tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from torch import Tensor, nn

from attrcheck.contracts import Batch, Protocol, Retraining, Rows
from attrcheck.protocols.responses import responses

SIDE, CLASSES = 8, 3
CHECKERBOARD = 1.0 - 2 * ((torch.arange(SIDE)[:, None] + torch.arange(SIDE)) % 2)

Maps: TypeAlias = Literal["truth", "noise", "ties", "sparse", "negative", "some flat", "all flat"]
KINDS: tuple[Maps, ...] = get_args(Maps)


@dataclass(frozen=True)
class Scene:
    """Images [N, 3, 8, 8] in float64, their labels and masks, a linear model, and maps to score.

    An image is dim noise with a spot of a checkerboard in the channel of its class. The model looks
    for the checkerboard, with weights that vary a little from pixel to pixel: a spot that is
    blurred, imputed or averaged is as good as gone.
    """

    seed: int = 0
    count: int = 4
    maps: Maps = "noise"

    @cached_property
    def weights(self) -> Tensor:
        """The weight of each pixel in each logit, [classes, C, H, W]."""
        plain = torch.eye(CLASSES)[:, :, None, None] * CHECKERBOARD
        return plain + self._noise("weights", plain.shape) / 10

    @cached_property
    def model(self) -> nn.Module:
        """Logits are weighted sums of all pixels."""
        linear = nn.Linear(self.weights[0].numel(), CLASSES).double().requires_grad_(False)
        linear.weight.copy_(self.weights.flatten(1))
        linear.bias.copy_(self._noise("bias", (CLASSES,)) / 100)
        return nn.Sequential(nn.Flatten(), linear).eval()

    @cached_property
    def masks(self) -> Tensor:
        """Where the spots are, 2x2 pixels."""
        masks = torch.zeros(self.count, SIDE, SIDE, dtype=torch.bool)
        for mask, (y, x) in zip(masks, self._whole("spots", SIDE - 1, 2), strict=True):
            mask[y : y + 2, x : x + 2] = True
        return masks

    @cached_property
    def labels(self) -> Tensor:
        """The classes, which the model gets right as long as it sees the spot."""
        return self._whole("labels", CLASSES)

    @cached_property
    def images(self) -> Tensor:
        """Normalised: zero is the mean."""
        colours = torch.eye(CLASSES, dtype=torch.float64)[self.labels]
        spots = 3 * colours[:, :, None, None] * self.masks[:, None] * CHECKERBOARD
        return spots + self._noise("images", (self.count, CLASSES, SIDE, SIDE)) / 10

    @cached_property
    def chosen(self) -> Tensor:
        """Maps [N, H, W] of the kind that is asked for."""
        noise = self._noise("maps", (self.count, SIDE, SIDE)).float()
        if self.maps == "truth":
            return self.contributions(self.images)
        if self.maps == "ties":
            return noise.round()
        if self.maps == "sparse":
            return noise.clamp(min=1.5) - 1.5
        if self.maps == "negative":
            return -noise.abs()
        flat = {"some flat": self.count // 2, "all flat": self.count}.get(self.maps, 0)
        noise[:flat] = 0.1
        return noise

    def contributions(self, images: Tensor, chosen: slice | list[int] = slice(None)) -> Tensor:
        """What each pixel adds to the logit of the label: no map of the model could be better."""
        return (self.weights[self.labels[chosen]] * images).sum(1).float()

    def observe(
        self,
        protocol: Protocol,
        chosen: slice | list[int] = slice(None),
        bend: Callable[[Tensor], Tensor] = lambda maps: maps,
        truth: bool = False,
    ) -> Rows:
        """The rows of some of the images, under these maps or under the truth, bent."""

        def attribute(images: Tensor) -> Tensor:
            return bend(self.contributions(images, chosen))

        batch = self.batch(chosen, attribute)
        maps = attribute(batch.images) if truth else bend(self.chosen[chosen])
        shared = protocol.observe_shared(self.model, batch)
        return protocol.observe(self.observer(protocol), batch, maps, shared)

    def batch(
        self,
        chosen: slice | list[int] = slice(None),
        attribute: Callable[[Tensor], Tensor] | None = None,
    ) -> Batch:
        """Some of the images, as a protocol sees them."""
        images, labels = self.images[chosen], self.labels[chosen]
        return Batch(
            images=images,
            labels=labels,
            seeds=tuple((1000 * self.seed + np.arange(self.count)[chosen]).tolist()),
            intact=responses(self.model, images, labels),
            masks=self.masks[chosen],
            chance=1 / CLASSES,
            attribute=attribute or (lambda images: self.contributions(images, chosen)),
        )

    def observer(self, protocol: Protocol) -> nn.Module:
        """The model, or what a protocol retrains in its place; training changes nothing here."""
        if not protocol.training_images:
            return self.model
        seeds = tuple(range(self.count))
        maps = self.contributions(self.images)
        return protocol.retrain(Retraining(self.images, seeds, maps, lambda *given: self.model))

    def rng(self, purpose: str) -> np.random.Generator:
        """Independent random numbers for each purpose."""
        return np.random.default_rng([self.seed, *purpose.encode()])

    def _noise(self, purpose: str, shape: tuple[int, ...]) -> Tensor:
        return torch.from_numpy(self.rng(purpose).normal(size=shape))

    def _whole(self, purpose: str, below: int, *shape: int) -> Tensor:
        return torch.from_numpy(self.rng(purpose).integers(below, size=(self.count, *shape)))
