"""What tests of dummies share: images, brightness by hand, windows around a pixel."""

import functools
from pathlib import Path

import numpy as np
import torch

from attrcheck.contracts import Dataset
from attrcheck.methods import method

DUMMIES = [name for name in method if method.get(name).dummy]


LOOKING = [name for name in DUMMIES if name != "random" and not name.startswith("gaussian")]


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@functools.cache
def published():
    """Arrays of the reproduction: images, and its dummy maps with their faults."""
    with np.load(Path(__file__).parents[1] / "data" / "dummies.npz") as file:
        return {name: file[name] for name in file}


def dataset(channels=3, side=32):
    image, label = torch.zeros(1, channels, side, side), torch.zeros(1, dtype=torch.int64)
    return Dataset("d", image, label, 2, MEAN[:channels], STD[:channels], ("d/0",))


def attribute(name, images):
    """The maps of normalised images."""
    spec = method.get(name)
    targets = torch.zeros(len(images), dtype=torch.int64)
    if name == "random":
        return spec.attribute(None, images, targets, seeds=tuple(range(len(images))))
    if name.startswith("gaussian"):
        return spec.attribute(None, images, targets)
    data = dataset(images.shape[1], images.shape[2])
    return spec.attribute(None, images, targets, dataset=data)


def noise(side, count=2, channels=3, width=None):
    """Unit images, and the same ones normalised."""
    generator = torch.Generator().manual_seed(3)
    unit = torch.rand(count, channels, side, width or side, generator=generator)
    return unit, normalised(unit)


def normalised(unit):
    return dataset(unit.shape[1]).normalise(unit)


def grey(unit):
    return unit.double().mean(1).numpy()


def close(found, wanted, tolerance=1e-5):
    return np.abs(found.numpy() - wanted).max() <= tolerance * np.abs(wanted).max()


def inside(image, y, x, mode):
    """The value at a place that may lie outside: the border's, or the mirror image's."""
    height, width = image.shape
    if mode == "reflect":
        y, x = (abs(v) if v < n else 2 * (n - 1) - v for v, n in ((y, height), (x, width)))
    return image[min(max(y, 0), height - 1), min(max(x, 0), width - 1)]


def each_pixel(images, function):
    """function(image, y, x) at every pixel."""
    return np.array(
        [
            [[function(image, y, x) for x in range(image.shape[1])] for y in range(image.shape[0])]
            for image in images
        ]
    )


def around(image, y, x, kernel, mode="reflect"):
    """The values in a window."""
    steps = range(-(kernel // 2), kernel // 2 + 1)
    return np.array([[inside(image, y + i, x + j, mode) for j in steps] for i in steps])
