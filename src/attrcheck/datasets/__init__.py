"""Datasets: held-out images with labels, normalisation and, where known, ground-truth masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attrcheck.contracts import Dataset, Pictures
from attrcheck.errors import AttrcheckError
from attrcheck.registry import Registry


class DatasetError(AttrcheckError):
    """Images, labels, masks or normalisation that do not fit together."""


@dataclass(frozen=True)
class DatasetSpec:
    """A registered dataset: a name and the function that loads it.

    offers: what it has besides images and labels, `masks` or a `training` split. Cases of protocols
    that need what is not offered are left out.
    depends: what else it depends on, as "file:PATH", "env:NAME" or "package:NAME".
    default: whether it takes part unasked in any profile but full.
    """

    name: str
    load: Callable[[], Dataset | Pictures]
    offers: tuple[str, ...] = ()
    depends: Sequence[str] = ()
    default: bool = True


dataset = Registry(
    "dataset",
    DatasetSpec,
    __name__,
    prefixes={
        "folder": "attrcheck.datasets.folders",
        "torchvision": "attrcheck.adapters.torchvision_datasets",
        "hf": "attrcheck.adapters.hf_datasets",
    },
    place_counts=False,
)


def checked(data: Dataset) -> Dataset:
    """The dataset, if its parts fit together; else DatasetError names the first that does not."""
    where, n = f"dataset {data.name!r}", len(data.images)
    if not n:
        raise DatasetError(f"{where}: there are no images; look at what its function returns")
    if len(data.images.shape) != 4 or not len(data.mean) == len(data.std) == data.channels:
        raise DatasetError(
            f"{where}: images must be [N, C, H, W] with one mean and one std per channel, "
            f"not {list(data.images.shape)} with {len(data.mean)} and {len(data.std)}"
        )
    sizes = {"labels": len(data.labels), "ids": len(data.ids)}
    if data.masks is not None:
        sizes["masks"] = len(data.masks)
    for what, size in sizes.items():
        if size != n:
            raise DatasetError(f"{where}: {n} images but {size} {what}; give one for each image")
    if data.masks is not None and data.masks.shape[1:] != data.images.shape[2:]:
        raise DatasetError(
            f"{where}: masks must be {[n, *data.images.shape[2:]]}, not {list(data.masks.shape)}"
        )
    bad = (data.labels < 0) | (data.labels >= data.classes)
    if bad.any():
        first = int(bad.nonzero()[0])
        raise DatasetError(
            f"{where}: label {int(data.labels[first])} of image {data.ids[first]!r} is not one of "
            f"{data.classes} classes{counted(data.labels.tolist(), data.classes)}"
        )
    return data


def counted(labels: Sequence[int], classes: int) -> str:
    """What to say of labels that are not classes.

    >>> counted([1, 2, 2], 2)
    ', which count from 0: subtract 1 from every label'
    """
    shifted = min(labels) == 1 and max(labels) == classes
    remedy = "subtract 1 from every label" if shifted else "give `classes` as many as there are"
    return f", which count from 0: {remedy}"


__all__ = ["Dataset", "DatasetError", "DatasetSpec", "checked", "dataset"]
