"""Pictures from what gives one picture and one label for an index, as torchvision's datasets do.

No library is imported for it: labels, files and class names are found under the names that they
have in torchvision, so that no picture is decoded before it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

from PIL import Image

from attrcheck.contracts import Pictures
from attrcheck.datasets import DatasetError
from attrcheck.datasets.hashes import hashes_of
from attrcheck.datasets.order import fair_order
from attrcheck.store.digests import digest

LABELS = ("targets", "_labels", "labels", "y")
SAMPLES = ("samples", "_samples", "imgs")
"""Pairs of a file, or of a picture, and a label."""
FILES = ("_image_files", "_images")


@dataclass(frozen=True, eq=False)
class Items:
    """Pictures by place in a fair order; see `Pictures` for what is asked of them.

    folder, files: where they lie, if they are read from files and not changed afterwards.
    """

    name: str
    source: Any
    order: tuple[int, ...]
    ids: tuple[str, ...]
    folder: Path | None = None
    files: tuple[str, ...] = ()

    def read(self, place: int) -> Image.Image:
        """The picture, as the source gives it."""
        where = f"image {self.ids[place]!r} of dataset {self.name!r}"
        try:
            item = self.source[self.order[place]]
        except Exception as error:  # foreign code, and broken files
            raise DatasetError(
                f"{where} cannot be read ({type(error).__name__}: {error}); replace it, or leave "
                "it out"
            ) from error
        picture = item[0] if isinstance(item, tuple | list) else item
        if not isinstance(picture, Image.Image):
            raise DatasetError(
                f"{where} is a {type(picture).__name__}, not a picture: give the dataset no "
                "`transform`; what a network wants done to pictures is its model's preprocessing"
            )
        return picture if picture.mode == "L" else picture.convert("RGB")

    def fingerprint(self, places: Sequence[int]) -> str:
        """Of the bytes of the files, if there are any, else of the pixels."""
        if self.folder:
            return digest(hashes_of(self.folder).of([self.files[place] for place in places]))
        pictures = (self.read(place) for place in places)
        return digest([digest(one.mode, one.size, one.tobytes()) for one in pictures])


def pictures_from(
    source: Any, name: str, training: Callable[[], Pictures] | None = None
) -> Pictures:
    """Pictures from a dataset of torchvision, or from anything that gives pairs by index."""
    labels, names = labels_of(source, name), names_of(source)
    names = names or tuple(map(str, range(max(labels, default=-1) + 1)))
    files = files_of(source)
    folder = _common(source, files) if files else None
    paths = [os.path.relpath(file, folder) for file in files] if folder else []
    ids = [Path(path).as_posix() for path in paths] or list(map(str, range(len(labels))))
    for index, label in enumerate(labels):
        if not 0 <= label < len(names):
            raise DatasetError(
                f"dataset {name!r}: label {label} of image {ids[index]!r} is not one of "
                f"{len(names)} classes"
            )
    order = tuple(fair_order(labels, ids))
    ordered = tuple(ids[index] for index in order)
    items = Items(name, source, order, ordered, folder, ordered if folder else ())
    return Pictures(
        name=name,
        read=items.read,
        fingerprint=items.fingerprint,
        labels=tuple(labels[index] for index in order),
        ids=ordered,
        class_names=names,
        training=training,
    )


def labels_of(source: Any, name: str) -> list[int]:
    """The label of every picture; only where there is no list of them, pictures are read."""
    if (part := _part(source)) is not None:
        labels = labels_of(part[0], name)
        return [labels[index] for index in part[1]]
    targets = next(_lists(source), None)
    if targets is None:
        targets = [_label(source[index]) for index in range(len(source))]
    elif (change := getattr(source, "target_transform", None)) is not None:
        targets = [change(label) for label in targets]
    if not all(isinstance(label, Integral) for label in targets):
        raise DatasetError(f"dataset {name!r} does not have one label, a whole number, per picture")
    return [int(label) for label in targets]


def names_of(source: Any) -> tuple[str, ...]:
    """The names of the classes in the order of the labels; synsets where they are known."""
    if (part := _part(source)) is not None:
        return names_of(part[0])
    by_name = getattr(source, "class_to_idx", None) or {}
    if names := getattr(source, "wnids", None):
        return tuple(names)
    if by_name and sorted(by_name.values()) == list(range(len(by_name))):
        return tuple(sorted(by_name, key=by_name.__getitem__))
    names = getattr(source, "classes", None) or getattr(source, "categories", None) or ()
    return tuple(name if isinstance(name, str) else ", ".join(name) for name in names)


def files_of(source: Any) -> list[str]:
    """The file of every picture; none where they lie elsewhere or are changed after reading."""
    if any(getattr(source, name, None) is not None for name in ("transform", "transforms")):
        return []
    if (part := _part(source)) is not None:
        files = files_of(part[0])
        return [files[index] for index in part[1]] if files else []
    lists = [list(getattr(source, name, None) or ()) for name in FILES]
    lists += [[pair[0] for pair in getattr(source, name, None) or ()] for name in SAMPLES]
    for files in lists:
        if len(files) == len(source) and all(isinstance(file, str | Path) for file in files):
            return [str(file) for file in files]
    return []


def _lists(source: Any) -> Any:
    """Lists of labels that a source keeps, as plain numbers."""
    for name in LABELS:
        labels = getattr(source, name, None)
        if labels is not None and len(labels) == len(source):
            yield labels.tolist() if hasattr(labels, "tolist") else list(labels)
    for name in SAMPLES:
        pairs = getattr(source, name, None)
        if pairs is not None and len(pairs) == len(source):
            yield [pair[1] for pair in pairs]


def _label(item: Any) -> Any:
    label: Any = item[1] if isinstance(item, tuple | list) and len(item) > 1 else None
    return label.item() if hasattr(label, "item") else label


def _part(source: Any) -> tuple[Any, Sequence[int]] | None:
    """The whole and the indices of a torch.utils.data.Subset."""
    if hasattr(source, "dataset") and hasattr(source, "indices"):
        return source.dataset, source.indices
    return None


def _common(source: Any, files: Sequence[str]) -> Path:
    """The folder that ids and hashes are told from: the root of the source, if files lie there."""
    root = os.path.abspath(str(getattr(source, "root", None) or os.path.dirname(files[0])))
    inside = os.path.commonpath([root, *map(os.path.abspath, files)])
    return Path(inside)
