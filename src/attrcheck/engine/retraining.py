"""Training on a method's maps: what a protocol gets that trains networks of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from attrcheck.contracts import Retraining
from attrcheck.engine.attribution import Reattribution
from attrcheck.engine.pairs import Pair
from attrcheck.graph.predictor import predictor_of
from attrcheck.models import model as models
from attrcheck.store.seeds import derive
from attrcheck.training.loop import recipe_for, trained


def retraining(again: Reattribution, pair: Pair, count: int) -> Retraining:
    """The first images of the training split, and the method's maps of them."""
    learnt = of_training(pair, count)
    maps_of = replace(again, pair=learnt)  # counts into the same passes
    train = trainer(learnt, again.seed)

    def counted(images: Tensor, epochs: int) -> nn.Module:
        again.passes += epochs * len(images)
        return train(images, epochs)

    return Retraining(
        images=learnt.images,
        seeds=learnt.seeds(slice(None), again.seed, "ties"),
        maps=torch.cat([maps_of.of(part)(learnt.images[part]) for part in learnt.slices()]),
        train=counted,
    )


def trainer(learnt: Pair, seed: int) -> Callable[[Tensor, int], nn.Module]:
    """Trains the architecture of a pair anew, on images in place of its own.

    Every network starts from the same weights: only what it sees makes the difference.
    """
    recipe = recipe_for(learnt.dataset.name, learnt.model)
    device = learnt.images.device

    def build() -> nn.Module:
        return models.get(learnt.model).network(learnt.dataset).to(device)

    def train(images: Tensor, epochs: int) -> nn.Module:
        first = derive(seed, "retraining", learnt.name)
        network = trained(build, images, learnt.labels, replace(recipe, epochs=epochs), first)
        return predictor_of(network, precision=learnt.forms.precision)

    return train


def of_training(pair: Pair, count: int) -> Pair:
    """The pair with the first images of the training split in place of the held-out ones."""
    data = pair.dataset
    assert data.training is not None, "cases that need a training split have one"
    images, labels = (part[:count] for part in data.training())
    ids = tuple(f"{data.name}/training/{place}" for place in range(len(images)))
    part = replace(data, images=images, labels=labels, ids=ids, masks=None)
    return pair.altered(f"training {count}", dataset=part, whole=None)
