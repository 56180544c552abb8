"""Between the CPU and a GPU: what is sent is not waited for, what comes back is waited for once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


def sent(tensor: Tensor, to: Tensor | torch.device) -> Tensor:
    """The tensor on a device, or where another is and of its type; CUDA is not waited for."""
    device = to.device if isinstance(to, Tensor) else to
    return tensor.to(to, non_blocking=device.type == "cuda")


def fetched(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """All tensors as arrays; CUDA copies one after the other, and is waited for at the end."""
    gpus = {tensor.device for tensor in tensors.values() if tensor.is_cuda}
    copies = {
        name: tensor.detach().to("cpu", non_blocking=tensor.is_cuda)
        for name, tensor in tensors.items()
    }
    for gpu in gpus:
        torch.cuda.current_stream(gpu).synchronize()
    return {name: copy.numpy() for name, copy in copies.items()}


def which_equal(pairs: Iterable[tuple[Tensor, Tensor]]) -> list[bool]:
    """Of each pair, whether type, shape and all values are the same; CUDA is waited for once."""
    known: dict[int, bool] = {}
    asked: dict[str, Tensor] = {}
    for place, (one, other) in enumerate(pairs):
        kinds = [(t.dtype, t.shape, t.device, t.layout) for t in (one, other)]
        if kinds[0] != kinds[1]:
            known[place] = False
        elif one.is_cuda:
            asked[str(place)] = (one == other).all()
        else:
            known[place] = torch.equal(one, other)
    answers = {int(place): bool(answer) for place, answer in fetched(asked).items()}
    return [(known | answers)[place] for place in range(len(known) + len(answers))]


def exact(tensor: Tensor) -> Tensor:
    """In float64, for sums and ranks that must not depend on rounding.

    Where it is, or on the CPU if its device has no float64, as Apple's.
    """
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()
