"""Small pictures for notebooks: images and maps as rows of one HTML table."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from torch import Tensor

from attrcheck.engine.exhibits import as_bytes, shrink
from attrcheck.engine.pictures import coloured, strip

MOST = 8
"""Images that are shown unasked."""
SIDE = 96
"""Pixels of a picture on the page."""
ROW = Markup('<tr><th style="text-align:left">{}</th><td style="text-align:left">{}</td></tr>')
PICTURE = Markup(
    '<img alt="{}" src="data:image/png;base64,{}" '
    'style="width:{}px;max-width:none;image-rendering:pixelated">'
)


def visible(images: Tensor) -> Tensor:
    """Images in [0, 1]: as they are if they lie there, else from their least value to their most.

    So images that are normalised by unknown numbers can be looked at too.
    """
    images = images.detach().float().cpu()
    low, high = images.min(), images.max()
    if low >= -0.01 and high <= 1.01:
        return images.clamp(0, 1)
    low, high = images.amin((1, 2, 3), keepdim=True), images.amax((1, 2, 3), keepdim=True)
    return (images - low) / (high - low).clamp_min(1e-12)


def strips(images: Tensor, maps: Mapping[str, NDArray[np.float32]], most: int = MOST) -> str:
    """The first images in a row, with the maps of each method in a row below."""
    rows = {"": as_bytes(shrink(visible(images[:most])))}
    rows.update({name: coloured(some[:most]) for name, some in maps.items()})
    lines = [ROW.format(name, _picture(row, name)) for name, row in rows.items()]
    more = f"<p>{most} of {len(images)} images</p>" if len(images) > most else ""
    return f"<table>{Markup().join(lines)}</table>{more}"


def _picture(pictures: NDArray[np.uint8], name: str) -> Markup:
    label = f"maps of {name}" if name else "images"
    data = base64.b64encode(strip(pictures)).decode()
    return PICTURE.format(label, data, len(pictures) * SIDE)
