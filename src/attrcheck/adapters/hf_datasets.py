"""Datasets of Hugging Face by name: `hf:ORG/NAME@CONFIG` from its cache, `hf:/path` from a folder.

Nothing is downloaded. Needs the library `datasets`: pip install "attrcheck[hf]".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from PIL import Image

from attrcheck.contracts import Pictures
from attrcheck.datasets import DatasetError, DatasetSpec
from attrcheck.datasets.order import fair_order
from attrcheck.datasets.reading import decode, read_bytes
from attrcheck.errors import text_of
from attrcheck.specs import Spec, id_of, is_path
from attrcheck.store.digests import digest

HELD_OUT = ("test", "validation", "val", "valid")
"""Splits to evaluate on, the first that has labels."""
TRAIN = "train"
SAVED = ("dataset_dict.json", "state.json")
"""What `save_to_disk` leaves in a folder."""
LABELS = ("label", "labels", "fine_label")
"""Columns to take labels from, if there are several that could be."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Pictures in a column of a table, by place in a fair order."""

    name: str
    table: Any
    column: str
    order: tuple[int, ...]

    def read(self, place: int) -> Image.Image:
        """The picture, upright, as `datasets` gives it."""
        return decode(self._bytes(place), f"row {self.order[place]} of {self.name}", upright=True)

    def fingerprint(self, places: Sequence[int]) -> str:
        """Of the bytes of some pictures."""
        return digest([digest(self._bytes(place)) for place in places])

    def _bytes(self, place: int) -> bytes:
        stored = self.table[self.order[place]][self.column]
        if stored["bytes"] is not None:
            return bytes(stored["bytes"])
        return read_bytes(Path(stored["path"]))


def resolve(text: str, image: str = "", label: str = "", split: str = "") -> DatasetSpec:
    """The dataset that `hf:...` stands for; options name columns and the split to evaluate on."""
    load = partial(pictures, text, image, label, split)
    offers = ("training",) if TRAIN in _loaded(text) and split != TRAIN else ()
    return DatasetSpec(id_of(Spec("hf", text), with_place=False), load, offers)


def pictures(text: str, image: str = "", label: str = "", split: str = "") -> Pictures:
    """The pictures of the split to evaluate on; models learn from `train`."""
    splits = _loaded(text)
    chosen = split or _held_out(text, splits, label)
    if chosen not in splits:
        raise DatasetError(f"hf:{text} has no split {chosen!r}; it has: {', '.join(splits)}")

    def training() -> Pictures:
        return _pictures(text, splits[TRAIN], image, label)

    whole = _pictures(text, splits[chosen], image, label)
    if TRAIN not in splits or chosen == TRAIN:
        return whole
    return replace(whole, training=training)


def _pictures(text: str, table: Any, image: str, label: str) -> Pictures:
    library = _library()
    image = image or _column(text, table, library.Image, "image", ("image", "img"))
    label = label or _column(text, table, library.ClassLabel, "label", LABELS)
    labels = [int(value) for value in table.data.column(label).to_pylist()]
    names = tuple(table.features[label].names)
    ids = [str(index) for index in range(len(labels))]
    for index, value in enumerate(labels):
        if not 0 <= value < len(names):
            raise DatasetError(
                f"row {index} of hf:{text}: the label {value} is not one of {len(names)} classes"
            )
    order = tuple(fair_order(labels, ids))
    raw = table.select_columns([image]).cast_column(image, library.Image(decode=False))
    rows = Rows(f"hf:{text}", raw, image, order)
    return Pictures(
        name=id_of(Spec("hf", text), with_place=False),
        read=rows.read,
        fingerprint=rows.fingerprint,
        labels=tuple(labels[index] for index in order),
        ids=tuple(ids[index] for index in order),
        class_names=names,
    )


def _column(text: str, table: Any, kind: Any, option: str, usual: Sequence[str]) -> str:
    """The column of a kind; where there are several, the one with a usual name."""
    columns = [name for name, value in table.features.items() if isinstance(value, kind)]
    usually = [name for name in usual if name in columns]
    if len(columns) == 1 or usually:
        return str((usually or columns)[0])
    what = f"several columns of type {kind.__name__}" if columns else f"no {kind.__name__} column"
    raise DatasetError(
        f"hf:{text} has {what} among {', '.join(table.features)}; name it in a table: "
        f'{{ spec = "hf:{text}", {option} = "..." }}'
    )


def _held_out(text: str, splits: Mapping[str, Any], label: str) -> str:
    """The first split to evaluate on whose labels are known: hidden ones are -1."""
    for name in HELD_OUT:
        if name in splits:
            table = splits[name]
            column = label or _column(text, table, _library().ClassLabel, "label", LABELS)
            if any(value >= 0 for value in table.data.column(column).to_pylist()[:100]):
                return name
    if len(splits) == 1 and TRAIN not in splits:
        return next(iter(splits))
    raise DatasetError(
        f"hf:{text} has no held-out split with labels; it has: {', '.join(splits)}. Name one in a "
        f'table: {{ spec = "hf:{text}", split = "{TRAIN}" }}'
    )


@cache
def _loaded(text: str) -> dict[str, Any]:
    """The splits of a dataset by name."""
    library, local = _library(), is_path(text)
    name, _, config = text.rpartition("@") if "@" in text else (text, "", "")
    path = Path(name).expanduser()
    if local and not path.exists():
        raise DatasetError(f"hf:{text}: there is no folder {path}")
    saved = local and any((path / file).is_file() for file in SAVED)
    try:
        with _offline():
            if saved:
                loaded = library.load_from_disk(str(path))
            else:
                loaded = library.load_dataset(str(path) if local else name, config or None)
    except Exception as error:  # of many kinds, as caches and files are
        why = f"{type(error).__name__}: {text_of(error)}".partition("\n")[0]
        if local:
            raise DatasetError(f"hf:{text} cannot be read from {path} ({why})") from error
        raise DatasetError(
            f"hf:{text} is not in the cache {library.config.HF_DATASETS_CACHE}; load it once with "
            f"datasets.load_dataset({name!r}) where there is a network ({why})"
        ) from error
    return dict(loaded) if isinstance(loaded, dict) else {"all": loaded}


@contextmanager
def _offline() -> Iterator[None]:
    """Keep the library from asking the network."""
    import huggingface_hub.constants as constants

    settings = _library().config
    before = settings.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    settings.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        settings.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before


def _library() -> Any:
    try:
        import datasets
    except ModuleNotFoundError as error:
        raise DatasetError(
            'hf: needs the library `datasets`; run `pip install "attrcheck[hf]"`'
        ) from error
    return datasets
