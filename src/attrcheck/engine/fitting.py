"""Fit a network to a dataset: logits out of what it returns, of the dataset's classes, in order."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset, Model
from attrcheck.errors import AttrcheckError
from attrcheck.graph.outputs import chosen, unwrapped
from attrcheck.models.classes import matched

TRIED = 2
"""Images that a network is tried on, where nothing else tells what it returns."""


def fitted(built: Model, data: Dataset, class_names: tuple[str, ...], device: str) -> nn.Module:
    """The network in eval mode on the device, whose logits are those of the dataset's classes.

    class_names: as the dataset itself has them, () if it has none. A network that is right already
    stays as it is, and does not run.
    """
    network = built.network.eval().to(device)
    outputs = len(built.class_names)
    try:
        noise = _noise(data, device)
        network = unwrapped(network, noise, outputs or data.classes)
        if not built.class_names:
            return network  # with the wrong number of outputs, the check of the pair refuses it
        places = matched(class_names, built.class_names, data.classes, outputs)
        in_order = places == tuple(range(outputs))
        return network if in_order else chosen(network, places, outputs, noise)
    except AttrcheckError as error:
        raise type(error)(f"dataset {data.name!r}: {error}") from error


def _noise(data: Dataset, device: str) -> Tensor:
    """Images without any sense, so that none has to be read."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn((TRIED, *data.images.shape[1:]), generator=generator).to(device)
