"""Removals: take pixels away, (images, keep) -> images."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrcheck.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Removal:
    """A registered removal: `remove(images, keep)`, keep [N, H, W] with 1 where a pixel is kept.

    It may ask, by the name of a keyword, for `seeds`, one int per image to draw random numbers
    from, so that what an image becomes does not depend on the others of its batch.
    fixed: what a removed pixel becomes does not depend on which others are kept.
    depends: what else it depends on, as "file:PATH", "env:NAME" or "package:NAME".
    """

    name: str
    remove: Callable[..., Tensor]
    fixed: bool = False
    depends: Sequence[str] = ()

    def __call__(
        self, images: Tensor, keep: Tensor, *, seeds: Sequence[int] | None = None, **settings: Any
    ) -> Tensor:
        """Images whose removed pixels are replaced."""
        if seeds is not None and self._asks_for_seeds:
            settings["seeds"] = tuple(seeds)
        return self.remove(images, keep, **settings)

    def of(self, images: Tensor, seeds: Sequence[int]) -> Callable[[Tensor], Tensor]:
        """The removal of these images, keep -> images, for many steps: nothing is done twice."""
        if not self.fixed:
            return lambda keep: self(images, keep, seeds=seeds)
        empty = self(images, images.new_zeros(images[:, 0].shape).bool(), seeds=seeds)
        # As `where`, but several times faster.
        return lambda keep: empty.lerp(images, keep[:, None].to(images.dtype))

    @cached_property
    def _asks_for_seeds(self) -> bool:
        return "seeds" in inspect.signature(self.remove).parameters


removal: Registry[Removal] = Registry("removal", Removal, __name__)


def __getattr__(name: str) -> Any:
    """`noisy_linear` as a function, imported with torch when it is asked for."""
    if name != "noisy_linear":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.imputing").noisy_linear
