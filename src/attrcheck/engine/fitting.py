"""Fit a network to a dataset: logits out of what it returns, of the dataset's classes, in order."""

from __future__ import annotations

from torch import nn

from attrcheck.contracts import Dataset
from attrcheck.engine.pairs import noise_like
from attrcheck.engine.plausibility import refusal
from attrcheck.errors import AttrcheckError
from attrcheck.graph.outputs import chosen, unwrapped
from attrcheck.graph.tracing import Tracer
from attrcheck.models import ModelSpec
from attrcheck.models.classes import matched
from attrcheck.tensors.batching import exhausted


def fitted(
    network: nn.Module,
    class_names: tuple[str, ...],
    data: Dataset,
    data_names: tuple[str, ...],
    device: str,
    spec: ModelSpec,
) -> nn.Module:
    """The network, whose logits are those of the dataset's classes.

    class_names, data_names: the classes of the model and of the dataset, () where not known. A
    network that is right already stays as it is; most need not run to tell.
    """
    where = f"model {spec.name!r} on dataset {data.name!r}"
    outputs, noise = len(class_names), noise_like(data, device)
    tracer = Tracer(None, spec.leaf, spec.concrete_args)
    try:
        network = unwrapped(network, noise, outputs or data.classes, tracer)
        if not class_names:
            return network  # with the wrong number of outputs, the check of the pair refuses it
        places = matched(data_names, class_names, data.classes, outputs)
        in_order = places == tuple(range(outputs))
        return network if in_order else chosen(network, places, outputs, noise)
    except AttrcheckError as error:
        raise type(error)(f"{where}: {error}") from error
    except Exception as error:
        if exhausted(error):
            raise
        raise refusal(error, network, noise, where) from error
