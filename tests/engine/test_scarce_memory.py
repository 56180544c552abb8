"""A protocol whose batch does not fit goes on with half of it, and its rows are the same."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attrcheck.contracts import Protocol, Reduction
from attrcheck.engine.attribution import Reattribution
from attrcheck.engine.observing import observe, observe_intact, observe_shared
from attrcheck.errors import MethodError
from attrcheck.graph.predictor import Predictor
from attrcheck.methods import method
from attrcheck.protocols import protocol

NAMES = ("morf", "ids_updated", "sds", "soundness", "road_lerf")


class Scarce(Predictor):
    """A predictor on a device that has room for a few images."""

    def __init__(self, predictor, room):
        super().__init__(predictor.network, predictor.pure)
        self.room = room
        self.sizes = []

    def forward(self, images):
        self.sizes.append(len(images))
        logits = super().forward(images)
        if len(images) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return logits


def observed(name, pair):
    """All rows of a protocol, and the passes per image."""
    chosen = protocol.get(name).make("smoke")
    again = Reattribution(method.get("gradient"), pair, 0)
    maps = again.of(slice(0, 8))(pair.images).numpy()
    again.passes[:] = 0
    intact = observe_intact(pair)
    shared = observe_shared(chosen.shared, pair, 8, intact, 0) if chosen.shared else {}
    rows, passes = observe(chosen, pair, 8, maps, intact, shared, again)
    return {**intact, **shared, **rows}, passes


def scarce(pair, room):
    predictor = Scarce(pair.predictor, room)
    return pair.altered("", predictor=predictor), predictor


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("room", "failed"), [(2, [8, 4]), (5, [8])])
def test_rows_and_passes_are_those_of_the_whole_batch(name, room, failed, tiny):
    pair = tiny.pair if name != "sds" else even(tiny)
    wanted, passes = observed(name, pair)
    small, predictor = scarce(pair, room)
    rows, spent = observed(name, small)
    assert spent == passes
    assert rows.keys() == wanted.keys()
    for row in rows:
        assert np.allclose(rows[row], wanted[row], atol=1e-5, equal_nan=True), row
    # Cut when the intact images are looked at, and not tried in full again.
    assert [size for size in predictor.sizes if size > room] == failed


def even(tiny):
    """Images that a grid of cells divides."""
    data = tiny.dataset("even", images=torch.rand(8, 2, 8, 8))
    return replace(tiny.lab().pair_of(tiny.network(data), data), model="linear")


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("out of memory"), ValueError("no")])
def test_what_does_not_fit_at_all_is_an_error_of_the_method_that_is_scored(error, tiny):
    class Hungry(Protocol):
        higher_is_better = True

        def observe(self, model, batch, maps, shared):
            raise error

        def reduce(self, rows):
            return Reduction(0.0)

    again = Reattribution(method.get("gradient"), tiny.pair, 0)
    with pytest.raises(MethodError, match=f"scoring method 'gradient'.* {type(error).__name__}"):
        observe(Hungry(), tiny.pair, 8, np.zeros((8, 5, 5)), {}, {}, again)
