"""What people return from `@attrcheck.dataset`, in the one form that the rest of attrcheck knows.

What can only mean one thing is converted: bytes, values from 0 to 255, NHWC, numpy arrays, lists of
PIL images, datasets of torchvision. What cannot is an error that says what to write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from attrcheck.contracts import Dataset, Pictures, Pixels
from attrcheck.datasets import DatasetError, checked, counted
from attrcheck.datasets.items import pictures_from

SLACK = 0.01
"""How far beyond 0 and 1 a resize may have taken a value."""
PLAINLY_BYTES = 2.0
"""From here on the largest value can only be one of 0 to 255."""
WANTED = (
    "return attrcheck.Dataset(name, images, labels, classes, mean, std, ids), "
    "attrcheck.folder(path), or a dataset of torchvision"
)


def received(value: Any, name: str) -> Dataset | Pictures:
    """A dataset, checked and under its registered name; DatasetError says what is wrong with it."""
    if isinstance(value, Pictures):
        return replace(_checked(value, name), name=name)
    if isinstance(value, Dataset):
        return checked(_converted(replace(value, name=name)))
    where = f"dataset {name!r}"
    if value is None:
        raise DatasetError(f"{where} is None: does its function lack a `return`? {WANTED}")
    if isinstance(value, Tensor | np.ndarray):
        raise DatasetError(f"{where} is images without labels; {WANTED}")
    if isinstance(value, tuple | list):
        if value and all(isinstance(item, Image.Image) for item in value):
            raise DatasetError(f"{where} is pictures without labels; return (picture, label) pairs")
        pairs = all(isinstance(item, tuple | list) and len(item) == 2 for item in value)
        if not pairs or isinstance(value, tuple):
            raise DatasetError(f"{where} is a {type(value).__name__}; {WANTED}")
    if hasattr(value, "batch_size") and hasattr(value, "dataset"):
        raise DatasetError(f"{where} is a loader; return its `dataset`, without a transform")
    if not (hasattr(value, "__getitem__") and hasattr(value, "__len__")) or isinstance(
        value, str | bytes | dict
    ):
        raise DatasetError(f"{where} is a {type(value).__name__}; {WANTED}")
    pictures = _checked(pictures_from(value, name), name)
    pictures.read(0)  # what is no picture is told at once
    return pictures


def _checked(pictures: Pictures, name: str) -> Pictures:
    """Pictures whose parts fit together."""
    where, n = f"dataset {name!r}", len(pictures.labels)
    if not n:
        raise DatasetError(f"{where}: there are no pictures; look at what its function returns")
    if len(pictures.ids) != n:
        raise DatasetError(f"{where}: {n} labels but {len(pictures.ids)} ids")
    for image, label in zip(pictures.ids, pictures.labels, strict=True):
        if not 0 <= label < pictures.classes:
            raise DatasetError(
                f"{where}: label {label} of image {image!r} is not one of {pictures.classes} "
                f"classes{counted(pictures.labels, pictures.classes)}"
            )
    return pictures


def _converted(data: Dataset) -> Dataset:
    where = f"dataset {data.name!r}"
    mean, std = _numbers(data.mean), _numbers(data.std)
    if any(abs(value) > 1 for value in mean) or any(not 0 < value <= 1 for value in std):
        raise DatasetError(
            f"{where}: mean {mean} and std {std} must be those of values from 0 to 1; divide "
            "those of 0 to 255 by 255"
        )
    classes: Any = data.classes
    names = data.class_names
    if isinstance(classes, Sequence):
        classes, names = len(classes), tuple(map(str, classes))
    training: Any = data.training
    return replace(
        data,
        images=_images(data.images, len(mean), where),
        labels=labels_of(data.labels, where),
        classes=int(classes),
        mean=mean,
        std=std,
        ids=tuple(map(str, data.ids)),
        masks=None if data.masks is None else masks_of(data.masks),
        training=_training(training, len(mean), where) if training is not None else None,
        class_names=tuple(names),
    )


def _training(given: Any, channels: int, where: str) -> Callable[[], tuple[Any, Tensor]]:
    def training() -> tuple[Any, Tensor]:
        images, labels = given() if callable(given) else given
        what = f"{where}, to learn from"
        return _images(images, channels, what), labels_of(labels, what)

    return training


def _images(given: Any, channels: int, where: str) -> Tensor | Pixels:
    """Images [N, C, H, W] in [0, 1]; those that are made on demand are in that form already."""
    if hasattr(given, "part"):
        return given  # type: ignore[no-any-return]
    images = tensor_of(given, "L" if channels == 1 else "RGB", where)
    if images.ndim == 3 and channels == 1:
        images = images[:, None]
    if images.ndim == 4 and images.shape[1] != channels == images.shape[3]:
        images = images.permute(0, 3, 1, 2).contiguous()
    return _in_range(images, where) if images.numel() else images.float()


def _in_range(images: Tensor, where: str) -> Tensor:
    """Floats in [0, 1], from bytes or from floats up to 255."""
    if images.is_complex() or not images.isfinite().all():
        raise DatasetError(f"{where}: images have values that are not finite real numbers")
    low, high = images.min().item(), images.max().item()
    whole = not images.is_floating_point()
    if low >= 0 and high <= 255 and high > (1 if whole else PLAINLY_BYTES):
        return images.to(torch.float32) / 255
    if whole and images.dtype is not torch.bool:
        raise DatasetError(
            f"{where}: images are {str(images.dtype).removeprefix('torch.')} with values from "
            f"{low} to {high}, so it cannot be told what is white; make them floats from 0 to 1"
        )
    if low < -SLACK:
        raise DatasetError(
            f"{where}: images have values from {low:.3g} to {high:.3g}, as if they were normalised "
            "already; return them as they were before (images * std + mean), as mean and std are "
            "applied later"
        )
    if high > 1 + SLACK:
        raise DatasetError(
            f"{where}: images have values from {low:.3g} to {high:.3g}, not from 0 to 1; divide "
            "them by their largest possible value"
        )
    return images.to(torch.float32)


def labels_of(given: Any, where: str) -> Tensor:
    """Labels [N], whole numbers."""
    labels = tensor_of(given, "L", where)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or not torch.equal(labels.double(), labels.double().round()):
        raise DatasetError(
            f"{where}: labels must be one whole number per image, not {list(labels.shape)} "
            f"{str(labels.dtype).removeprefix('torch.')}; take the argmax of one-hot labels"
        )
    return labels.to(torch.int64)


def masks_of(given: Any) -> Tensor | Pixels:
    """Masks [N, H, W], true where they are not zero."""
    if hasattr(given, "part"):
        return given  # type: ignore[no-any-return]
    masks = tensor_of(given, "L", "masks")
    if masks.ndim == 4 and masks.shape[1] == 1:
        masks = masks[:, 0]
    return masks if masks.dtype is torch.bool else masks != 0


def tensor_of(given: Any, mode: str, where: str) -> Tensor:
    """A tensor from a tensor, an array, or a list of numbers, arrays, tensors or PIL images."""
    if isinstance(given, Tensor):
        return given.detach()
    if isinstance(given, list | tuple) and given and isinstance(given[0], Image.Image):
        given = [np.asarray(picture.convert(mode)) for picture in given]
    if isinstance(given, list | tuple) and len({np.shape(part) for part in given}) > 1:
        raise DatasetError(
            f"{where}: images are of several sizes; resize them to one, or have a dataset return "
            "(picture, label) pairs, which each network gets in the size that it wants"
        )
    try:
        array = np.asarray([np.asarray(part) for part in given])
        # torch knows few unsigned numbers.
        return torch.from_numpy(array.astype(np.int64) if array.dtype.kind == "u" else array)
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"{where}: a {type(given).__name__} is neither a tensor nor an array of numbers"
        ) from error


def _numbers(given: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in np.asarray(given, dtype=np.float64).reshape(-1))
