"""One picture from its bytes, as those who measured the accuracies of networks read it.

torchvision's and timm's loaders do `Image.open(file).convert("RGB")`, and so does `decode`: alpha
is dropped, palettes, grey and CMYK become RGB, and the rotation that a camera noted (EXIF) is
ignored unless it is asked for. Two things differ, where theirs cannot be what anybody wants: 16
bits are scaled to 8, not clipped, and a JPEG that is too large for Pillow's limit is decoded at a
half, a quarter or an eighth of its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, JpegImagePlugin, UnidentifiedImageError

from attrcheck.datasets import DatasetError

SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
"""How the names of pictures end, in any case; the same that torchvision looks for."""
FORMATS = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP", "GIF")
"""What a picture may be, whatever its name; Pillow would hand others to other programs."""
DEEP = ("I;16", "I;16B", "I;16L", "I;16N", "I")
MOST_DEEP = 65535
JPEG = b"\xff\xd8"
ORIENTATION = 0x0112
"""The EXIF tag of a rotation; from 5 on width and height change places."""


def read_bytes(path: Path) -> bytes:
    """The bytes of a file; DatasetError names one that is missing, unreadable or empty."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read ({error.strerror})") from error
    if not data:
        raise DatasetError(f"{path} is empty (0 bytes); restore it, or remove it")
    return data


def decode(data: bytes, where: str, upright: bool = False) -> Image.Image:
    """A picture in RGB; upright: rotated as its camera noted. DatasetError says where it was."""
    with _named(where):
        picture = _loaded(data)
        return _in_rgb(ImageOps.exif_transpose(picture) if upright else picture, where)


def decode_mask(data: bytes, where: str) -> Image.Image:
    """A mask in grey: white where it is not black, of any depth."""
    with _named(where):
        mask = _loaded(data)
        if mask.mode not in (*DEEP, "F"):
            mask = _in_rgb(mask, where)
    values = np.atleast_3d(np.asarray(mask)).any(axis=2)
    return Image.fromarray(values.astype(np.uint8) * 255)


def sizes(
    data: bytes, where: str, upright: bool = False
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Width and height of a picture as it is stored, and as `decode` gives it."""
    with _named(where):
        picture, stored = _opened(data)
        turned = upright and picture.getexif().get(ORIENTATION, 1) >= 5
    one, other = (stored[::-1], picture.size[::-1]) if turned else (stored, picture.size)
    return one, other


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Whatever goes wrong with a picture is told with its place."""
    try:
        yield
    except (DatasetError, MemoryError):
        raise
    except UnidentifiedImageError as error:
        raise DatasetError(
            f"{where} is not a picture that Pillow can read; replace it, or remove it"
        ) from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DatasetError(
            f"{where} is too large ({error}); shrink it, or raise PIL.Image.MAX_IMAGE_PIXELS in "
            "your conftest.py"
        ) from error
    except Exception as error:  # whatever a broken file makes of a decoder
        raise DatasetError(f"{where} is damaged ({error}); replace it, or remove it") from error


def _opened(data: bytes) -> tuple[Image.Image, tuple[int, int]]:
    """A picture that is not decoded yet, and its size as it is stored."""
    try:
        picture: Image.Image = Image.open(BytesIO(data), formats=FORMATS)
        return picture, picture.size
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        if not data.startswith(JPEG):
            raise
        large = JpegImagePlugin.JpegImageFile(BytesIO(data))
        (width, height), limit = large.size, Image.MAX_IMAGE_PIXELS or 0
        scale = next((s for s in (2, 4, 8) if width * height <= limit * s * s), 0)
        if not scale:
            raise
        large.draft(None, (width // scale, height // scale))
        return large, (width, height)


def _loaded(data: bytes) -> Image.Image:
    """A decoded picture, in whatever mode."""
    picture, _ = _opened(data)
    picture.load()
    return picture


def _in_rgb(picture: Image.Image, where: str) -> Image.Image:
    if picture.mode in (*DEEP, "F"):
        return Image.fromarray(_in_8_bits(np.asarray(picture), where)).convert("RGB")
    if picture.mode == "P":
        # Straight to RGB gives the same colours, and a warning if some of them are transparent.
        picture = picture.convert("RGBA")
    return picture.convert("RGB")


def _in_8_bits(values: NDArray[Any], where: str) -> NDArray[np.uint8]:
    """Grey values of 16 bits, or floats from 0 to 1, in 8 bits."""
    most = 1.0 if values.dtype.kind == "f" else MOST_DEEP
    if not (values.min() >= 0 and values.max() <= most):
        raise DatasetError(
            f"{where} has values from {values.min()} to {values.max()}, not from 0 to {most}: it "
            "cannot be told what is white; save it with 8 bits"
        )
    return np.round(values.astype(np.float64) * (255 / most)).astype(np.uint8)
