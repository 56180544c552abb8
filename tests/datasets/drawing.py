"""Small pictures on disk."""

from pathlib import Path

import numpy as np
from PIL import Image


def noise(seed=0, size=(8, 6), channels=3):
    """A picture of noise, width x height."""
    shape = (size[1], size[0], channels) if channels > 1 else (size[1], size[0])
    values = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    return Image.fromarray(values)


def draw(path: Path, seed=0, size=(8, 6), **settings):
    """A picture of noise in a file, whose suffix says how it is stored."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise(seed, size).save(path, **settings)
    return path


def class_folders(root: Path, counts=None, suffix=".png"):
    """A folder with a folder per class, each with so many pictures."""
    seed = 0
    for name, count in (counts or {"cat": 6, "dog": 3}).items():
        for number in range(count):
            seed += 1
            draw(root / name / f"{number:02}{suffix}", seed)
    return root
