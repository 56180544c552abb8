"""Worlds to try things in: a user's project, a tiny pair, networks, images and vectors."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import attrcheck
from attrcheck.contracts import Batch, Case, Dataset, Method, Settings
from attrcheck.datasets import dataset
from attrcheck.engine.evaluation import run_case
from attrcheck.engine.lab import Lab
from attrcheck.engine.loading import Loader
from attrcheck.models import model
from attrcheck.protocols.responses import responses
from attrcheck.tensors import batching as memory
from attrcheck.training.weights import load_weights

TINY = """
import os, signal
import torch
from torch import nn
import attrcheck
from attrcheck.contracts import Dataset

@attrcheck.dataset("halves")
def halves():
    "Noise; the class says which half is brighter."
    images = torch.rand(30, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    labels = (images[..., :4].sum((1, 2, 3)) > images[..., 4:].sum((1, 2, 3))).long()
    return Dataset("halves", images, labels, 2, (0.5,), (0.3,), tuple(f"h{i}" for i in range(30)))

@attrcheck.model("linear", datasets="halves")
def linear(dataset):
    "Knows the answer."
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 2, bias=False))
    side = torch.ones(8, 8)
    side[:, 4:] = -1
    network[1].weight.data = torch.stack([-side.flatten(), side.flatten()])
    return network

@attrcheck.model("steep", datasets="halves")
def steep(dataset):
    "Knows it too."
    network = linear(dataset)
    network[1].weight.data *= 10
    return network

@attrcheck.method("exact")
def exact(model, images, targets):
    "The contributions to the logit."
    inputs = images.clone().requires_grad_()
    model(inputs).gather(1, targets[:, None]).sum().backward()
    return inputs.grad * images
"""
"""Four cases: halves x (linear, steep) x (lerf, morf)."""


METHOD = """
@attrcheck.method("{name}")
def {name}(model, images, targets):
    {body}
"""


ITEMS = """
def test_case(attr_case):
    attr_case.run()
"""


def method(name, body):
    """The source of one more method."""
    return METHOD.format(name=name, body=body)


FAMILIES = ["resnet", "vgg", "inception", "efficientnet", "densenet"]


SIDE = 32


def smooth_images(count, side=SIDE, channels=3, seed=1):
    """Smooth noise of about unit variance, centred as normalised images are."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(count, channels, side, side, generator=generator)
    return 3 * F.avg_pool2d(noise, 5, 1, 2)


def blank(classes=10):
    """All that a model needs to know of a dataset."""
    image, label = torch.zeros(1, 3, SIDE, SIDE), torch.zeros(1, dtype=torch.int64)
    return Dataset("blank", image, label, classes, (0.0,) * 3, (1.0,) * 3, ("blank/0",))


def random_family(name, seed=0):
    """An embedded model with random weights and lively batch norms."""
    torch.manual_seed(seed)
    return enliven(model.get(name).build(blank()), SIDE)


def enliven(network, side):
    """Random affine parameters in batch norms, and statistics as after training."""
    norms = [part for part in network.modules() if isinstance(part, nn.BatchNorm2d)]
    for norm in norms:
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.normal_(norm.bias, 0, 0.3)
        norm.momentum = None
    network.train()
    with torch.no_grad():
        network(smooth_images(32, side, seed=2))
    return network.eval()


def trained_family(name, count):
    """An embedded model with its weights for the shapes, and normalised images and labels."""
    data = dataset.get("shapes").load()
    network = model.get(name).build(data)
    load_weights(network, "shapes", name)
    return network.eval(), data.normalise(data.images[:count]), data.labels[:count]


def without_biases(prepared):
    """A copy in which nothing is added but signals."""
    bare = copy.deepcopy(prepared)
    for part in bare.modules():
        if getattr(part, "bias", None) is not None:
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.BatchNorm2d):
            nn.init.zeros_(part.running_mean)
    return bare


DATA = Path(__file__).parent / "data"


def batch_of(images, labels, model, seeds=None, **more):
    """Images as a protocol sees them."""
    seeds = tuple(range(len(images))) if seeds is None else seeds
    return Batch(images, labels, seeds, responses(model, images, labels), **more)


def rows_of(protocol, model, batch, maps):
    """What a protocol observes, what needs no map included."""
    shared = protocol.observe_shared(model, batch)
    return protocol.observe(model, batch, maps, shared)


def linear_model(weight):
    """Two classes: the logit of class 1 is the weighted sum of the pixels, that of class 0 is 0."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(weight.numel(), 2, bias=False))
    with torch.no_grad():
        model[1].weight.copy_(torch.stack([torch.zeros(weight.numel()), weight.flatten()]))
    return model.requires_grad_(False)


@cache
def single_deletion_vectors():
    """The network of the published single deletion, its images and targets, maps and scores."""
    files = [np.load(DATA / f"{name}.npz") for name in ("gradients", "cams", "rise")]
    arrays = {name: torch.from_numpy(file[name]) for file in files for name in file}
    network = nn.Sequential(
        nn.Conv2d(3, 8, 5, 2, 2),
        nn.Tanh(),
        nn.Conv2d(8, 12, 3, 2, 1),
        nn.Softplus(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 4),
    )
    _load(network, arrays, {0: "c1", 2: "features.0", 6: "f"})
    maps = {
        name.removeprefix("attr_"): value[:, 0]
        for name, value in arrays.items()
        if name.startswith("attr_")
    }
    maps["ixg_relu"] = maps["ixg_raw"].clamp(min=0)
    published = dict(np.load(DATA / "single_deletion.npz"))
    return network, arrays["images"], arrays["targets"], maps, published


@cache
def soundness_vectors():
    """The network of the published soundness, its images and labels, maps in [0, 1] and figures."""
    published = dict(np.load(DATA / "soundness.npz"))
    arrays = {name: torch.from_numpy(value) for name, value in published.items()}
    network = nn.Sequential(
        nn.Conv2d(3, 6, 5, padding=2),
        nn.Tanh(),
        nn.Conv2d(6, 8, 3, 2, 1),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )
    _load(network, arrays, {0: "c1", 2: "c2", 6: "f"})
    ixg, noise = arrays["smap255_ixg"] / 255, arrays["smap255_random"] / 255
    maps = {"ixg": ixg, "ixg_pow3": ixg**3, "ixg_scaled": ixg / 2, "random": noise}
    return network, arrays["images"], arrays["labels"], maps, published


def _load(network, arrays, layers):
    network.eval().requires_grad_(False)
    for place, name in layers.items():
        network[place].weight.copy_(arrays[f"w_{name}.weight"])
        network[place].bias.copy_(arrays[f"w_{name}.bias"])


def masks(height, width, seed=0):
    """Kept pixels of all sorts, by name: scattered, blobs, boxes, lines, a few pixels."""
    rng = np.random.default_rng(seed)
    y, x = np.indices((height, width))
    scattered = {
        f"scattered {percent}%": rng.random((height, width)) >= percent / 100
        for percent in (1, 10, 30, 50, 70, 90, 95, 99)
    }
    wave = sum(
        rng.normal()
        * np.cos(2 * np.pi * (rng.normal() * y + rng.normal() * x) / max(height, width))
        for _ in range(20)
    )
    blobs = {
        f"blobs {percent}%": wave > np.quantile(wave, percent / 100) for percent in (10, 50, 90)
    }
    margin = max(1, min(height, width) // 18)
    within = (np.minimum(y, height - 1 - y) >= margin) & (np.minimum(x, width - 1 - x) >= margin)
    shapes = {
        "box": ~within,
        "box kept": within,
        "corner": (y >= height // 2) | (x >= width // 2),
        "two sides": (y == 0) | (x == 0),
        "stripes": y % 2 == 1,
        "wide stripes": x % 8 == 3,
        "chessboard": (y + x) % 2 == 0,
        "lattice": (y % 5 == 2) & (x % 5 == 2),
        "diagonals": (y - x) % 9 == 0,
        "one kept": (y == height // 3) & (x == width // 5),
        "two kept": ((y == 0) & (x == 0)) | ((y == height - 1) & (x == width - 1)),
        "last column kept": x == width - 1,
        "one missing": (y != height // 2) | (x != width // 2),
    }
    return {name: keep for name, keep in {**scattered, **blobs, **shapes}.items() if keep.any()}


IMAGES, CHANNELS, TINY_SIDE, CLASSES = 8, 2, 5, 3
# Everything here is small: more threads would only wait for each other, and for other workers.
torch.set_num_threads(1)


def tiny_dataset(name="tiny", count=IMAGES, **changes):
    """Noise images with an id each; labels go round."""
    generator = torch.Generator().manual_seed(1)
    settings = {
        "name": name,
        "images": torch.rand(count, CHANNELS, TINY_SIDE, TINY_SIDE, generator=generator),
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


def load(dataset, model, images=None, device="cpu", tuning=None):
    """A pair, loaded anew."""
    return Loader(device).pair(dataset, model, images, tuning)


@dataclass
class Tiny:
    """Dataset `tiny`, model `linear`, methods `gradient` and `brightness`, and a store."""

    folder: Path
    methods: tuple[str, ...] = ("brightness", "slope")
    dataset = staticmethod(tiny_dataset)
    network = staticmethod(tiny_network)
    loader: Loader = field(default_factory=lambda: Loader("cpu"))

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
            accept_accuracy=True,  # its network guesses
        )
        return replace(plain, **changes)

    def run(self, case="tiny-linear-morf", **changes):
        """Run one case on the store in the folder, in the same process as the last."""
        return run_case(self.lab(**changes).evaluation(Case.of(case)), lambda text: None)

    def lab(self, **changes):
        """A lab on the store in the folder, with the pairs that are loaded."""
        lab = Lab.of(self.settings(**changes))
        self.loader.store = lab.store
        return replace(lab, loader=self.loader)

    def restart(self):
        """Forget what is loaded, as a new process would."""
        self.loader = Loader("cpu")

    @property
    def pair(self):
        """The pair, loaded."""
        return self.loader.pair("tiny", "linear")

    def method(self, function, name="broken", **settings):
        """A method that is not registered."""
        return Method(name, function, **settings)

    def in_batches_of(self, images, monkeypatch):
        """Cut all images into batches of this size."""
        monkeypatch.setitem(memory.QUICK_ELEMENTS, "cpu", images * CHANNELS * TINY_SIDE * TINY_SIDE)
        self.restart()
