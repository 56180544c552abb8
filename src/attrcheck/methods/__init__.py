"""Methods, the competitors: (model, images, targets) -> maps, one signed float a pixel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attrcheck.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor, nn

AFFORDABLE = 40
"""Forward passes an image that a method may cost to run unasked."""


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
    known_failures: checks that the method is known to fail, and why; passing one is then an error.
    axioms: those that it claims to keep, and within what relative error; see the check `axioms`.
    absolute_of: a method whose maps this one takes the absolute values of, so they are shared.
    default: whether it runs unasked in any profile but full; None: if its cost is small.
    family, reference: for people. passes: forward and backward passes that an image costs.
    """

    name: str
    attribute: Callable[..., Tensor]
    applies: Callable[[nn.Module], str | None] = lambda model: None
    constant: str = ""
    dummy: bool = False
    known_failures: Mapping[str, str] = field(default_factory=dict)
    axioms: Mapping[str, float] = field(default_factory=dict)
    absolute_of: str = ""
    default: bool | None = None
    family: str = "own"
    passes: tuple[int, int] = (1, 1)
    reference: str = ""

    @property
    def cost(self) -> int:
        """In forward passes; a backward pass takes about as long as two."""
        forward, backward = self.passes
        return forward + 2 * backward

    @property
    def affordable(self) -> bool:
        """Whether it runs unasked in any profile but full."""
        return self.cost <= AFFORDABLE if self.default is None else self.default


method = Registry(
    "method",
    Method,
    __name__,
    prefixes={"captum": f"{__name__}._captum", "gradcam": f"{__name__}._gradcam"},
)


def captum_method(name: str, **settings: Any) -> Callable[..., Tensor]:
    """A method from a class of Captum: `method("lime_200")(captum_method("Lime", n_samples=200))`.

    Settings go to the class or to its `attribute`; `stage` names the layer of a Layer class.
    """
    from attrcheck.methods._captum import adapt

    return adapt(name, **settings)


def gradcam_method(name: str, **settings: Any) -> Callable[..., Tensor]:
    """A method from a CAM class of pytorch-grad-cam: `gradcam_method("GradCAM", stage="layer3")`.

    Settings go to the class or to its call.
    """
    from attrcheck.methods._gradcam import adapt

    return adapt(name, **settings)
