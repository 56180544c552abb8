"""Occlusion: what the logit loses when a sliding window is blanked (Zeiler and Fergus 2013)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.tensors.batching import in_batches

WINDOW, STRIDE = 8, 16
"""The window has 1/8 of the image's side and moves by 1/16 of it, both rounded up."""
WINDOWS = 15**2
"""The most windows of this size and stride that any image has room for."""


@method(
    "occlusion",
    family="perturbation",
    passes=(WINDOWS + 1, 0),
    reference="Zeiler and Fergus 2013",
)
def occlusion(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """The mean of f(x) - f(x without the window) over all windows that cover a pixel.

    What a window covers becomes zero; windows at the border end there.
    """
    images = images.detach()
    rows, columns = (_windows(side).to(images) for side in images.shape[2:])
    count = len(rows) * len(columns)

    def logits(part: slice) -> Tensor:
        """Of the images with one window blanked each: all windows of an image, then the next."""
        place = torch.arange(part.start, part.stop, device=images.device)
        image, window = place // count, place % count
        cover = rows[window // len(columns)][:, :, None] * columns[window % len(columns)][:, None]
        with torch.no_grad():
            found: Tensor = model(images[image] * (1 - cover[:, None]))
        return found.gather(1, targets[image, None])[:, 0]

    with torch.no_grad():
        intact = model(images).gather(1, targets[:, None])
    left = torch.cat(list(in_batches(logits, len(images) * count, model, images)))
    drops = (intact - left.view(len(images), count)).view(-1, len(rows), len(columns))
    total: Tensor = rows.T @ drops @ columns
    return total / torch.outer(rows.sum(0), columns.sum(0))


def _windows(side: int) -> Tensor:
    """Which of `side` places each window covers, from end to end: [windows, side], zero or one."""
    size, stride = -(-side // WINDOW), -(-side // STRIDE)
    starts = torch.arange(0, side - size + stride, stride)[:, None]
    places = torch.arange(side)
    return ((places >= starts) & (places < starts + size)).float()
