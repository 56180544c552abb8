"""Pictures of several sizes, and what a network sees of one."""

import numpy as np
import torch
from PIL import Image

from attrcheck.contracts import Pictures
from attrcheck.datasets.pixels import pixels_of

SIZES = [(320, 240), (240, 321), (500, 333), (97, 64), (224, 224), (33, 401)]
"""Width and height: larger and smaller than networks want, odd and even, wide and tall."""


def picture(size, seed=0):
    """Noise with some structure, so that a shift by a pixel or another filter shows."""
    width, height = size
    values = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    values[: height // 2, : width // 2] //= 3
    return Image.fromarray(values)


def seen(image, preprocessing):
    """The same, normalised: what goes into the network."""
    mean, std = (torch.tensor(v).view(-1, 1, 1) for v in (preprocessing.mean, preprocessing.std))
    return (pixels_of(image, preprocessing) - mean) / std


def some_pictures(classes=3):
    """Pictures of which only the classes are looked at."""
    names = tuple(f"class_{index}" for index in range(classes))
    return Pictures("some", picture, str, (0,), ("a",), names)
