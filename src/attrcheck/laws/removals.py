"""What holds for every removal: each law is a function of a removal and of images to cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from torch import Tensor

from attrcheck.removal import Removal

Keep: TypeAlias = Literal["half", "all", "none", "one", "most"]
CLOSE = 1e-4
"""In standard deviations: removed pixels that differ by more are not the same."""


@dataclass(frozen=True)
class Cut:
    """Normalised images [N, C, H, W], and which pixels of them are kept."""

    seed: int = 0
    count: int = 2
    channels: int = 3
    height: int = 4
    width: int = 4
    keep: Keep = "half"

    @cached_property
    def images(self) -> Tensor:
        """Noise: nothing in them is alike."""
        shape = (self.count, self.channels, self.height, self.width)
        return torch.from_numpy(self._rng("images").normal(size=shape)).float()

    @cached_property
    def kept(self) -> Tensor:
        """Where pixels are kept, [N, H, W] of bool."""
        draws = torch.from_numpy(self._rng("keep").random((self.count, self.height, self.width)))
        if self.keep == "one":
            return draws == draws.amax((1, 2), keepdim=True)
        share = {"all": 1.0, "none": 0.0, "half": 0.5, "most": 0.9}[self.keep]
        return draws < share

    @property
    def seeds(self) -> tuple[int, ...]:
        """One per image."""
        return tuple(1000 * self.seed + at for at in range(self.count))

    def by(
        self, removal: Removal, chosen: slice = slice(None), keep: Tensor | None = None
    ) -> Tensor:
        """Some of the images after a removal."""
        kept = self.kept if keep is None else keep
        return removal(self.images[chosen], kept[chosen], seeds=self.seeds[chosen])

    def _rng(self, purpose: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, *purpose.encode()])


KEEPS: tuple[Keep, ...] = get_args(Keep)
Law: TypeAlias = Callable[[Removal, Cut], None]


def laws_of(removal: Removal) -> Iterator[Law]:
    """The laws that bind a removal, by what it declares."""
    yield law_kept_pixels_stay_as_they_are
    yield law_keeping_all_changes_nothing
    yield law_removed_pixels_are_finite
    yield law_removing_again_gives_the_same
    yield law_removing_leaves_its_input_alone
    yield law_an_image_is_not_filled_from_others
    if removal.fixed:
        yield law_fixed_fillings_do_not_depend_on_what_is_kept


def law_kept_pixels_stay_as_they_are(removal: Removal, cut: Cut) -> None:
    """Not a bit of them changes."""
    kept = cut.kept[:, None].expand_as(cut.images)
    _same(cut.by(removal)[kept], cut.images[kept], "a kept pixel is changed", exact=True)


def law_keeping_all_changes_nothing(removal: Removal, cut: Cut) -> None:
    """The images come back as they were."""
    whole = cut.by(removal, keep=torch.ones_like(cut.kept))
    _same(whole, cut.images, "an image of which all is kept is changed", exact=True)


def law_removed_pixels_are_finite(removal: Removal, cut: Cut) -> None:
    """Whatever is kept, there is a picture: of the shape and type that the images have."""
    filled = cut.by(removal)
    shape, wanted = list(filled.shape), list(cut.images.shape)
    assert shape == wanted, f"images {wanted} become {shape}"
    assert filled.dtype == cut.images.dtype, f"{cut.images.dtype} becomes {filled.dtype}"
    assert bool(filled.isfinite().all()), "a removed pixel is not finite"


def law_removing_again_gives_the_same(removal: Removal, cut: Cut) -> None:
    """Random numbers come from the seeds of the images, and from nowhere else."""
    states = torch.get_rng_state(), np.random.get_state()
    filled = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)
        filled.append(cut.by(removal))
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])
    _same(filled[0], filled[1], "the second time the same removal gives something else", exact=True)


def law_removing_leaves_its_input_alone(removal: Removal, cut: Cut) -> None:
    """The images and what is to be kept are not written to."""
    images, kept = cut.images.clone(), cut.kept.clone()
    cut.by(removal)
    assert torch.equal(images, cut.images), "the removal changed the images that it was given"
    assert torch.equal(kept, cut.kept), "the removal changed the `keep` that it was given"


def law_an_image_is_not_filled_from_others(removal: Removal, cut: Cut) -> None:
    """Alone it becomes what it becomes among others."""
    together = cut.by(removal)
    for at in range(cut.count):
        alone = slice(at, at + 1)
        what = f"image {at} of {cut.count} becomes something else when it is alone"
        _same(cut.by(removal, alone), together[alone], what)


def law_fixed_fillings_do_not_depend_on_what_is_kept(removal: Removal, cut: Cut) -> None:
    """A removed pixel becomes what it becomes when all are removed, as `fixed` says."""
    gone = ~cut.kept[:, None].expand_as(cut.images)
    empty = cut.by(removal, keep=torch.zeros_like(cut.kept))
    _same(cut.by(removal)[gone], empty[gone], "what replaces a pixel depends on others")


def _same(one: Tensor, other: Tensor, what: str, exact: bool = False) -> None:
    assert one.shape == other.shape, f"{what}: {list(one.shape)} is not {list(other.shape)}"
    if not one.numel():
        return
    apart = float((one - other).abs().max())
    within = 0.0 if exact else CLOSE
    assert apart <= within, f"{what}, by up to {apart:.2g}"  # NaN is not within anything
