"""Exhibits: a few images of a pair with the maps of its methods, as small pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from attrcheck.contracts import Dataset
from attrcheck.engine import keys, pictures
from attrcheck.engine.evaluation import Evaluation
from attrcheck.engine.finding import find
from attrcheck.engine.results import Exhibit
from attrcheck.engine.settings import BLOCK
from attrcheck.engine.shards import Shard, key_of
from attrcheck.engine.wire import apart, together
from attrcheck.errors import AttrcheckError, cut
from attrcheck.store.digests import digest
from attrcheck.store.encoding import Entry
from attrcheck.store.entries import UnsureError

SIDE = 64
"""Pixels of the longer side of a small picture, at most."""
SHOWN, WRONG = 16, 4
"""Images in all, and how many of them the model gets wrong, if there are so many."""


def exhibit(evaluation: Evaluation, methods: Sequence[str], folder: Path) -> Exhibit:
    """The exhibit of the evaluation's pair, from the store if nothing has changed.

    methods: those whose maps could be made. Pictures in full size go to the folder of a run, so
    that where there are some the exhibit is made every time.
    """

    def compute() -> Entry:
        made = _exhibit(evaluation, methods, folder)
        if made.full or len(made.methods) < len(methods):
            raise UnsureError(made)
        facts, arrays = apart(made)
        return Entry(arrays, {"exhibit": facts})

    key = {
        **evaluation.whole,
        "methods": digest({name: key_of(find(name)) for name in methods}),
        "seed": str(evaluation.settings.seed),
        "bytes": keys.of_deciding_bytes(),
    }
    try:
        entry = evaluation.store.obtain(f"shared/{evaluation.case.pair}/exhibit", key, compute)
    except UnsureError as unsure:
        return cast(Exhibit, unsure.value)
    return together(Exhibit, entry.info["exhibit"], entry.arrays)


def _exhibit(evaluation: Evaluation, methods: Iterable[str], folder: Path) -> Exhibit:
    """The exhibit as it is made.

    The images are the first that the model gets right and the first that it gets wrong: datasets
    come in an order of which every prefix is a fair sample. Where they are large, they and their
    maps are written to the folder in full size too.
    """
    shard = evaluation.shards[0]
    pair = shard.pair
    chosen = choose(shard.intact["correct"][:BLOCK])  # the same whatever the size of a shard
    images, data = pair.made.images[:][torch.from_numpy(chosen)], pair.dataset
    maps = {}
    for name in methods:
        if (known := _maps(shard, name)) is not None:
            maps[name] = known[chosen]
    large = max(images.shape[-2:]) > SIDE
    if large:
        pictures.write(folder, pair.name, as_bytes(images), maps)
    whole = np.stack(list(maps.values())) if maps else np.empty((0, *images[:, 0].shape))
    small, scales = quantise(shrink(torch.from_numpy(whole).float()).numpy())
    return Exhibit(
        pair=pair.name,
        ids=[cut(str(data.ids[at]), 200) for at in chosen],
        positions=chosen.tolist(),
        labels=_classes(data, data.labels[chosen].tolist()),
        predictions=_classes(data, _predicted(shard, chosen).tolist()),
        probabilities=[float(value) for value in shard.intact["probability"][chosen]],
        methods=list(maps),
        images=as_bytes(shrink(images)),
        maps=small,
        scales=scales,
        full=large,
    )


def choose(correct: NDArray[np.generic]) -> NDArray[np.int64]:
    """Positions of images to show, in order: right and wrong ones, as many of each as there are."""
    right, wrong = np.flatnonzero(correct), np.flatnonzero(~correct.astype(bool))
    wanted = max(min(WRONG, len(wrong)), SHOWN - len(right))
    wrong = wrong[:wanted]
    return np.sort(np.concatenate([right[: SHOWN - len(wrong)], wrong]))


def quantise(maps: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Maps [methods, images, height, width] in whole numbers to 127, and what 127 stands for."""
    scales = np.abs(maps).max(axis=(2, 3), initial=0.0)
    shares = maps / np.where(scales > 0, scales, 1.0)[:, :, None, None]
    return np.rint(shares * 127).astype(np.int8), scales.astype(np.float32)


def shrink(planes: Tensor) -> Tensor:
    """Pictures [..., height, width] whose longer side is at most SIDE pixels; means of areas."""
    height, width = planes.shape[-2:]
    factor = SIDE / max(height, width)
    if factor >= 1 or not planes.numel():
        return planes
    size = max(1, round(height * factor)), max(1, round(width * factor))
    flat = planes.reshape(-1, 1, height, width)
    return interpolate(flat, size, mode="area").reshape(*planes.shape[:-2], *size)


def as_bytes(images: Tensor) -> NDArray[np.uint8]:
    """Images [N, C, H, W] in [0, 1] as [N, H, W, C], grey or RGB; no more is shown."""
    shown = images[:, :3] if images.shape[1] >= 3 else images[:, :1]
    return (shown.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).contiguous().cpu().numpy()


def _predicted(shard: Shard, chosen: NDArray[np.int64]) -> NDArray[np.generic]:
    """What the model takes these images for."""
    pair = shard.pair

    def ask() -> Entry:
        with torch.inference_mode():
            logits = pair.predictor(pair.images[torch.from_numpy(chosen).to(pair.device)])
        return Entry({"predicted": logits.argmax(1).cpu().numpy()})

    key = {**pair.key, "chosen": digest(chosen)}
    return shard.store.obtain(f"shared/{pair.name}/shown", key, ask).arrays["predicted"]


def _maps(shard: Shard, name: str) -> NDArray[np.float32] | None:
    """The maps of a method on a shard, which the store has as a rule; None if it fails now."""
    try:
        return np.asarray(shard.maps(find(name)).arrays["maps"], dtype=np.float32)
    except AttrcheckError:
        return None


def _classes(data: Dataset, indices: Sequence[int]) -> list[str]:
    names = data.class_names
    return [cut(names[index], 100) if index < len(names) else str(index) for index in indices]
