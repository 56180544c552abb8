"""What tests of gradient methods share: trained subjects, maps by name, relative errors."""

import inspect
from functools import cache
from pathlib import Path

import pytest
import torch

from attrcheck.contracts import Dataset
from attrcheck.graph.preparing import prepare
from attrcheck.methods import method
from attrcheck.methods.integrated import BACKGROUND
from tests import worlds
from tests.worlds import FAMILIES

VECTORS = Path(__file__).parents[1] / "data" / "gradients.npz"


COUNT = 3


SEEDS = (11, 12, 13)


@cache
def subject(family, weights="trained"):
    """A prepared model, the dataset, images that are not its background, and targets."""
    network, images, _ = worlds.trained_family(family, BACKGROUND + COUNT)
    if weights == "random":
        network = worlds.random_family(family)
    model, images = prepare(network), images[BACKGROUND:]
    return model, shapes(), images, model(images).argmax(1)


@cache
def shapes():
    from attrcheck.datasets import dataset

    return dataset.get("shapes").load().head(BACKGROUND + COUNT)


def attribute(name, model, data, images, targets, seeds=SEEDS):
    """The map, with what the method asks for."""
    function = method.get(name).attribute
    offers = {"seeds": tuple(seeds), "dataset": data}
    asked = {key: offers[key] for key in offers if key in inspect.signature(function).parameters}
    return function(model, images, targets, **asked)


def error(found, wanted):
    """The largest error, relative to the largest value of the same image."""
    found, wanted = found.reshape(len(found), -1), wanted.reshape(len(wanted), -1)
    return ((found - wanted).abs().amax(1) / wanted.abs().amax(1)).max().item()


def dataset_of(images):
    """A dataset whose normalisation does nothing to zero-centred images in units of a quarter."""
    zeros = torch.zeros(len(images), dtype=torch.int64)
    ids = tuple(map(str, range(len(images))))
    channels = images.shape[1]
    return Dataset("own", images / 4 + 0.5, zeros, 10, (0.5,) * channels, (0.25,) * channels, ids)


each_family = pytest.mark.parametrize("family", FAMILIES)


def logits(model, images, targets):
    with torch.no_grad():
        return model(images).gather(1, targets[:, None])[:, 0]
