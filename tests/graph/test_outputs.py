"""Whatever a network returns, logits of the classes that count come out of it."""

import copy
from collections import namedtuple
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, fx, nn

from attrcheck.adapters import checkpoints
from attrcheck.adapters.vision import torchvision
from attrcheck.errors import ModelError
from attrcheck.graph.outputs import Chosen, Logits, chosen, unwrapped
from attrcheck.graph.predictor import predictor_of
from attrcheck.graph.preparing import prepare

IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
Pair = namedtuple("Pair", "logits aux")


@dataclass
class Output:
    logits: Tensor
    hidden: Tensor


class Net(nn.Module):
    """Five logits and four features, given out as `wrap` says."""

    def __init__(self, wrap):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(4, 5)
        self.wrap = wrap

    def forward(self, images):
        features = self.features(images).flatten(1)
        return self.wrap(self.head(features), features)


WRAPS = {
    "object": lambda logits, features: Output(logits, features),
    "named tuple": lambda logits, features: Pair(logits, features),
    "dict": lambda logits, features: {"features": features, "logits": logits},
    "dict out": lambda logits, features: {"features": features, "out": logits},
    "tuple": lambda logits, features: (logits, features),
    "features first": lambda logits, features: (features, logits),
    "list": lambda logits, features: [logits],
    "loss first": lambda logits, features: (None, logits, features),
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_logits_are_taken_out(wrap):
    network = Net(wrap)
    logits = network.head(network.features(IMAGES).flatten(1))
    result = unwrapped(network, IMAGES, classes=5)
    assert torch.equal(result(IMAGES), logits)
    assert torch.equal(copy.deepcopy(result)(IMAGES), logits)
    assert not result.training


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_the_graph_of_an_unwrapped_network_is_known(wrap):
    result = unwrapped(Net(wrap), IMAGES, classes=5)
    prepared = prepare(result)
    assert isinstance(prepared, fx.GraphModule)
    torch.testing.assert_close(prepared(IMAGES), result(IMAGES))
    torch.testing.assert_close(predictor_of(result)(IMAGES), result(IMAGES))


def test_without_as_many_columns_as_classes_the_first_tensor_is_taken():
    result = unwrapped(Net(WRAPS["tuple"]), IMAGES, classes=200)
    assert result(IMAGES).shape == (2, 5)


def test_a_network_that_returns_a_tensor_stays_itself_and_is_put_in_eval_mode():
    network = Net(lambda logits, features: logits).train()
    assert unwrapped(network, IMAGES, classes=5) is network
    assert not network.training


@pytest.mark.parametrize("name", ["googlenet", "inception_v3"])
def test_auxiliary_heads_are_for_training_only(name):
    network = getattr(torchvision.models, name)(num_classes=5, init_weights=False, aux_logits=True)
    images = torch.randn(2, 3, 96, 96)
    assert unwrapped(network.train(), images, classes=5) is network
    assert network(images).shape == (2, 5)


@pytest.mark.parametrize(
    ("wrap", "words"),
    [
        (lambda logits, features: {"a": logits}, "returns a dict of a without a tensor"),
        (lambda logits, features: (1, 2), r"returns a tuple of 2 without a tensor \[2, 5\]"),
        (lambda logits, features: "logits", "returns a str without"),
        (lambda logits, features: [logits[0]], "returns a list of 1 without"),
    ],
)
def test_an_output_without_logits_is_an_error(wrap, words):
    with pytest.raises(ModelError, match=f"Net {words}"):
        unwrapped(Net(wrap), IMAGES, classes=5)


def test_what_is_inside_is_reached_by_its_own_name():
    network = Net(WRAPS["tuple"])
    result = Logits(network, 0)
    assert result.features[0] is network.features[0]
    assert result.get_submodule("features.0") is network.features[0]
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'layer4'"):
        result.layer4  # noqa: B018


@pytest.mark.parametrize("bias", [True, False])
def test_of_a_linear_head_only_the_chosen_rows_stay(bias):
    network = Net(lambda logits, features: logits).eval()
    network.head = nn.Linear(4, 5, bias=bias)
    before = network(IMAGES)
    state = torch.random.get_rng_state()
    result = chosen(network, (4, 0, 2), 5, IMAGES)
    assert result is network
    torch.testing.assert_close(result(IMAGES), before[:, [4, 0, 2]])
    assert result.head.out_features == 3
    assert torch.equal(torch.random.get_rng_state(), state)


def test_what_follows_the_head_may_act_on_each_class():
    network = Net(lambda logits, features: logits * 2).eval()
    before = network(IMAGES)
    assert chosen(network, (4, 0, 2), 5, IMAGES) is network
    torch.testing.assert_close(network(IMAGES), before[:, [4, 0, 2]])


def test_a_head_inside_an_unwrapped_network_is_cut_too():
    result = unwrapped(Net(WRAPS["dict"]), IMAGES, classes=5)
    before = result(IMAGES)
    cut = chosen(result, (1, 3), 5, IMAGES)
    torch.testing.assert_close(cut(IMAGES), before[:, [1, 3]])
    assert cut.head.out_features == 2


class Twice(Net):
    """Its last layer is used once more."""

    def forward(self, images):
        logits = self.head(self.features(images).flatten(1))
        return self.head(logits[:, :4])


SELECTED = {
    "classes are compared": Net(lambda logits, features: logits.log_softmax(1)),
    "used twice": Twice(None),
}


@pytest.mark.parametrize("name", SELECTED)
def test_elsewhere_outputs_are_selected(name):
    network, images = SELECTED[name].eval(), torch.randn(2, 3, 64, 64)
    before = network(images)
    result = chosen(network, (4, 0, 2), 5, images)
    assert isinstance(result, Chosen)
    assert torch.equal(result(images), before[:, [4, 0, 2]])
    prepared = prepare(result)
    assert isinstance(prepared, fx.GraphModule)
    torch.testing.assert_close(prepared(images), before[:, [4, 0, 2]])


@pytest.mark.parametrize("name", ["resnet18", "vgg11", "squeezenet1_1", "vit_b_32"])
def test_the_heads_of_torchvisions_networks_are_found(name):
    network = checkpoints.seeded(lambda: getattr(torchvision.models, name)(num_classes=9)).eval()
    images = torch.randn(1, 3, 224, 224) if name == "vit_b_32" else torch.randn(1, 3, 64, 64)
    before = network(images)
    result = chosen(network, (7, 1), 9, images)
    assert result is network
    torch.testing.assert_close(result(images), before[:, [7, 1]])
