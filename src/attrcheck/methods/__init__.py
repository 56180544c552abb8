"""Methods, the competitors: (model, images, targets) -> maps, one signed float a pixel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrcheck.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class Method:
    """A registered method.

    `attribute(model, images, targets)` gets the prepared model, normalised images (zero is the
    dataset's mean) and class indices, and returns [N, H, W], or [N, C, H, W], which is summed over
    channels. It may ask by name for `seeds`, one int an image, to draw its random numbers from.

    applies: says of a prepared model why the method cannot be right on it, or None where it can.
    constant: why a map may be constant; without this a constant map is an error.
    dummy: knows nothing of the model; sets the floor.
    """

    name: str
    attribute: Callable[..., Tensor]
    applies: Callable[[nn.Module], str | None] = lambda model: None
    constant: str = ""
    dummy: bool = False


method = Registry("method", Method, __name__)
