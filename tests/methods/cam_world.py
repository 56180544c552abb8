"""What tests of CAMs share: subjects, the reference network, and one that is worked out by hand."""

import copy
import functools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attrcheck.graph.landmarks import last_stage
from attrcheck.graph.preparing import prepare
from attrcheck.methods import method

CAMS = [
    *("gradcam", "gradcam_pp", "smooth_gradcam_pp", "xgradcam", "layercam", "scorecam"),
    *("ablation_cam", "eigencam"),
]


SEEDS = (11, 12)


each_cam = pytest.mark.parametrize("name", CAMS)


def attribute(name, model, images, targets, seeds=SEEDS, **settings):
    if name == "smooth_gradcam_pp":
        settings["seeds"] = seeds
    return method.get(name).attribute(model, images, targets, **settings)


def at_stage(model, image, target):
    """Activations and gradients [K, h, w] of the last stage of one image, by plain hooks."""
    model = copy.deepcopy(model)
    kept = []
    name = last_stage(model, image[None]).name
    node = next(n for n in model.graph.nodes if n.name == name)
    model.get_submodule(node.target).register_forward_hook(lambda *call: kept.append(call[2]))
    logit = model(image[None].clone().requires_grad_())[0, target]
    return kept[0][0].detach(), torch.autograd.grad(logit, kept[0])[0][0]


def enlarge(cam, image):
    return F.interpolate(cam[None, None], image.shape[1:], mode="bilinear")[0, 0]


def tiny(weight, side=2):
    """A 1x1 convolution that copies channels, a rectifier, a global mean and a linear head."""
    channels = len(weight[0])
    network = nn.Sequential(
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.ReLU(),
        nn.AvgPool2d(side),
        nn.Flatten(),
        nn.Linear(channels, len(weight), bias=False),
    )
    network[0].weight.data = torch.eye(channels)[:, :, None, None]
    network[4].weight.data = torch.tensor(weight)
    return prepare(network)


IMAGE = torch.tensor([[[[1.0, 0.0], [2.0, 1.0]], [[0.0, 3.0], [0.0, 0.0]]]])


ignore_coarse = pytest.mark.filterwarnings("ignore::attrcheck.methods.stages.CoarseGrid")


class Published(nn.Module):
    """The network of the reference maps."""

    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 8, 5, 2, 2)
        self.features = nn.Sequential(nn.Conv2d(8, 12, 3, 2, 1), nn.Softplus())
        self.f = nn.Linear(12, 4)

    def forward(self, x):
        return self.f(self.features(torch.tanh(self.c1(x))).mean((2, 3)))


@functools.cache
def published():
    """The reference network, prepared, and the arrays of the reference."""
    with np.load(Path(__file__).parents[1] / "data" / "cams.npz") as file:
        arrays = {name: torch.from_numpy(file[name]) for name in file}
    network = Published()
    weights = {name[2:]: value for name, value in arrays.items() if name.startswith("w_")}
    network.load_state_dict(weights)
    return prepare(network), arrays
