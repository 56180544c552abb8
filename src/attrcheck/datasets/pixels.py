"""Pixels: pictures as one network wants them, decoded in threads when a slice is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import PIL
import torch
from PIL import Image
from torch import Tensor

from attrcheck.contracts import Dataset, Pictures, Pixels, Preprocessing
from attrcheck.store.digests import digest

THREADS = 8
"""Pictures that are decoded at once: Pillow lets go of the interpreter while it does."""
MOST_PIXELS = 2**24
"""Of a picture after it is resized; of a longer one only the middle is."""
MARGIN = 64


@dataclass(frozen=True, eq=False)
class View:
    """Some pictures, or their masks, through a network's eyes; see `contracts.Pixels`.

    make: one of them, by index. tell: what tells some of them from any others. then: what is done
    to a batch of them.
    """

    make: Callable[[int], Tensor]
    tell: Callable[[Sequence[int]], str]
    indices: Sequence[int]
    sides: tuple[int, ...]
    then: Callable[[Tensor], Tensor] = lambda batch: batch

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, part: slice | Tensor) -> Tensor:
        """The tensor of some of them, decoded now."""
        chosen = self.part(part).indices
        if not chosen:
            return self.then(torch.empty((0, *self.sides)))
        return self.then(torch.stack(list(_threads().map(self.make, chosen))))

    @property
    def shape(self) -> torch.Size:
        """As of the tensor of all of them."""
        return torch.Size((len(self), *self.sides))

    def part(self, part: slice | Tensor) -> View:
        """Some of them, not yet decoded."""
        if isinstance(part, slice):
            return replace(self, indices=self.indices[part])
        return replace(self, indices=[self.indices[at] for at in part.tolist()])

    def fingerprint(self) -> str:
        """What tells them from any others: the bytes of the pictures, and what is done to them."""
        return self.tell(self.indices)


def view(pictures: Pictures, preprocessing: Preprocessing) -> Dataset:
    """The dataset that a network with this preprocessing sees."""
    channels, every = len(preprocessing.mean), range(len(pictures))

    def tell(what: str, indices: Sequence[int]) -> str:
        return digest(what, pictures.fingerprint(indices), geometry(preprocessing))

    def training() -> tuple[View, Tensor]:
        learnt = view(pictures.training(), preprocessing)  # type: ignore[misc]
        return learnt.images, learnt.labels  # type: ignore[return-value]

    return Dataset(
        name=pictures.name,
        images=View(
            lambda at: pixels_of(pictures.read(at), preprocessing),
            partial(tell, "images"),
            every,
            (channels, *preprocessing.size),
        ),
        labels=torch.tensor(pictures.labels, dtype=torch.int64),
        classes=pictures.classes,
        mean=preprocessing.mean,
        std=preprocessing.std,
        ids=pictures.ids,
        masks=View(
            lambda at: mask_of(pictures.mask(at), preprocessing),  # type: ignore[misc]
            partial(tell, "masks"),
            every,
            preprocessing.size,
        )
        if pictures.mask
        else None,
        training=training if pictures.training else None,
        class_names=pictures.class_names,
    )


def normalised(data: Dataset, images: Tensor | Pixels, device: torch.device) -> Tensor | Pixels:
    """Images as a model wants them, on its device; those made on demand when they are made."""

    def finish(batch: Tensor) -> Tensor:
        return data.normalise(batch.to(device))

    return replace(images, then=finish) if isinstance(images, View) else finish(images[:])


def in_memory(data: Dataset) -> Dataset:
    """The dataset with all of its images and masks made."""
    return replace(data, images=data.images[:], masks=None if data.masks is None else data.masks[:])


def pictures_of(data: Dataset) -> Pictures:
    """Images that lie in memory as pictures of 8 bits, for a network that wants another frame."""

    def picture(pixels: Tensor) -> Image.Image:
        values = (pixels.clamp(0, 1) * 255).round().to(torch.uint8)
        return Image.fromarray(values.movedim(0, -1).squeeze(-1).numpy())

    def read(at: int) -> Image.Image:
        return picture(data.images[at : at + 1][0])

    def tell(indices: Sequence[int]) -> str:
        chosen = torch.tensor(list(indices), dtype=torch.int64)
        return digest(data.images[chosen], None if data.masks is None else data.masks[chosen])

    def mask(at: int) -> Image.Image:
        assert data.masks is not None
        return picture(data.masks[at : at + 1].float())

    def training() -> Pictures:
        images, labels = data.training()  # type: ignore[misc]
        ids = tuple(map(str, range(len(labels))))
        return pictures_of(replace(data, images=images, labels=labels, ids=ids, masks=None))

    return Pictures(
        name=data.name,
        read=read,
        fingerprint=tell,
        labels=tuple(data.labels.tolist()),
        ids=data.ids,
        class_names=data.class_names or tuple(map(str, range(data.classes))),
        mask=None if data.masks is None else mask,
        training=training if data.training else None,
    )


def pixels_of(picture: Image.Image, preprocessing: Preprocessing) -> Tensor:
    """A picture as [C, H, W] in [0, 1], resized and cut; not normalised yet."""
    mode = "L" if len(preprocessing.mean) == 1 else "RGB"
    picture = picture if picture.mode == mode else picture.convert(mode)
    seen = framed(picture, preprocessing, preprocessing.interpolation)
    array = np.asarray(seen, dtype=np.uint8).reshape(*preprocessing.size, -1)
    return torch.from_numpy(array.transpose(2, 0, 1).astype(np.float32)).div_(255)


def mask_of(mask: Image.Image, preprocessing: Preprocessing) -> Tensor:
    """A mask as [H, W] bool, in the same frame as its picture."""
    seen = framed(mask.convert("L"), preprocessing, "nearest")
    return torch.from_numpy(np.asarray(seen) > 0)


def framed(picture: Image.Image, preprocessing: Preprocessing, interpolation: str) -> Image.Image:
    """Resize, then cut out the middle; what is smaller than the frame gets black borders.

    The numbers are rounded as torchvision and timm do, so that pixels equal theirs.
    """
    resample = Image.Resampling[interpolation.upper()]
    width, height = _resized(picture.size, preprocessing.resize)
    if width * height > MOST_PIXELS:
        picture = _middle_of(picture, preprocessing)
        width, height = _resized(picture.size, preprocessing.resize)
    if (width, height) != picture.size:
        picture = picture.resize((width, height), resample)
    high, wide = preprocessing.size
    if (width, height) == (wide, high):
        return picture
    down = preprocessing.rounds_down
    left, top = _middle(width, wide, down), _middle(height, high, down)
    return picture.crop((left, top, left + wide, top + high))


def _middle_of(picture: Image.Image, preprocessing: Preprocessing) -> Image.Image:
    """The middle of a very long picture: to enlarge all of it would take gigabytes.

    Twice as long as the frame and more needs, so that the cut is out of sight.
    """
    width, height = picture.size
    high, wide = preprocessing.size
    short = min(width, height)
    length = 2 * max(1, short * max(high, wide) // min(high, wide)) + MARGIN
    length += (max(width, height) - length) % 2  # the middle stays where it is
    across, along = (min(width, length), min(height, length))
    left, top = (width - across) // 2, (height - along) // 2
    return picture.crop((left, top, left + across, top + along))


def geometry(preprocessing: Preprocessing) -> str:
    """What decides the pixels of a picture beside its bytes."""
    return digest(
        preprocessing.size,
        preprocessing.resize,
        preprocessing.interpolation,
        len(preprocessing.mean),
        PIL.__version__,
        preprocessing.rounds_down,
    )


def _resized(size: tuple[int, int], to: int | tuple[int, int] | None) -> tuple[int, int]:
    """Width and height after the resize: both as given, or the shorter side."""
    if to is None:
        return size
    if not isinstance(to, int):
        return to[1], to[0]
    width, height = size
    if width <= height:
        return to, max(1, int(to * height / width))
    return max(1, int(to * width / height)), to


def _middle(length: int, kept: int, down: bool) -> int:
    """Where the middle part begins; before the picture, if that is smaller."""
    if length < kept:
        return -((kept - length) // 2)
    return (length - kept) // 2 if down else round((length - kept) / 2)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "attrcheck-decode")
