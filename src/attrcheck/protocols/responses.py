"""What a classifier makes of images: the rows that most protocols are built from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Rows


def responses(model: nn.Module, images: Tensor, labels: Tensor) -> Rows:
    """Whether the model is right, and its probability and logit at the label, for each image."""
    with torch.inference_mode():
        logits = model(images)
        at_label = labels[:, None]
        return {
            "correct": (logits.argmax(1) == labels).cpu().numpy(),
            "probability": logits.softmax(1).gather(1, at_label)[:, 0].cpu().numpy(),
            "logit": logits.gather(1, at_label)[:, 0].cpu().numpy(),
        }


def stacked(steps: Iterable[Rows]) -> Rows:
    """Rows of one step after another, along a second axis: [N] becomes [N, steps]."""
    steps = list(steps)
    return {name: np.stack([rows[name] for rows in steps], axis=1) for name in steps[0]}


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
