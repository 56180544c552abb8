"""Removals: take pixels away, (images, keep) -> images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrcheck.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Removal:
    """A registered removal: `remove(images, keep)`, keep [N, 1, H, W] bool, True where kept."""

    name: str
    remove: Callable[[Tensor, Tensor], Tensor]


removal = Registry("removal", Removal, __name__)
