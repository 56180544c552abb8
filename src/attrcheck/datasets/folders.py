"""Folders of pictures as datasets: `folder:/data/val`, `attrcheck.folder("/data/val")`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PIL import Image

from attrcheck.contracts import Pictures, Preprocessing
from attrcheck.datasets import DatasetError, DatasetSpec
from attrcheck.datasets.hashes import hashes_of
from attrcheck.datasets.listing import beside, evaluated, find, listed, read_classes
from attrcheck.datasets.order import fair_order
from attrcheck.datasets.reading import decode, decode_mask, read_bytes, sizes
from attrcheck.specs import Spec, id_of
from attrcheck.store.digests import digest


@dataclass(frozen=True)
class Files:
    """Pictures on disk, and their masks, by index; see `Pictures` for what is asked of them."""

    folder: Path
    names: tuple[str, ...]
    upright: bool = False
    masks: Path | None = None
    mask_names: tuple[str, ...] = ()

    def read(self, index: int) -> Image.Image:
        """The picture, decoded now."""
        path = self.folder / self.names[index]
        return decode(read_bytes(path), str(path), self.upright)

    def mask(self, index: int) -> Image.Image:
        """Its mask, which must be as large as the picture."""
        assert self.masks is not None
        path, mask_path = self.folder / self.names[index], self.masks / self.mask_names[index]
        mask = decode_mask(read_bytes(mask_path), str(mask_path))
        stored, size = sizes(read_bytes(path), str(path), self.upright)
        if mask.size not in (stored, size):
            raise DatasetError(
                f"the mask {mask_path} is {mask.width} x {mask.height}, but its picture is "
                f"{stored[0]} x {stored[1]}"
            )
        return mask if mask.size == size else mask.resize(size, Image.Resampling.NEAREST)

    def fingerprint(self, indices: Sequence[int]) -> str:
        """Of the bytes of some pictures and masks, which are read only if they have changed."""
        parts = [hashes_of(self.folder).of([self.names[index] for index in indices])]
        if self.masks:
            parts.append(hashes_of(self.masks).of([self.mask_names[index] for index in indices]))
        return digest(parts, self.upright)


def folder(
    path: str | Path,
    *,
    name: str = "",
    labels: str | Path | None = None,
    classes: str | Path | Sequence[str] = (),
    masks: str | Path | None = None,
    train: str | Path | None = None,
    upright: bool = False,
    preprocessing: Preprocessing | None = None,
) -> Pictures:
    """The pictures of a folder, read on demand.

    Either each class has a folder of its own, with pictures in it or in folders below it, or a file
    `labels.csv` has a line `file,label` for each picture; labels are names, or numbers from 0. It
    may have a header, as `file,label` or `path,class`, and more columns then. Classes come in the
    order of their sorted names, or of `classes.txt`, one name per line. If the folder has the parts
    `train` and `val` (or `valid`, `validation`, `test`), the latter is what is evaluated on, and
    `train`, there or beside it, what models learn from.

    labels, classes, masks, train: those files and folders, if they have other names or lie
    elsewhere; a relative path begins at the folder. masks: the ground truth of each picture, under
    the same path, with any suffix; by default those of `val` lie in `val_masks`. upright: turn
    pictures as their cameras noted, which torchvision and timm do not. preprocessing: for models
    without one.
    """
    root = evaluated(Path(path).expanduser())
    masks_beside, train_beside = beside(root)
    table = root / labels if labels else None
    names = read_classes(root / classes) if isinstance(classes, str | Path) else tuple(classes)
    listing = listed(root, table, names)
    order = fair_order(listing.labels, listing.files)
    files = tuple(listing.files[index] for index in order)
    mask_folder = root / masks if masks else masks_beside
    mask_names = _masks(mask_folder, files) if mask_folder else ()
    source = Files(root, files, upright, mask_folder, mask_names)
    learnt = root / train if train else train_beside
    name = name or id_of(Spec("folder", str(path)))
    return Pictures(
        name=name,
        read=source.read,
        fingerprint=source.fingerprint,
        labels=tuple(listing.labels[index] for index in order),
        ids=files,
        class_names=listing.class_names,
        mask=source.mask if mask_folder else None,
        training=partial(_training, learnt, name, listing.class_names, upright, preprocessing)
        if learnt
        else None,
        preprocessing=preprocessing,
    )


def resolve(
    path: str,
    labels: str | None = None,
    classes: str | Sequence[str] = (),
    masks: str | None = None,
    train: str | None = None,
    upright: bool = False,
) -> DatasetSpec:
    """The dataset that `folder:PATH` stands for; the options are those of `folder`."""
    root = evaluated(Path(path).expanduser())
    masks_beside, train_beside = beside(root)
    there = {"masks": masks or masks_beside, "training": train or train_beside}
    load = partial(
        folder,
        path,
        labels=labels,
        classes=classes,
        masks=masks,
        train=train,
        upright=upright,
    )
    offers = tuple(offer for offer, place in there.items() if place)
    return DatasetSpec(id_of(Spec("folder", path)), load, offers)


def _training(
    path: Path,
    name: str,
    classes: tuple[str, ...],
    upright: bool,
    preprocessing: Preprocessing | None,
) -> Pictures:
    return folder(path, name=name, classes=classes, upright=upright, preprocessing=preprocessing)


def _masks(path: Path, files: Sequence[str]) -> tuple[str, ...]:
    """The mask of each picture: of the same name, or else of the same name but for its suffix."""
    if not path.is_dir():
        raise DatasetError(f"the folder of masks {path} does not exist")
    there = {mask: mask for mask in find(path)}
    there |= {mask.rpartition(".")[0]: mask for mask in there}
    masks = [there.get(file) or there.get(file.rpartition(".")[0]) for file in files]
    for file, mask in zip(files, masks, strict=True):
        if mask is None:
            raise DatasetError(f"the picture {file} has no mask in {path}")
    return tuple(mask for mask in masks if mask)
