"""torchvision's datasets by name: `torchvision:CIFAR100@/data`, from what lies in a root folder.

Nothing is downloaded. The part that torchvision holds out is evaluated on; models learn from the
other one.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from attrcheck.adapters.libraries import choose
from attrcheck.adapters.vision import torchvision
from attrcheck.contracts import Pictures
from attrcheck.datasets import DatasetError, DatasetSpec
from attrcheck.datasets.items import pictures_from
from attrcheck.errors import text_of
from attrcheck.specs import Spec, id_of


@dataclass(frozen=True)
class Layout:
    """What must lie in the root, and how a class is asked for its held-out part and for the other.

    train_at: a file or folder without which there is nothing to learn from.
    """

    wants: str
    held_out: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] | None = None
    train_at: str = ""


def _by_flag(wants: str) -> Layout:
    return Layout(wants, {"train": False}, {"train": True})


def _by_split(wants: str, held_out: str = "test", train: str = "train", at: str = "") -> Layout:
    return Layout(wants, {"split": held_out}, {"split": train}, at)


LAYOUTS = {
    "CIFAR10": _by_flag("cifar-10-batches-py/"),
    "CIFAR100": _by_flag("cifar-100-python/"),
    "Caltech101": Layout("caltech101/101_ObjectCategories/"),
    "Caltech256": Layout("caltech256/256_ObjectCategories/"),
    "Country211": _by_split("country211/"),
    "DTD": _by_split("dtd/dtd/"),
    "EMNIST": Layout(
        "EMNIST/raw/",
        {"split": "balanced", "train": False},
        {"split": "balanced", "train": True},
    ),
    "EuroSAT": Layout("eurosat/2750/"),
    "FGVCAircraft": _by_split("fgvc-aircraft-2013b/", train="trainval"),
    "FashionMNIST": _by_flag("FashionMNIST/raw/"),
    "Flowers102": _by_split("flowers-102/"),
    "Food101": _by_split("food-101/ with images/ and meta/"),
    "GTSRB": _by_split("gtsrb/"),
    "ImageNet": _by_split(
        "val/ with a folder per synset, and meta.bin or ILSVRC2012_devkit_t12.tar.gz (without "
        "these, write folder:ROOT/val)",
        "val",
        at="train",
    ),
    "Imagenette": _by_split("imagenette2/", "val"),
    "KMNIST": _by_flag("KMNIST/raw/"),
    "MNIST": _by_flag("MNIST/raw/"),
    "OxfordIIITPet": _by_split("oxford-iiit-pet/", train="trainval"),
    "PCAM": _by_split("pcam/"),
    "Places365": _by_split(
        "val_large/ or val_256/, categories_places365.txt and places365_val.txt",
        "val",
        "train-standard",
        "places365_train_standard.txt",
    ),
    "QMNIST": _by_flag("QMNIST/raw/"),
    "RenderedSST2": _by_split("rendered-sst2/"),
    "SEMEION": Layout("semeion.data"),
    "STL10": _by_split("stl10_binary/"),
    "SUN397": Layout("SUN397/"),
    "SVHN": _by_split("test_32x32.mat", at="train_32x32.mat"),
    "StanfordCars": _by_split("stanford_cars/"),
    "USPS": _by_flag("usps.bz2 and usps.t.bz2"),
}
"""Those that have one label per picture."""


def resolve(text: str, root: str = "", **options: Any) -> DatasetSpec:
    """The dataset that `torchvision:NAME@ROOT` stands for; options go to torchvision's class."""
    name, _, place = text.partition("@")
    layout = choose("torchvision", "dataset with one label per picture", LAYOUTS, name)
    place = place or root
    if not place:
        raise DatasetError(
            f"torchvision:{name}: say where it lies, as in torchvision:{name}@/data; it wants "
            f"{layout.wants} there"
        )
    folder = Path(place).expanduser()
    if not folder.is_dir():
        raise DatasetError(
            f"torchvision:{name}: there is no folder {folder}; it wants {layout.wants} there"
        )
    learns = layout.train is not None and (folder / layout.train_at).exists()
    load = partial(pictures, name, folder, options)
    return DatasetSpec(
        id_of(Spec("torchvision", text), with_place=False), load, ("training",) if learns else ()
    )


def pictures(name: str, folder: Path, options: Mapping[str, Any]) -> Pictures:
    """The held-out part of one of torchvision's datasets."""
    layout = LAYOUTS[name]

    def training() -> Pictures:
        assert layout.train is not None
        return pictures_from(_made(name, folder, {**layout.train, **options}), name)

    source = _made(name, folder, {**layout.held_out, **options})
    learns = layout.train is not None and (folder / layout.train_at).exists()
    return pictures_from(source, name, training if learns else None)


def _made(name: str, folder: Path, options: Mapping[str, Any]) -> Any:
    """An instance of torchvision's class; DatasetError where its data are not in place."""
    kind = getattr(torchvision.datasets, name)
    takes = inspect.signature(kind).parameters
    given = {**options, **({"download": False} if "download" in takes else {})}
    if name == "Places365" and not (folder / "val_large").exists():
        given.setdefault("small", True)
    try:
        return kind(str(folder), **given)
    except Exception as error:  # RuntimeError where data are missing, anything where they are bad
        why = text_of(error).partition("\n")[0].replace("You can use download=True", "").strip()
        raise DatasetError(
            f"torchvision:{name} cannot be read from {folder}: it wants {LAYOUTS[name].wants} "
            f"there ({type(error).__name__}: {why})"
        ) from error
