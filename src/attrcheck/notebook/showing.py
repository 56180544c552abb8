"""`attrcheck.show`: images with the maps of methods beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from attrcheck.engine.exhibits import as_bytes
from attrcheck.notebook.attributing import Attribution
from attrcheck.notebook.inputs import Array, Numbers, images_of, maps_of, per_channel
from attrcheck.notebook.pictures import visible
from attrcheck.report.figures import Drawing, sheet


def show(
    images: Array,
    maps: Attribution | Array | Mapping[str, Attribution | Array] | Sequence[Attribution],
    *,
    labels: Sequence[str] = (),
    mean: Numbers | None = None,
    std: Numbers | None = None,
    most: int = 8,
) -> Drawing:
    """A figure of the first images, each with its maps beside it: `.savefig("maps.pdf")` keeps it.

    maps: of one method, or of several, by name. labels: text for each image. mean, std: what
    normalised the images; without, those outside [0, 1] go from their least value to their most.
    Signed maps are blue below zero and red above; each map has a scale of its own.
    """
    pixels = images_of(images, "images", given=True).cpu()
    if mean is not None or std is not None:
        pixels = pixels * _channels(1.0 if std is None else std, pixels) + _channels(
            0.0 if mean is None else mean, pixels
        )
    named = {name: maps_of(getattr(one, "maps", one), pixels)[:most] for name, one in _named(maps)}
    return sheet(as_bytes(visible(pixels[:most])), named, [str(label) for label in labels])


def _named(maps: Any) -> list[tuple[str, Any]]:
    if isinstance(maps, Mapping):
        return list(maps.items())
    several = [maps] if isinstance(maps, Attribution) else maps
    if isinstance(several, Sequence) and all(isinstance(one, Attribution) for one in several):
        return [(one.method, one) for one in several]
    return [("map", maps)]


def _channels(numbers: Numbers, images: torch.Tensor) -> torch.Tensor:
    values = per_channel(numbers, images.shape[1], "mean or std")
    return images.new_tensor(values).view(1, -1, 1, 1)
