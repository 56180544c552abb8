"""Datasets: held-out images with labels, normalisation and, where known, ground-truth masks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from attrcheck.errors import AttrcheckError
from attrcheck.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor


class DatasetError(AttrcheckError):
    """Images, labels, masks or normalisation that do not fit together."""


@dataclass(frozen=True)
class Dataset:
    """The evaluation split of a dataset, held in memory; `training` gives what models learn from.

    images [N, C, H, W] float32 in [0, 1]; labels [N] int64; masks [N, H, W] bool or None.
    Images come in a fixed order whose every prefix is a fair sample.
    """

    name: str
    images: Tensor
    labels: Tensor
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    ids: tuple[str, ...]
    masks: Tensor | None = None
    training: Callable[[], tuple[Tensor, Tensor]] | None = None

    def __post_init__(self) -> None:
        n = len(self.images)
        if not n:
            raise DatasetError(f"dataset {self.name!r}: there are no images")
        sizes = {"labels": len(self.labels), "ids": len(self.ids)}
        if self.masks is not None:
            sizes["masks"] = len(self.masks)
        for what, size in sizes.items():
            if size != n:
                raise DatasetError(f"dataset {self.name!r}: {n} images but {size} {what}")
        if self.images.ndim != 4 or not len(self.mean) == len(self.std) == self.channels:
            raise DatasetError(
                f"dataset {self.name!r}: images must be [N, C, H, W] with one mean and one std a "
                f"channel, not {list(self.images.shape)} with {len(self.mean)} and {len(self.std)}"
            )
        if self.masks is not None and self.masks.shape[1:] != self.images.shape[2:]:
            raise DatasetError(
                f"dataset {self.name!r}: masks must be {[n, *self.images.shape[2:]]}, "
                f"not {list(self.masks.shape)}"
            )
        bad = (self.labels < 0) | (self.labels >= self.classes)
        if bad.any():
            first = int(bad.nonzero()[0])
            raise DatasetError(
                f"dataset {self.name!r}: label {int(self.labels[first])} of image "
                f"{self.ids[first]!r} is not one of {self.classes} classes"
            )

    def __len__(self) -> int:
        return len(self.images)

    @property
    def channels(self) -> int:
        """The number of channels of an image."""
        return int(self.images.shape[1])

    def head(self, n: int | None) -> Dataset:
        """The first n images, or all."""
        if n is None or n >= len(self):
            return self
        masks = None if self.masks is None else self.masks[:n]
        return replace(
            self, images=self.images[:n], labels=self.labels[:n], ids=self.ids[:n], masks=masks
        )

    def normalise(self, images: Tensor) -> Tensor:
        """Images as a model wants them: zero is the dataset's mean."""
        shape = (1, -1, 1, 1)
        mean, std = images.new_tensor(self.mean), images.new_tensor(self.std)
        return (images - mean.view(shape)) / std.view(shape)

    @cached_property
    def fingerprint(self) -> str:
        """Changes when anything that evaluation sees changes."""
        from attrcheck.fingerprint import digest

        return digest(
            self.images, self.labels, self.masks, self.classes, self.mean, self.std, self.ids
        )


@dataclass(frozen=True)
class DatasetSpec:
    """A registered dataset: a name and the function that loads it.

    offers: what it has beside images and labels, `masks`, a `training` split, for protocols that
    need it; without it their cases are left out.
    """

    name: str
    load: Callable[[], Dataset]
    offers: tuple[str, ...] = ()


dataset = Registry("dataset", DatasetSpec, __name__)
