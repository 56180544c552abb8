"""Pictures of several sizes, and what a network sees of one."""

import numpy as np
import torch
from PIL import Image

from attrcheck.contracts import Pictures

SIZES = [(320, 240), (240, 321), (500, 333), (97, 64), (224, 224), (33, 401)]
"""Width and height: larger and smaller than networks want, odd and even, wide and tall."""


def picture(size, seed=0):
    """Noise with some structure, so that a shift by a pixel or another filter shows."""
    width, height = size
    values = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    values[: height // 2, : width // 2] //= 3
    return Image.fromarray(values)


def pixels_of(image, preprocessing):
    """Resize, cut out the middle, [C, H, W] in [0, 1]."""
    width, height = image.size
    resize, (tall, wide) = preprocessing.resize, preprocessing.size
    filter_ = Image.Resampling[preprocessing.interpolation.upper()]
    if isinstance(resize, int):
        short, long = min(width, height), max(width, height)
        longer = int(resize * long / short)
        resize = (longer, resize) if height >= width else (resize, longer)
    if resize is not None and resize != (height, width):
        image = image.resize((resize[1], resize[0]), filter_)
    width, height = image.size
    left, top = round((width - wide) / 2), round((height - tall) / 2)
    image = image.crop((left, top, left + wide, top + tall))
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


def seen(image, preprocessing):
    """The same, normalised: what goes into the network."""
    mean, std = (torch.tensor(v).view(-1, 1, 1) for v in (preprocessing.mean, preprocessing.std))
    return (pixels_of(image, preprocessing) - mean) / std


def some_pictures(classes=3):
    """Pictures of which only the classes are looked at."""
    names = tuple(f"class_{index}" for index in range(classes))
    return Pictures("some", picture, str, (0,), ("a",), names)
