"""RemOve And Retrain: what is important must be missed by a model that never saw it (ROAR).

Hooker et al. 2019. No protocol: the networks that judge are trained on maps of the training split,
one for each method and fraction, and a protocol sees neither those maps nor a network that learns.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from attrcheck.attribution import attribute_batch
from attrcheck.bench import find
from attrcheck.checks import Verdict, check
from attrcheck.checks._training import accuracy, trained
from attrcheck.lab import Lab
from attrcheck.loading import Setup, load
from attrcheck.models import model as models
from attrcheck.models._train import recipe_for
from attrcheck.protocols._order import most, pixel_counts, ranks_of
from attrcheck.removal import removal
from attrcheck.seeds import derive

METHODS = ("gradcam", "input_x_gradient", "saliency")
DUMMY = "random"
TENTHS = {"smoke": (5,), "default": (5, 9), "full": (1, 3, 5, 7, 9)}
"""Removed fractions, by profile."""
TRAINING = {"smoke": 300, "default": 3000, "full": 10000}
HELD_OUT = {"smoke": 100, "default": 1000, "full": 1000}
EPOCHS = {"smoke": 2, "default": 8}
"""As many as the recipe says where none is given."""


@check("roar", over="models", default=False, sampled=True)
def roar(lab: Lab, dataset: str, model: str) -> Verdict:
    """Retrained without what a method calls important, a model is worse than without random pixels.

    Figures: the accuracy of networks retrained without the top of each method's maps, the lower,
    the better; `random` is the floor. By the removed fraction, and its mean.
    """
    settings, profile = lab.settings, lab.settings.profile
    setup = load(dataset, model, HELD_OUT[profile], settings.device)
    if setup.dataset.training is None:
        return Verdict(None, {}, "the dataset has no training split to retrain on")
    if not models.get(model).embedded:
        return Verdict(None, {}, "only embedded models are built without weights, to learn anew")
    learnt = of_training(setup, TRAINING[profile])
    figures: dict[str, float] = {}
    for name in (DUMMY, *METHODS):
        if find(name).applies(setup.network):
            continue
        lab.progress(f"roar of {setup.pair}: {name}")
        ranks = [ranked(part, name, settings.seed) for part in (learnt, setup)]
        found = [retrained(setup, learnt, ranks, tenth, lab) for tenth in TENTHS[profile]]
        figures[name] = float(np.mean(found))
        figures |= {
            f"{name}_{tenth}0": each for tenth, each in zip(TENTHS[profile], found, strict=True)
        }
    return verdict(figures, len(setup.images))


def of_training(setup: Setup, count: int) -> Setup:
    """The pair with the first images of the training split in the place of the held-out ones."""
    data = setup.dataset
    assert data.training is not None
    images, labels = (part[:count] for part in data.training())
    ids = tuple(f"{data.name}/training/{place}" for place in range(len(images)))
    part = replace(data, images=images, labels=labels, ids=ids, masks=None)
    device = setup.images.device
    normalised = data.normalise(images.to(device))
    return replace(setup, dataset=part, images=normalised, labels=labels.to(device))


def ranked(setup: Setup, method: str, seed: int) -> Tensor:
    """The place of every pixel in the map of its image, [N, H, W]."""
    found = []
    for part in setup.slices():
        maps = torch.from_numpy(attribute_batch(find(method), setup, part, seed))
        found.append(ranks_of(maps.to(setup.images.device), setup.seeds(part, seed, "ties")))
    return torch.cat(found)


def retrained(setup: Setup, learnt: Setup, ranks: list[Tensor], tenth: int, lab: Lab) -> float:
    """The accuracy of a network that learns, and is asked, without the top tenths of the pixels."""
    (count,) = pixel_counts(ranks[0][0].numel(), (tenth,), 10)
    images, seen = (
        removal.get("mean")(part.images, ~most(places, count))
        for part, places in zip((learnt, setup), ranks, strict=True)
    )
    recipe = recipe_for(setup.dataset.name, setup.model)
    recipe = replace(recipe, epochs=EPOCHS.get(lab.settings.profile, recipe.epochs))

    def build() -> nn.Module:
        return models.get(setup.model).build(setup.dataset).to(images.device)

    seed = derive(lab.settings.seed, "roar", setup.pair, "weights")
    return accuracy(trained(build, images, learnt.labels, recipe, seed), seen, setup.labels)


def verdict(figures: dict[str, float], images: int) -> Verdict:
    """Whether some method is missed more than noise, by two standard errors of a difference."""
    chance = 2 * float(np.sqrt(0.5 / images))
    better = [name for name in METHODS if figures.get(name, 1.0) < figures[DUMMY] - chance]
    told = ", ".join(f"{name} {figures[name]:.3f}" for name in METHODS if name in figures)
    reason = f"no method is missed more than noise, {figures[DUMMY]:.3f}: {told}"
    return Verdict(bool(better), figures, "" if better else reason)
