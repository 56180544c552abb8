"""What an image processor of Hugging Face does to a picture, as `Preprocessing`, or an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from PIL.Image import Resampling

from attrcheck.contracts import Preprocessing
from attrcheck.errors import ModelError

PLAIN = ("ViT", "DeiT", "Beit", "Bit", "CLIP", "MobileNetV1", "MobileNetV2", "Pvt", "Siglip")
"""Processors that resize, cut out the middle, rescale and normalise, as their settings say."""
ENDINGS = ("ImageProcessorPil", "ImageProcessorFast", "ImageProcessor", "FeatureExtractor")
WARPED = 384
"""From this size on ConvNext's processor resizes both sides and cuts nothing off."""

Geometry: TypeAlias = tuple[tuple[int, int], int | tuple[int, int] | None]
"""The final size, and what is resized to first."""


def preprocessing(name: str, processor: Any) -> Preprocessing:
    """The same geometry, mean and std, for values in [0, 1]."""
    kind = type(processor).__name__
    for ending in ENDINGS:
        kind = kind.removesuffix(ending)
    if kind == "ConvNext":
        size, resize = _convnext(processor)
    elif kind in PLAIN:
        size, resize = _plain(name, processor)
    else:
        raise _inexpressible(name, f"the processor {type(processor).__name__}")
    for setting in ("do_pad", "do_flip_channel_order"):
        if getattr(processor, setting, None):
            raise _inexpressible(name, setting)
    # Of values in [0, 255] the processor makes (values * factor - mean) / std.
    scale = 255 * (processor.rescale_factor if processor.do_rescale else 1)
    normalises = processor.do_normalize
    mean, std = (processor.image_mean, processor.image_std) if normalises else ((0,) * 3, (1,) * 3)
    return Preprocessing(
        size=size,
        mean=tuple(value / scale for value in mean),
        std=tuple(value / scale for value in std),
        resize=resize,
        interpolation=Resampling(int(processor.resample)).name.lower(),
        rounds_down=True,
    )


def _plain(name: str, processor: Any) -> Geometry:
    resize: int | tuple[int, int] | None = None
    if processor.do_resize:
        size = _sides(processor.size)
        shortest = size["shortest_edge"]
        if size["longest_edge"] or not (shortest or (size["height"] and size["width"])):
            raise _inexpressible(name, f"the size {dict(processor.size)}")
        resize = shortest or (size["height"], size["width"])
    if getattr(processor, "do_center_crop", None):
        crop = _sides(processor.crop_size)
        return (crop["height"], crop["width"]), resize
    if not isinstance(resize, tuple):
        raise _inexpressible(name, "pictures of many sizes")
    return resize, resize


def _convnext(processor: Any) -> Geometry:
    side = _sides(processor.size)["shortest_edge"]
    if side >= WARPED:
        return (side, side), (side, side)
    return (side, side), int(side / processor.crop_pct)


def _sides(size: Any) -> dict[str, Any]:
    """A size by its parts, whichever class it is of; None where a part is not given."""
    parts = ("height", "width", "shortest_edge", "longest_edge")
    if isinstance(size, Mapping):
        return {part: size.get(part) for part in parts}
    return {part: getattr(size, part, None) for part in parts}


def _inexpressible(name: str, what: str) -> ModelError:
    return ModelError(
        f"{name} wants {what}, which is not resize, crop and normalise; register it with "
        "@attrcheck.model and images of your own"
    )
