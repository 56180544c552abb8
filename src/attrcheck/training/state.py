"""Read the weights of a public network from a file on disk."""

from __future__ import annotations

from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor, nn

from attrcheck.training.weights import WeightsError

WRAPPERS = ("state_dict", "model", "net")
UNUSED = "num_batches_tracked"


def read_state(path: Path) -> dict[str, Tensor]:
    """The state dict in a .safetensors file, or in one of torch.save, read without running code."""
    try:
        if path.suffix == ".safetensors":
            return safetensors.torch.load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise WeightsError(f"cannot read weights from {path}: {error}") from error
    for wrapper in WRAPPERS:
        state = state.get(wrapper, state)
    return {key.removeprefix("module."): value for key, value in state.items()}


def fill(network: nn.Module, state: dict[str, Tensor], path: Path) -> nn.Module:
    """The network with this state, in eval mode; every weight must fit and none be left over."""
    known = network.state_dict()
    # Older files lack the counters of batch norms, which do nothing in eval mode.
    counters = {key: value for key, value in known.items() if key.endswith(UNUSED)}
    wanted = {key: value for key, value in state.items() if key in known or UNUSED not in key}
    try:
        network.load_state_dict({**counters, **wanted})
    except RuntimeError as error:
        raise WeightsError(f"{path} does not fit the network: {error}") from error
    return network.eval()
