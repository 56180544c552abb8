"""Observe: rows of what a protocol sees of a pair, batch by batch, and the passes that it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from attrcheck.contracts import Method, Protocol, Rows, Shared
from attrcheck.engine.attribution import Reattribution
from attrcheck.engine.pairs import Pair, check
from attrcheck.engine.retraining import retraining
from attrcheck.errors import AttrcheckError, MethodError, text_of
from attrcheck.graph.predictor import Predictor
from attrcheck.protocols.responses import joined, responses
from attrcheck.store.locking import BusyError
from attrcheck.tensors.batching import exhausted, halving
from attrcheck.tensors.transfers import sent


def observe_intact(pair: Pair) -> Rows:
    """What the model makes of the images as they are."""
    check(pair)
    return _joined(
        pair, None, lambda part: responses(pair.predictor, pair.images[part], pair.labels[part])
    )


def observe_shared(shared: Shared, pair: Pair, images: int, intact: Rows, seed: int) -> Rows:
    """What a protocol observes without a map, of the first images."""
    return _joined(
        pair, images, lambda part: shared.observe(pair.predictor, pair.batch(part, seed, intact))
    )


def observe(
    protocol: Protocol,
    pair: Pair,
    images: int,
    maps: NDArray[np.generic],
    intact: Rows,
    shared: Rows,
    again: Reattribution,
) -> tuple[Rows, list[float]]:
    """What a protocol observes of a method's maps, and the passes per image, forward and backward.

    `again` is the method, for protocols that ask for further maps or train networks on them.
    """
    model: nn.Module = pair.predictor
    if protocol.training_images:
        model = protocol.retrain(retraining(again, pair, protocol.training_images))

    passes = again.passes.copy()

    def rows_of(part: slice) -> Rows:
        before = np.array([_passes(model), 0]) + again.passes
        batch = replace(pair.batch(part, again.seed, intact), attribute=again.of(part))
        chosen = sent(torch.from_numpy(maps[part]), pair.images.device)
        known = {name: row[part] for name, row in shared.items()}
        with _naming(again.method, pair, part):
            rows = protocol.observe(model, batch, chosen, known)
        # Those of work that is done again are not counted.
        passes[:] += np.array([_passes(model), 0]) + again.passes - before
        return rows

    rows = _joined(pair, images, rows_of)
    return rows, (passes / images).tolist()


@contextmanager
def _naming(method: Method, pair: Pair, part: slice) -> Iterator[None]:
    """Say whose maps, and of which images, a protocol could not cope with."""
    try:
        yield
    except (AttrcheckError, BusyError):  # of the dataset, the model or the store
        raise
    except Exception as error:
        if exhausted(error) and part.stop - part.start > 1:  # fewer may fit
            raise
        raise MethodError(
            f"scoring method {method.name!r} on {pair.name} raised {type(error).__name__} in the "
            f"batch that starts with image {pair.dataset.ids[part][0]!r}: {text_of(error)}"
        ) from error


def _passes(model: nn.Module) -> int:
    """The images that have gone through a predictor, or through the networks in its place."""
    return sum(part.passes for part in model.modules() if isinstance(part, Predictor))


def _joined(pair: Pair, images: int | None, rows_of: Callable[[slice], Rows]) -> Rows:
    """Rows of every batch of the first images, or of all, joined; half a batch if memory runs out.

    No row depends on the others of its batch.
    """
    return joined(
        [
            rows
            for part in pair.slices(images)
            for rows in halving(rows_of, part, pair.predictor, pair.images, part.stop - part.start)
        ]
    )
