"""A pair with other weights that ship with the package."""

from __future__ import annotations

import functools

from torch import nn

from attrcheck.contracts import Later, Pair, Precision
from attrcheck.graph.predictor import predictor_of
from attrcheck.graph.preparing import prepare
from attrcheck.models import model as models
from attrcheck.store.digests import digest
from attrcheck.training.weights import load_weights, weights_path


@functools.lru_cache(maxsize=3)
def turned_back(pair: Pair, checkpoint: int | str) -> Pair:
    """The pair with the weights of a checkpoint in place of the last ones."""
    file = weights_path(pair.dataset.name, pair.model, checkpoint)

    @functools.cache
    def network() -> nn.Module:
        built = models.get(pair.model).network(pair.dataset)
        load_weights(built, pair.dataset.name, pair.model, checkpoint)
        return built.eval().to(pair.images.device)

    return pair.altered(
        f"checkpoint {checkpoint} {digest(file.read_bytes())}",
        network=Later(lambda: prepare(network(), pair.images[:2])),
        original=Later(network),
        predictor=Later(lambda: _as_predictor(network(), pair)),
    )


def _as_predictor(network: nn.Module, pair: Pair) -> nn.Module:
    """A network as protocols ask it, in the precision of the pair's own."""
    precision: Precision = getattr(pair.predictor, "precision", "float32")
    return predictor_of(network, pair.images[:2], precision=precision)
