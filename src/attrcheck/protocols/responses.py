"""What a classifier makes of images: the rows that most protocols are built from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Batch, Rows
from attrcheck.tensors.transfers import fetched

Answers: TypeAlias = Mapping[str, Tensor]
"""Rows that are still where the model is."""


def answers(model: nn.Module, images: Tensor, labels: Tensor) -> Answers:
    """Whether the model is right, and its probability and logit at the label, for each image."""
    with torch.inference_mode():
        logits = model(images)
        at_label = labels[:, None]
        return {
            "correct": logits.argmax(1) == labels,
            "probability": logits.softmax(1).gather(1, at_label)[:, 0],
            "logit": logits.gather(1, at_label)[:, 0],
        }


def responses(model: nn.Module, images: Tensor, labels: Tensor) -> Rows:
    """The answers of the model as rows."""
    return fetched(answers(model, images, labels))


def stacked(steps: Iterable[Rows | Answers], **others: Tensor) -> Rows:
    """Rows of one step after another, along a second axis: [N] becomes [N, steps]; and others.

    What is still on a GPU is fetched at the end, with the others, so that no step waits.
    """
    steps = list(steps)
    asked = [step for step in steps if all(isinstance(row, Tensor) for row in step.values())]
    names = list(steps[0])
    joint = {name: torch.stack([step[name] for step in asked]) for name in names if asked}  # type: ignore[misc]
    rows = fetched({**joint, **others})
    for name in names:
        fresh = iter(rows.get(name, ()))
        values = [step[name] for step in steps]
        columns = [value if isinstance(value, np.ndarray) else next(fresh) for value in values]
        rows[name] = np.stack(columns, axis=1)
    return rows


def losses(model: nn.Module, batch: Batch, kept: Iterable[Tensor]) -> Rows:
    """What the label's logit and probability lose in one altered image after another, [N, K]."""
    left = stacked(answers(model, images, batch.labels) for images in kept)
    return {
        name: batch.intact[name][:, None].astype(np.float64) - left[name].astype(np.float64)
        for name in ("logit", "probability")
    }


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows of one batch after another."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def named(parts: Mapping[str, Rows]) -> Rows:
    """Rows of several protocols side by side: `row` of `part` becomes `part_row`."""
    return {f"{part}_{name}": row for part, rows in parts.items() for name, row in rows.items()}


def standard_errors(values: NDArray[np.generic]) -> NDArray[np.float64]:
    """Of the means over images of [N, steps]; NaN for a single image."""
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)), dtype=np.float64)
