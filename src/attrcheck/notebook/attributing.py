"""`attrcheck.attribute`: the maps of one method, checked as in a run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Method
from attrcheck.engine.attribution import attribute as run_method
from attrcheck.engine.attribution import not_applicable
from attrcheck.engine.finding import base_of
from attrcheck.notebook.inputs import NAME, Array, InputError, Numbers, method_of, pair_for
from attrcheck.notebook.pictures import strips
from attrcheck.report.line import Line


@dataclass(frozen=True, eq=False)
class Attribution:
    """The maps [N, H, W] of a method, signed, and the images that they are of.

    images: [N, C, H, W] before the model's normalisation, as far as that is known. seconds: per
    image.
    """

    method: str
    maps: Tensor
    images: Tensor
    targets: Tensor
    seconds: float
    source: Method = field(repr=False)

    def __len__(self) -> int:
        return len(self.maps)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.float32]:
        array: NDArray[np.float32] = self.maps.numpy()
        return np.array(array, dtype=dtype) if copy or dtype is not None else array

    def __repr__(self) -> str:
        low, high = self.maps.min().item(), self.maps.max().item()
        return (
            f"Attribution({self.method!r}, maps {list(self.maps.shape)} from {low:.4g} to "
            f"{high:.4g}, {self.seconds:.3g} s an image)"
        )

    def _repr_html_(self) -> str:
        """The first images with their maps below them."""
        return strips(self.images, {self.method: self.maps.numpy()})


def attribute(
    method: str | Method | Callable[..., Any],
    model: nn.Module,
    images: Array,
    targets: Any,
    *,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    background: Array | None = None,
    ids: Sequence[str] | None = None,
    name: str = NAME,
    seed: int = 0,
    quiet: bool = False,
) -> Attribution:
    """The maps of a method, by its name or as `function(model, images, targets)`.

    model: any network that maps images to logits, in eval mode; the method works on a copy. images:
    [N, C, H, W] as the model takes them. targets: one class per image. mean, std: what normalised
    the images, for methods that look at their colours and for people. background: images that some
    methods compare with; default: these. ids, name, seed: what random numbers are drawn from; those
    of a case, as name="digits-resnet", give its very maps.

    >>> import torch, attrcheck
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2)).eval()
    >>> images = torch.linspace(-1, 1, 48).view(3, 1, 4, 4)
    >>> attrcheck.attribute("saliency", model, images, [0, 1, 1]).maps.shape
    torch.Size([3, 4, 4])
    """
    chosen = method_of(method)
    settings: dict[str, Any] = {"mean": mean, "std": std, "ids": ids, "name": name}
    with progress(f"attribute {chosen.name}", quiet) as say:
        pair = pair_for(model, images, targets, **settings, background=background, say=say)
        if reason := not_applicable(chosen, pair):
            raise InputError(f"method {chosen.name!r} is not applicable: {reason}")
        base = base_of(chosen)
        entry = run_method(base or chosen, pair, seed)
    maps = np.asarray(entry.arrays["maps"], dtype=np.float32)
    return Attribution(
        method=chosen.name,
        maps=torch.from_numpy(np.abs(maps) if base else maps),
        images=pair.dataset.images[:].cpu(),
        targets=pair.dataset.labels,
        seconds=entry.info["seconds"] / len(maps),
        source=chosen,
    )


@contextmanager
def progress(what: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line that says how far something is, on a terminal or in a notebook."""
    with Line(sys.stderr, watched="ipykernel" in sys.modules) as line:
        yield lambda text: None if quiet else line.show(f"{what}: {text}")
