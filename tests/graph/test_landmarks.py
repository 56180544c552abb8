"""The last stage of a graph."""

import pytest
import torch
from torch import fx, nn
from torch.fx.passes.shape_prop import ShapeProp

from attrcheck.graph.kinds import Concat
from attrcheck.graph.landmarks import last_stage
from attrcheck.graph.preparing import prepare
from tests.worlds import random_family


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        ("resnet", nn.ReLU),
        ("vgg", nn.ReLU),
        ("inception", Concat),
        ("efficientnet", nn.SiLU),
        ("densenet", nn.ReLU),
    ],
)
def test_the_last_stage(family, kind):
    prepared = prepare(random_family(family))
    name = last_stage(prepared, torch.zeros(2, 3, 32, 32)).name
    node = next(node for node in prepared.graph.nodes if node.name == name)
    assert type(prepared.get_submodule(node.target)) is kind
    follow = next(iter(node.users))
    assert isinstance(prepared.get_submodule(follow.target), (nn.MaxPool2d, nn.AdaptiveAvgPool2d))
    values = {}

    class Note(fx.Interpreter):
        def run_node(self, n):
            values[n.name] = super().run_node(n)
            return values[n.name]

    Note(prepared).run(torch.zeros(1, 3, 32, 32))
    assert values[name].shape[2:] == (8, 8)


def test_the_last_stage_depends_on_the_image_size_and_may_not_exist():
    layers = [nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.Conv2d(4, 4, 3, 2), nn.AdaptiveAvgPool2d(1)]
    prepared = prepare(nn.Sequential(*layers, nn.Flatten(), nn.Linear(4, 2)))
    assert last_stage(prepared, torch.zeros(1, 3, 15, 15)).name == "_2"
    assert last_stage(prepared, torch.zeros(1, 3, 7, 7)).name == "_1"
    mlp = prepare(nn.Sequential(nn.Flatten(), nn.Linear(12, 2)))
    assert last_stage(mlp, torch.zeros(1, 3, 2, 2)) is None


def test_a_convolution_that_classifies_is_no_stage_if_there_is_another():
    images = torch.zeros(1, 3, 8, 8)
    head = [nn.Conv2d(3, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    layers = [nn.Conv2d(3, 3, 3), nn.ReLU(), *head]
    assert last_stage(prepare(nn.Sequential(*layers)), images).name == "_1"
    assert last_stage(prepare(nn.Sequential(*head)), images).name == "_0"
    # Behind a pooling of windows the map is not what decides.
    windows = [nn.Conv2d(3, 3, 3), nn.Conv2d(3, 2, 1), nn.AvgPool2d(2), nn.Flatten()]
    assert last_stage(prepare(nn.Sequential(*windows)), images).name == "_1"
    for family, size in (("bcos", (64, 8, 8)), ("bagnet", (128, 8, 8))):
        model = prepare(random_family(family))
        name = last_stage(model, torch.zeros(1, 3, 32, 32)).name
        shapes = ShapeProp(model)
        shapes.propagate(torch.zeros(1, 3, 32, 32))
        node = next(node for node in model.graph.nodes if node.name == name)
        assert node.meta["tensor_meta"].shape[1:] == size
