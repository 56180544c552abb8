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
    channels. It may ask, by the name of a keyword, for `seeds`, one int an image to draw random
    numbers from, and for the `dataset`, whose mean and std undo the normalisation.

    applies: says of a prepared model why the method cannot be right on it, or None where it can.
    constant: why a map may be constant; without this a constant map is an error.
    dummy: knows nothing of the model; sets the floor.
    family, reference: for people. passes: forward and backward passes that an image costs.
    """

    name: str
    attribute: Callable[..., Tensor]
    applies: Callable[[nn.Module], str | None] = lambda model: None
    constant: str = ""
    dummy: bool = False
    family: str = "own"
    passes: tuple[int, int] = (1, 1)
    reference: str = ""

    @property
    def cost(self) -> int:
        """In forward passes; a backward pass takes about as long as two."""
        forward, backward = self.passes
        return forward + 2 * backward


method = Registry("method", Method, __name__)
