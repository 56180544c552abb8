"""Fine-tuned models: those that ship with the package, those of the store, else made at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from attrcheck.datasets import Dataset
from attrcheck.fingerprint import digest, of_code
from attrcheck.models import ModelSpec
from attrcheck.models._tuning import Tuning, finetune
from attrcheck.models._weights import load_weights, read_about, weights_path
from attrcheck.store import Entry, Store

SEED = 0
"""Of the fine-tuning, whatever the seed of the run: a model is what it is."""


def tuned(
    network: nn.Module, data: Dataset, spec: ModelSpec, tuning: Tuning, store: Store | None
) -> tuple[nn.Module, dict[str, Any]]:
    """The network after fine-tuning, in eval mode, and the facts of it.

    `data` is the whole dataset, so that the facts do not depend on how much of it is evaluated.
    What does not ship with the package is made once, by one worker, and kept in the store.
    """
    if spec.embedded and weights_path(data.name, spec.name, tuning.key).exists():
        about = read_about(data.name, spec.name, tuning.key)
        if about["base"] == read_about(data.name, spec.name)["sha256"]:  # else trained anew since
            load_weights(network, data.name, spec.name, tuning.key)
            return network, about
    fingerprint = digest(
        dict(network.state_dict()),
        data.fingerprint,
        of_code(spec.build),
        of_code(finetune),
        of_code(data.training) if data.training else "",
        tuning,
        torch.__version__,
    )

    def compute() -> Entry:
        after, facts = finetune(network, data, tuning, seed=SEED)
        arrays = {name: value.cpu().numpy() for name, value in after.state_dict().items()}
        return Entry(arrays, facts)

    if store is None:
        entry = compute()
    else:
        store.open()
        entry = store.obtain(f"tuned/{data.name}-{spec.name}/{tuning.key}", fingerprint, compute)
    weights = {name: torch.from_numpy(array.copy()) for name, array in entry.arrays.items()}
    network.load_state_dict(weights)
    return network.eval(), entry.info
