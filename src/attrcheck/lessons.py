"""What a protocol needs to train networks of its own: the training split, and a method's maps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from attrcheck.attribution import Retrial
from attrcheck.loading import Setup
from attrcheck.models import model as models
from attrcheck.models._fast import fast
from attrcheck.models._train import recipe_for, trained
from attrcheck.protocols import Lessons
from attrcheck.seeds import derive


def lessons(retrial: Retrial, count: int) -> Lessons:
    """The first images of the training split, and the maps of the method on trial."""
    learnt = of_training(retrial.setup, count)
    again = replace(retrial, setup=learnt)  # counts into the same passes
    learn = learner(learnt, retrial.seed)

    def counted(images: Tensor, epochs: int) -> nn.Module:
        retrial.passes += epochs * len(images)
        return learn(images, epochs)

    return Lessons(
        images=learnt.images,
        seeds=learnt.seeds(slice(None), retrial.seed, "ties"),
        maps=torch.cat([again.on(part)(learnt.images[part]) for part in learnt.slices()]),
        learn=counted,
    )


def learner(learnt: Setup, seed: int) -> Callable[[Tensor, int], nn.Module]:
    """Trains the architecture of a pair anew, on images in the place of its own.

    Every network starts from the same weights: only what it sees makes the difference.
    """
    recipe = recipe_for(learnt.dataset.name, learnt.model)
    device = learnt.images.device

    def build() -> nn.Module:
        return models.get(learnt.model).build(learnt.dataset).to(device)

    def learn(images: Tensor, epochs: int) -> nn.Module:
        first = derive(seed, "retraining", learnt.pair)
        return fast(trained(build, images, learnt.labels, replace(recipe, epochs=epochs), first))

    return learn


def of_training(setup: Setup, count: int) -> Setup:
    """The pair with the first images of the training split in the place of the held-out ones."""
    data = setup.dataset
    assert data.training is not None, "cases that need a training split have one"
    images, labels = (part[:count] for part in data.training())
    ids = tuple(f"{data.name}/training/{place}" for place in range(len(images)))
    part = replace(data, images=images, labels=labels, ids=ids, masks=None)
    device = setup.images.device
    normalised = data.normalise(images.to(device))
    return replace(setup, dataset=part, whole=None, images=normalised, labels=labels.to(device))
