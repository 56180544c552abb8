"""Fine-tuned models: those that ship with the package, those of the store, else made at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from attrcheck.contracts import Dataset, Tuning
from attrcheck.engine import keys
from attrcheck.models import ModelSpec
from attrcheck.store.encoding import Entry
from attrcheck.store.entries import Store
from attrcheck.training.finetuning import finetune
from attrcheck.training.weights import load_weights, read_about, weights_path

SEED = 0
"""Of the fine-tuning, whatever the seed of the run: a model is what it is."""


def name_of(dataset: str, model: str, tuning: Tuning) -> str:
    """The name of a fine-tuned model in the store."""
    return f"tuned/{dataset}-{model}/{tuning.key}"


def ships(dataset: str, spec: ModelSpec, tuning: Tuning) -> bool:
    """Whether the package has the fine-tuned weights, made from those of the model as it ships."""
    if not (spec.embedded and weights_path(dataset, spec.name, tuning.key).exists()):
        return False
    base = read_about(dataset, spec.name, tuning.key)["base"]
    return bool(base == read_about(dataset, spec.name)["sha256"])  # else trained anew since


def tuned(
    network: nn.Module,
    data: Dataset,
    spec: ModelSpec,
    tuning: Tuning,
    store: Store | None,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[nn.Module, Mapping[str, Any]]:
    """The network after fine-tuning, in eval mode, and what is known of it.

    `data` is the whole dataset, so that the figures do not depend on how much of it is evaluated.
    What does not ship with the package is made once, by one worker, and kept in the store.
    """
    if ships(data.name, spec, tuning):
        load_weights(network, data.name, spec.name, tuning.key)
        return network, read_about(data.name, spec.name, tuning.key)

    def compute() -> Entry:
        what = f"fine-tuning {data.name}-{spec.name}"
        after, facts = finetune(
            network, data, tuning, seed=SEED, report=lambda text: progress(f"{what}: {text}")
        )
        arrays = {name: value.cpu().numpy() for name, value in after.state_dict().items()}
        return Entry(arrays, facts)

    if store is None:
        entry = compute()
    else:
        store.open()
        key = keys.of_tuned(network, data, spec.build, tuning)
        entry = store.obtain(name_of(data.name, spec.name, tuning), key, compute)
    weights = {name: torch.from_numpy(array.copy()) for name, array in entry.arrays.items()}
    network.load_state_dict(weights)
    return network.eval(), entry.info
