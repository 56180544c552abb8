"""Is this the network for these images? Its outputs must be logits, its accuracy above chance."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import bdtrc
from torch import Tensor, nn

from attrcheck.contracts import Protocol
from attrcheck.errors import ModelError, text_of

LEAST_IMAGES = 30
"""With fewer, an accuracy says too little."""
LEVEL = 0.01
"""Of the binomial test: a model that guesses is taken for a better one this often."""
SUM_TOLERANCE = 1e-3
CAUSES = (
    "likely causes are classes in another order than the model's, labels that are off by one, "
    "other preprocessing than the model was trained with, or weights that are not loaded"
)
OVERRIDE = "--attr-accept-accuracy"


class FewImages(UserWarning):
    """A protocol that wants more images than it got: single images decide its scores."""


def warn_of_few(protocol: Protocol, name: str, images: int) -> None:
    """Say so if there are fewer images than a protocol needs."""
    if images < protocol.least_images:
        warnings.warn(
            f"{name} wants at least {protocol.least_images} images and has {images}: single images "
            "decide its scores",
            FewImages,
            stacklevel=4,
        )


def check_logits(output: Any, images: int, classes: int, where: str) -> None:
    """Raise ModelError unless an output is finite logits [images, classes], not probabilities."""
    shape = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
    if shape != [images, classes]:
        raise ModelError(
            f"{where}: the output must be logits [{images}, {classes}], one row per image, but is "
            f"{shape}" + _of_others(shape, images)
        )
    if not output.isfinite().all():
        raise ModelError(f"{where}: logits are not finite")
    if classes > 1 and are_probabilities(output):
        raise ModelError(
            f"{where}: the outputs are probabilities, as each row sums to one; let the network "
            "return logits: leave out its last softmax"
        )


def refusal(error: Exception, network: nn.Module, images: Tensor, where: str) -> ModelError:
    """What to say of a network that cannot be run on its images."""
    wanted = images.dtype
    others = {part.dtype for part in network.parameters() if part.is_floating_point()} - {wanted}
    remedy = "does it want pictures of another size, or other channels?"
    if others:
        remedy = (
            f"its weights are {_name(others.pop())} and images {_name(wanted)}; convert it by "
            "network.float()"
        )
    return ModelError(
        f"{where} raised {type(error).__name__} for images {list(images.shape)}: "
        f"{' '.join(text_of(error).split())}; {remedy}"
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def are_probabilities(output: Tensor) -> bool:
    """Whether all values lie in [0, 1] and all rows sum to one."""
    sums = output.double().sum(dim=1)
    bounded = bool(((output >= 0) & (output <= 1)).all())
    return bounded and bool(torch.all((sums - 1).abs() < SUM_TOLERANCE))


def near_chance(correct: int, images: int, classes: int) -> bool:
    """Whether a guess among the classes may well be right as often; False for too few images.

    One-sided binomial test: P(at least so many are right) > LEVEL. (`scipy.stats` has it too, and
    takes longer to import than all of attrcheck.)
    """
    if images < LEAST_IMAGES or classes < 2:
        return False
    return bool(bdtrc(correct - 1, images, 1 / classes) > LEVEL)


def caveats(
    correct: NDArray[np.generic], labels: NDArray[np.generic], classes: int, accept: bool
) -> list[str]:
    """What a reader must know of a pair's images; ModelError if the model seems to guess."""
    images, right = len(correct), int(np.sum(correct))
    remarks = []
    if classes > 1 and images > 1 and len(np.unique(labels)) == 1:
        remarks.append(f"all {images} images are of one class")
    if near_chance(right, images, classes):
        text = (
            f"accuracy {right / images:.1%} of {images} images is near chance ({1 / classes:.1%})"
        )
        if not accept:
            raise ModelError(f"{text}: {CAUSES}; {OVERRIDE} runs it all the same")
        remarks.append(text)
    return remarks


def _of_others(shape: Any, images: int) -> str:
    """What to do about a model that has other classes than the dataset."""
    if not isinstance(shape, list) or len(shape) != 2 or shape[0] != images:
        return ""
    return (
        "; if some of these are the dataset's classes, return attrcheck.Model(network, "
        "class_names=...), one name per output, and name the dataset's classes alike"
    )
