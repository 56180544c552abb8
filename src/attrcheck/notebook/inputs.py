"""What people hand over in a notebook, checked, as a pair that the engine can work with."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Dataset, Method
from attrcheck.datasets import counted
from attrcheck.datasets.receiving import labels_of, masks_of, tensor_of
from attrcheck.engine.pairs import Pair, pair_of
from attrcheck.engine.plausibility import check_logits, refusal
from attrcheck.errors import AttrcheckError
from attrcheck.graph.outputs import unwrapped
from attrcheck.methods import method as methods

Array: TypeAlias = "Tensor | NDArray[Any]"
Numbers: TypeAlias = float | Sequence[float]

NAME = "images-model"
"""DATASET-MODEL where no name is given."""
BYTES = 20.0
"""Above this the largest value of images without negatives can only be one of 0 to 255."""
CHANNELS = (1, 3)
"""Of images as most people have them."""
PATIENCE = 1.0
"""Seconds before there is anything to say of progress."""


class InputError(AttrcheckError, ValueError):
    """Images, targets or maps that do not fit together; the message says what to write."""


@dataclass(frozen=True, eq=False)
class Watched(Pair):
    """A pair that says how far its images have got, batch by batch."""

    say: Callable[[str], None] = lambda text: None
    started: float = field(default_factory=time.perf_counter)

    def slices(self, images: int | None = None) -> Iterator[slice]:
        """The batches, as of any pair."""
        total = len(self.images) if images is None else min(images, len(self.images))
        for part in super().slices(images):
            spent = time.perf_counter() - self.started
            if spent > PATIENCE and part.start:
                left = spent / part.start * (total - part.start)
                self.say(f"image {part.start} of {total}, about {left:.0f} s left")
            yield part


def pair_for(
    model: nn.Module,
    images: Array,
    targets: Any,
    *,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    masks: Any = None,
    background: Array | None = None,
    ids: Sequence[str] | None = None,
    name: str = NAME,
    say: Callable[[str], None] = lambda text: None,
) -> Watched:
    """The model and its images as the engine takes them; InputError says what is wrong."""
    if not isinstance(model, nn.Module):
        raise InputError(f"the model is a {type(model).__name__}, not a torch.nn.Module")
    if name.count("-") != 1:
        raise InputError(f"the name {name!r} is not of the form DATASET-MODEL")
    if training := [at for at, part in model.named_modules() if part.training]:
        which = f"part {training[0]!r} of the model" if training[0] else "the model"
        raise InputError(f"{which} is in training mode: call model.eval() before")
    pixels = images_of(images, "images", given=std is not None).to(**_place(model))
    channels = pixels.shape[1]
    means = per_channel(0.0 if mean is None else mean, channels, "mean")
    stds = per_channel(1.0 if std is None else std, channels, "std")
    if any(value <= 0 for value in stds):
        raise InputError(f"std {stds} must be above zero")
    network, classes = _network(model, pixels)
    dataset, model_name = name.split("-")
    data = Dataset(
        name=dataset,
        images=pixels,
        labels=_targets(targets, len(pixels), classes),
        classes=classes,
        mean=means,
        std=stds,
        ids=_ids(ids, len(pixels)),
        masks=None if masks is None else _masks(masks, pixels),
    )
    data = replace(data, images=data.denormalise(pixels))
    pair = pair_of(network, data, model_name, str(pixels.device))
    parts: dict[str, Any] = {
        **vars(pair),
        "whole": None if background is None else _reference(data, background),
        "changes": {"images": pixels},
    }
    return Watched(**parts, say=say)


def method_of(method: str | Method | Callable[..., Any]) -> Method:
    """The method of a name, or the one that a function is."""
    if isinstance(method, Method):
        return method
    if isinstance(method, str):
        return methods.get(method)
    if not callable(method):
        raise InputError(f"a {type(method).__name__} is neither a method nor the name of one")
    return Method(str(getattr(method, "__name__", type(method).__name__)), method)


def images_of(images: Array, what: str, given: bool = False) -> Tensor:
    """Images [N, C, H, W] as a model takes them; `given`: whether it is said what white is."""
    tensor = tensor_of(images, "RGB", what)
    shape = list(tensor.shape)
    if tensor.ndim != 4 or not tensor.numel():
        remedy = "; for a single image write images[None]" if tensor.ndim == 3 else ""
        remedy = remedy if tensor.numel() else ": there are no images"
        raise InputError(f"{what} must be [N, C, H, W], not {shape}{remedy}")
    if shape[3] in CHANNELS and shape[1] not in CHANNELS:
        raise InputError(
            f"{what} {shape} have their channels last: write {what}.permute(0, 3, 1, 2), or "
            f"{what}.transpose(0, 3, 1, 2) of an array"
        )
    if not tensor.is_floating_point():
        raise InputError(
            f"{what} are {str(tensor.dtype).removeprefix('torch.')}: give them as the model takes "
            "them, floats that are normalised as in its training"
        )
    if not (finite := tensor.isfinite().flatten(1).all(dim=1)).all():
        raise InputError(f"image {int(finite.int().argmin())} has values that are not finite")
    if not given and tensor.min() >= 0 and tensor.max() > BYTES:
        raise InputError(
            f"{what} have values from {tensor.min():.4g} to {tensor.max():.4g}: give them as the "
            "model takes them, normalised; if it does take 0 to 255, say so by std=1/255"
        )
    return tensor


def maps_of(maps: Any, images: Tensor) -> NDArray[np.float32]:
    """Maps [N, H, W] of the images, from those or [N, 1, H, W]."""
    tensor = tensor_of(maps, "L", "maps")
    n, _, height, width = images.shape
    if list(tensor.shape) == [n, 1, height, width]:
        tensor = tensor[:, 0]
    if list(tensor.shape) != [n, height, width]:
        raise InputError(
            f"maps are {list(tensor.shape)}, for images {list(images.shape)}: wanted "
            f"{[n, height, width]}, one number per pixel"
        )
    array: NDArray[np.float32] = tensor.to("cpu", torch.float32).numpy()
    if not (finite := np.isfinite(array).all(axis=(1, 2))).all():
        raise InputError(f"the map of image {int(finite.argmin())} has values that are not finite")
    return array


def _reference(data: Dataset, background: Array) -> Dataset:
    """The images that methods take backgrounds and statistics from in place of the dataset's."""
    images = images_of(background, "background", given=True).to(data.images[:1])
    if images.shape[1:] != data.images.shape[1:]:
        raise InputError(
            f"images of the background are {list(images.shape[1:])}, and not "
            f"{list(data.images.shape[1:])} as the others"
        )
    return replace(
        data,
        images=data.denormalise(images),
        labels=torch.zeros(len(images), dtype=torch.int64),
        ids=_ids(None, len(images)),
        masks=None,
    )


def _place(model: nn.Module) -> dict[str, Any]:
    """The device and the type of a model's weights."""
    weights = [*model.parameters(), *model.buffers()]
    floats = [part for part in weights if part.is_floating_point()]
    if not floats:
        return {"dtype": torch.float32}
    return {"device": floats[0].device, "dtype": floats[0].dtype}


def _network(model: nn.Module, images: Tensor) -> tuple[nn.Module, int]:
    """The network whose output is its logits, and the number of these."""
    try:
        network = unwrapped(model, images[:2], 0)
        with torch.inference_mode():
            output = network(images[:2])
    except AttrcheckError:
        raise
    except Exception as error:
        raise InputError(str(refusal(error, model, images[:2], "the model"))) from error
    if not isinstance(output, Tensor) or output.ndim != 2:
        told = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise InputError(f"the model returns {told}, and not logits [N, classes], a row per image")
    check_logits(output, len(images[:2]), output.shape[1], "the model")
    return network, output.shape[1]


def _targets(given: Any, images: int, classes: int) -> Tensor:
    if isinstance(given, int):
        raise InputError(f"targets is one number; give one class per image: [{given}] * {images}")
    targets = labels_of(given, "targets").cpu()
    if len(targets) != images:
        raise InputError(f"{images} images but {len(targets)} targets")
    wrong = (targets < 0) | (targets >= classes)
    if wrong.any():
        at = int(wrong.int().argmax())
        raise InputError(
            f"target {int(targets[at])} of image {at} is not one of the model's {classes} classes"
            f"{counted(targets.tolist(), classes)}"
        )
    return targets


def _masks(given: Any, images: Tensor) -> Tensor:
    masks = masks_of(given)[:]
    wanted = [len(images), *images.shape[2:]]
    if list(masks.shape) != wanted:
        raise InputError(f"masks are {list(masks.shape)}: wanted {wanted}")
    return masks.bool()


def _ids(given: Sequence[str] | None, images: int) -> tuple[str, ...]:
    ids = tuple(map(str, range(images) if given is None else given))
    if len(ids) != images:
        raise InputError(f"{images} images but {len(ids)} ids")
    return ids


def per_channel(given: Numbers, channels: int, what: str) -> tuple[float, ...]:
    """One number for each channel, from as many or from one."""
    numbers = np.asarray(given, dtype=np.float64).reshape(-1).tolist()
    numbers = numbers * channels if len(numbers) == 1 else numbers
    if len(numbers) != channels:
        raise InputError(f"{len(numbers)} numbers as {what} for images of {channels} channels")
    return tuple(numbers)
