"""Fixtures for all tests: registries that are left as found, and a tiny world to run cases in."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import attrcheck
from attrcheck import loading, memory
from attrcheck.cases import Case
from attrcheck.datasets import Dataset
from attrcheck.engine import run_case
from attrcheck.methods import Method
from attrcheck.settings import Settings
from attrcheck.store import Store

REGISTRIES = (
    attrcheck.check,
    attrcheck.dataset,
    attrcheck.method,
    attrcheck.model,
    attrcheck.protocol,
    attrcheck.removal,
)
IMAGES, CHANNELS, SIDE, CLASSES = 8, 2, 5, 3

# Everything here is small: more threads would only wait for each other, and for other workers.
torch.set_num_threads(1)


@pytest.fixture
def registries():
    """Take away what a test registers; built-ins stay, since they are imported only once."""
    before = [set(registry._entries) for registry in REGISTRIES]
    yield REGISTRIES
    for registry, names in zip(REGISTRIES, before, strict=True):
        for name in set(registry._entries) - names - set(registry._declared):
            del registry._entries[name]


@pytest.fixture
def loaded():
    """No dataset and no model in memory, before and after."""

    def clear():
        loading.load.cache_clear()
        loading._load_dataset.cache_clear()

    clear()
    yield clear
    clear()


def tiny_dataset(name="tiny", count=IMAGES, **changes):
    """Noise images with an id each; labels go round."""
    generator = torch.Generator().manual_seed(1)
    settings = {
        "name": name,
        "images": torch.rand(count, CHANNELS, SIDE, SIDE, generator=generator),
        "labels": torch.arange(count) % CLASSES,
        "classes": CLASSES,
        "mean": (0.5,) * CHANNELS,
        "std": (0.25,) * CHANNELS,
        "ids": tuple(f"picture{index}" for index in range(count)),
    }
    return Dataset(**(settings | changes))


def tiny_network(data):
    """A linear classifier with fixed weights, a batch norm's buffers and a nonlinearity."""
    torch.manual_seed(2)
    norm = nn.BatchNorm2d(data.channels)
    norm.running_mean.uniform_(-0.1, 0.1)
    inputs = data.images[0].numel()
    layers = [nn.ReLU(), norm, nn.Flatten(), nn.Linear(inputs, data.classes)]
    return nn.Sequential(*layers).requires_grad_(False)


def gradient(model, images, targets):
    """Gradient times input."""
    inputs = images.clone().requires_grad_()
    model(inputs).gather(1, targets[:, None]).sum().backward()
    return inputs.grad * images


def brightness(model, images, targets):
    """The input itself: needs no pass of the model."""
    return images.abs().sum(1)


@dataclass
class Tiny:
    """Dataset `tiny`, model `linear`, methods `gradient` and `brightness`, and a store."""

    folder: Path
    methods: tuple[str, ...] = ("brightness", "slope")
    dataset = staticmethod(tiny_dataset)
    network = staticmethod(tiny_network)

    def add(self, name, function, **settings):
        """Register one more method, and let it take part."""
        attrcheck.method(name, **settings)(function)
        self.methods = (*self.methods, name)

    def settings(self, **changes):
        """Settings of a run with all of the tiny methods."""
        plain = Settings(
            profile="default",
            images=None,
            seed=0,
            methods=self.methods,
            store=self.folder,
            fresh=False,
            run="this-run",
            device="cpu",
            threads=1,
            memory=None,
        )
        return replace(plain, **changes)

    def run(self, case="tiny-linear-morf", **changes):
        """Run one case on the store in the folder."""
        settings = self.settings(**changes)
        store = Store(settings.store, settings.run, settings.fresh)
        return run_case(Case.of(case), settings, store, lambda text: None)

    @property
    def setup(self):
        """The pair, loaded."""
        return loading.load("tiny", "linear", None, "cpu")

    def method(self, function, name="broken", **settings):
        """A method that is not registered."""
        return Method(name, function, **settings)

    def in_batches_of(self, images, monkeypatch):
        """Cut all images into batches of this size."""
        monkeypatch.setitem(memory.QUICK_ELEMENTS, "cpu", images * CHANNELS * SIDE * SIDE)
        loading.load.cache_clear()


@pytest.fixture
def tiny(registries, loaded, tmp_path):
    """A world of its own: a dataset, a model, two methods, a store; see `Tiny`."""
    attrcheck.dataset("tiny")(tiny_dataset)
    attrcheck.model("linear", datasets="tiny*")(tiny_network)
    attrcheck.method("slope")(gradient)
    attrcheck.method("brightness")(brightness)
    return Tiny(tmp_path / "store")


@pytest.fixture
def passes(monkeypatch):
    """How many images each pass of a linear layer took, in order."""
    sizes = []
    forward = nn.Linear.forward

    def counted(self, inputs):
        sizes.append(len(inputs))
        return forward(self, inputs)

    monkeypatch.setattr(nn.Linear, "forward", counted)
    return sizes


@pytest.fixture
def same_arrays():
    """Whether two dictionaries hold the same arrays, bit for bit."""

    def same(left, right):
        return left.keys() == right.keys() and all(
            left[name].dtype == right[name].dtype
            and left[name].shape == right[name].shape
            and left[name].tobytes() == np.asarray(right[name]).tobytes()
            for name in left
        )

    return same
