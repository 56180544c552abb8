"""What holds for every protocol: each law is a function of a protocol and a scene to try it in.

A law raises AssertionError. `attrcheck.testing` lets hypothesis invent the scenes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attrcheck.contracts import Protocol, Rows
from attrcheck.graph.guard import Snapshot
from attrcheck.laws.scenes import Scene

CLOSE = 1e-6
"""Rows in float64 that differ by more than this are not the same."""
RESAMPLES = 8
TELLING = 16
"""Enough images that chance does not decide."""

Law: TypeAlias = Callable[[Protocol, Scene], None]


def laws_of(protocol: Protocol) -> Iterator[Law]:
    """The laws that bind a protocol, by what it declares."""
    yield law_settings_are_its_name
    yield law_rows_are_those_of_the_images
    yield law_rows_depend_on_no_other_image
    yield law_observing_again_gives_the_same_rows
    yield law_observing_changes_nothing
    yield law_the_score_is_as_declared
    yield law_resampling_is_repeating_images
    yield law_settling_is_fair
    yield law_the_truth_scores_no_worse_than_its_opposite
    if protocol.sees == "order":
        yield law_only_the_order_of_a_map_counts


def law_settings_are_its_name(protocol: Protocol, scene: Scene) -> None:
    """Records are told apart by the protocol's fields, which must say the same in every run."""
    fields = getattr(protocol, "__dataclass_params__", None)
    frozen = fields is not None and fields.frozen
    name = type(protocol).__name__
    assert frozen, f"{name} must be a frozen dataclass, whose fields are its settings"
    assert " at 0x" not in repr(protocol), f"{protocol!r} shows an address, new in every run"


def law_rows_are_those_of_the_images(protocol: Protocol, scene: Scene) -> None:
    """The first axis of every row is the image."""
    for name, row in scene.observe(protocol).items():
        assert isinstance(row, np.ndarray), f"row {name!r} is not a numpy array"
        shape = list(row.shape)
        assert shape[:1] == [scene.count], f"row {name!r} of {scene.count} images has shape {shape}"
    for name, row in protocol.observe_shared(scene.model, scene.batch()).items():
        assert row.shape[:1] == (scene.count,), f"shared row {name!r} has shape {row.shape}"


def law_rows_depend_on_no_other_image(protocol: Protocol, scene: Scene) -> None:
    """Any batch size and any order give the same rows."""
    whole, rng = scene.observe(protocol), scene.rng("order")
    order = rng.permutation(scene.count).tolist()
    size = int(rng.integers(1, scene.count + 1))
    for start in range(0, scene.count, size):
        part = order[start : start + size]
        rows = {name: row[part] for name, row in whole.items()}
        _same(rows, scene.observe(protocol, part), "in another batch")


def law_observing_again_gives_the_same_rows(protocol: Protocol, scene: Scene) -> None:
    """Random numbers come from the seeds of the images, and from nowhere else."""
    rows: list[Rows] = []
    states = torch.get_rng_state(), np.random.get_state()
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)
        rows.append(scene.observe(protocol))
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])
    _same(rows[0], rows[1], "the second time")


def law_observing_changes_nothing(protocol: Protocol, scene: Scene) -> None:
    """The model, the images, the labels, the maps and what is shared are left as they were."""
    batch, maps = scene.batch(), scene.chosen.clone()
    shared = protocol.observe_shared(scene.model, batch)
    tensors = {"images": batch.images, "labels": batch.labels, "masks": scene.masks, "maps": maps}
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    known = {**batch.intact, **{f"shared {name}": row for name, row in shared.items()}}
    rows = {name: row.copy() for name, row in known.items()}
    observer = scene.observer(protocol)
    snapshot = Snapshot.of(observer)
    protocol.observe(observer, batch, maps, shared)
    assert snapshot.change(observer) is None, f"observe {snapshot.change(observer)}"
    for name, tensor in tensors.items():
        assert torch.equal(tensor, before[name]), f"observe changed the {name} that it was given"
    _same(rows, known, "after observe")


def law_the_score_is_as_declared(protocol: Protocol, scene: Scene) -> None:
    """A number within the bounds, or NaN; the mean over images where they have scores."""
    assert isinstance(protocol.higher_is_better, bool), "higher_is_better must be True or False"
    reduced = protocol.reduce(scene.observe(protocol))
    low, high = protocol.bounds
    assert isinstance(reduced.score, float), (
        f"the score is a {type(reduced.score).__name__}, not a float"
    )
    defined = not np.isnan(reduced.score)
    assert not defined or low <= reduced.score <= high, (
        f"{reduced.score} is not in {protocol.bounds}"
    )
    assert 0 <= reduced.undefined <= scene.count, f"{reduced.undefined} images are undefined"
    if reduced.curve is not None:
        x, y = reduced.curve
        plain = all(isinstance(value, float | int) for value in (*x, *y))
        assert plain, "a curve is two lists of plain numbers, which JSON can hold"
        assert len(x) == len(y), f"a curve with {len(x)} places and {len(y)} values"
    if reduced.per_image is not None:
        scores = reduced.per_image[np.isfinite(reduced.per_image)]
        missing = scene.count - len(scores)
        assert len(reduced.per_image) == scene.count, (
            "per_image has a score, or NaN, for each image"
        )
        assert reduced.undefined >= missing, (
            f"{missing} images have no score, undefined says {reduced.undefined}"
        )
        mean = scores.mean() if len(scores) else np.nan
        assert _close(mean, reduced.score), (
            f"the mean over images is {mean}, the score {reduced.score}"
        )


def law_resampling_is_repeating_images(protocol: Protocol, scene: Scene) -> None:
    """Intervals come from the scores of images drawn with replacement."""
    rows = scene.observe(protocol)
    chances = np.full(scene.count, 1 / scene.count)
    drawn = scene.rng("counts").multinomial(scene.count, chances, size=RESAMPLES)
    counts: NDArray[np.int64] = np.concatenate([np.ones((1, scene.count), dtype=np.int64), drawn])
    repeated = [
        protocol.reduce({name: row.repeat(count, axis=0) for name, row in rows.items()}).score
        for count in counts
    ]
    resampled = protocol.resample(rows, counts)
    assert _close(resampled[0], repeated[0]), (
        f"all images once: {resampled[0]}, reduced: {repeated[0]}"
    )
    for one, other, count in zip(resampled, repeated, counts, strict=True):
        assert _close(one, other), f"drawn {count.tolist()} times: {one}, rows repeated: {other}"


def law_settling_is_fair(protocol: Protocol, scene: Scene) -> None:
    """What competitors settle on does not depend on their order, and there may be none."""
    rivals = [scene.observe(protocol), scene.observe(protocol, truth=True)]
    one, other = protocol.settle(rivals), protocol.settle(rivals[::-1])
    assert one.higher_is_better == protocol.settle([]).higher_is_better == protocol.higher_is_better
    for rows in rivals:
        scores = [settled.reduce(rows).score for settled in (one, other)]
        assert _close(*scores), f"the score depends on the order of the competitors: {scores}"
        low, high = protocol.bounds
        assert np.isnan(scores[0]) or low <= scores[0] <= high, f"{scores[0]} is out of bounds"


def law_the_truth_scores_no_worse_than_its_opposite(protocol: Protocol, scene: Scene) -> None:
    """What each pixel adds to the logit, against its opposite: higher_is_better is right."""
    scene = replace(scene, count=TELLING)

    def opposite(maps: Tensor) -> Tensor:
        return maps.amax((1, 2), keepdim=True) - maps

    rivals = [
        scene.observe(protocol, truth=True),
        scene.observe(protocol, bend=opposite, truth=True),
    ]
    settled = protocol.settle(rivals)
    best, worst = (settled.reduce(rows).score for rows in rivals)
    lead = best - worst if protocol.higher_is_better else worst - best
    assert np.isnan(lead) or lead >= -CLOSE, f"the truth scores {best}, its opposite {worst}"


def law_only_the_order_of_a_map_counts(protocol: Protocol, scene: Scene) -> None:
    """Any strictly increasing transform of the values leaves every row as it is."""

    def bend(maps: Tensor) -> Tensor:
        values, places = np.unique(maps.numpy(), return_inverse=True)
        steps = scene.rng("steps").integers(1, 1000, size=len(values))
        rising = steps.cumsum() - steps.sum() / 2
        return torch.from_numpy(rising.astype(np.float32)[places].reshape(maps.shape))

    _same(scene.observe(protocol), scene.observe(protocol, bend=bend), "after a transform")


def _same(rows: Rows, others: Rows, when: str) -> None:
    """Floats are equal up to rounding, all else exactly."""
    assert rows.keys() == others.keys(), f"other rows {when}: {sorted(rows.keys() ^ others.keys())}"
    for name, row in rows.items():
        other = others[name]
        same = row.shape == other.shape and row.dtype == other.dtype
        if same and np.issubdtype(row.dtype, np.inexact):
            same = np.allclose(row, other, rtol=CLOSE, atol=CLOSE, equal_nan=True)
        else:
            same = same and np.array_equal(row, other)
        assert same, f"row {name!r} is not the same {when}"


def _close(one: float, other: float) -> bool:
    return bool(np.isclose(one, other, rtol=1e-9, atol=1e-9, equal_nan=True))
