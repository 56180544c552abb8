"""Maps as pictures in their full size: strips of PNG, one file for each method of a pair."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from attrcheck.store.files import write_whole

CIVIDIS = ("00224e", "3b496c", "707173", "a59c74", "e1cc55", "fee838")
DIVERGING = ("053061", "2166ac", "92c5de", "f7f7f7", "f4a582", "b2182b", "67001f")
"""From the lowest value to the highest: of maps without negatives, and of signed ones."""
IMAGES = "_images"
"""The name of the file of the images themselves, which no method can have."""


def path_of(pair: str, method: str) -> str:
    """The file of a method's maps in the folder of all."""
    # A colon, as in captum:Lime, is not allowed in file names everywhere.
    return f"{pair}/{method}.png".replace(":", "+")


def write(
    folder: Path, pair: str, images: NDArray[np.uint8], maps: Mapping[str, NDArray[np.float32]]
) -> None:
    """Write the images [N, H, W, C] of a pair and the maps [N, H, W] of its methods."""
    pictures = {IMAGES: images, **{name: coloured(some) for name, some in maps.items()}}
    for name, some in pictures.items():
        path = folder / path_of(pair, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, strip(some))


def coloured(maps: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Each map in colours of its own scale, [N, H, W, 3]; zero is white where any is negative."""
    scales = np.abs(maps).max(axis=(1, 2), keepdims=True)
    shares = maps / np.where(scales > 0, scales, 1.0)
    signed = bool((shares < 0).any())
    stops = np.array([list(bytes.fromhex(stop)) for stop in (DIVERGING if signed else CIVIDIS)])
    places = ((shares + 1) / 2 if signed else shares) * (len(stops) - 1)
    channels = [np.interp(places, np.arange(len(stops)), stops[:, k]) for k in range(3)]
    return np.asarray(np.rint(np.stack(channels, axis=-1)), dtype=np.uint8)


def strip(pictures: NDArray[np.uint8]) -> bytes:
    """Pictures [N, H, W, C] side by side, as PNG."""
    row = np.concatenate(list(pictures), axis=1)
    image = Image.fromarray(row[:, :, 0] if row.shape[2] == 1 else row)
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()
