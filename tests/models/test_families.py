import pytest
import torch
from torch import fx, nn

from attrcheck.contracts import Dataset
from attrcheck.datasets import dataset
from attrcheck.models import model
from attrcheck.training.loop import accuracy
from attrcheck.training.weights import CHECKPOINTS, load_weights, read_about, weights_path

FAMILIES = ["resnet", "vgg", "inception", "efficientnet", "densenet", "vit", "bcos", "bagnet"]
DATASETS = ["digits", "objects", "shapes"]
PAIRS = [(name, family) for name in DATASETS for family in FAMILIES]


@pytest.fixture(scope="module")
def data() -> dict[str, Dataset]:
    return {name: dataset.get(name).load() for name in DATASETS}


def blank(channels: int = 3, classes: int = 8, side: int = 32) -> Dataset:
    return Dataset(
        "blank",
        torch.zeros(1, channels, side, side),
        torch.zeros(1, dtype=torch.int64),
        classes,
        (0.0,) * channels,
        (1.0,) * channels,
        ("blank/0",),
    )


def kinds(network: nn.Module) -> set[type]:
    return {type(part) for part in network.modules()}


def calls(network: nn.Module) -> list[object]:
    return [node.target for node in fx.symbolic_trace(network).graph.nodes]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("channels", "classes", "side"), [(1, 10, 32), (3, 8, 32), (3, 12, 64)])
def test_size_and_output(family, channels, classes, side):
    spec = model.get(family)
    assert spec.embedded
    network = spec.build(blank(channels, classes, side)).eval()
    assert 50_000 <= sum(part.numel() for part in network.parameters()) <= 120_000
    assert network(torch.zeros(2, channels, side, side)).shape == (2, classes)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_trace_computes_the_same(family):
    network = model.get(family).build(blank()).eval()
    images = torch.randn(3, 3, 32, 32)
    assert torch.equal(fx.symbolic_trace(network)(images), network(images))


@pytest.mark.parametrize("side", [32, 64])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_feature_map_is_eight_by_eight(family, side):
    network = model.get(family).build(blank(side=side)).eval()
    maps = []
    for part in network.modules():
        if isinstance(part, nn.Conv2d) and part.kernel_size == (3, 3):
            part.register_forward_hook(lambda _, __, output: maps.append(output.shape[-2:]))
    network(torch.zeros(1, 3, side, side))
    assert tuple(maps[-1]) == (8, 8)


def test_resnet_adds_and_reuses_its_relu():
    network = model.get("resnet").build(blank())
    targets = calls(network)
    assert sum(getattr(target, "__name__", "") == "add" for target in targets) == 4
    relus = [target for target in targets if str(target).endswith("relu")]
    assert len(relus) == 2 * len(set(relus))
    assert any(
        isinstance(part, nn.Conv2d) and part.kernel_size == (1, 1) and part.stride == (2, 2)
        for part in network.modules()
    )


def test_vgg_is_a_plain_stack():
    network = model.get("vgg").build(blank())
    assert kinds(network) == {
        nn.Sequential, nn.Conv2d, nn.ReLU, nn.MaxPool2d, nn.Flatten, nn.Linear
    }  # fmt: skip
    assert sum(isinstance(part, nn.Linear) for part in network.modules()) == 2


def test_inception_concatenates_four_branches():
    targets = fx.symbolic_trace(model.get("inception").build(blank())).graph.nodes
    branches = [len(node.args[0]) for node in targets if node.target is torch.cat]
    assert branches == [4, 4, 4]


def test_efficientnet_gates_and_filters_each_channel():
    network = model.get("efficientnet").build(blank())
    assert {nn.SiLU, nn.Sigmoid} <= kinds(network)
    assert nn.ReLU not in kinds(network)
    assert any(
        isinstance(part, nn.Conv2d) and part.groups == part.in_channels > 1
        for part in network.modules()
    )
    names = [getattr(target, "__name__", "") for target in calls(network)]
    assert "mul" in names
    assert "add" in names


def test_densenet_concatenates_and_ends_in_a_functional_relu():
    network = model.get("densenet").build(blank())
    targets = calls(network)
    assert targets.count(torch.cat) == 9
    assert targets.count(nn.functional.relu) == 1
    assert nn.AvgPool2d in kinds(network)


@pytest.mark.parametrize(("name", "family"), PAIRS)
def test_shipped_weights_are_as_good_as_they_say(data, name, family):
    network = model.get(family).build(data[name])
    load_weights(network, name, family)
    stated = read_about(name, family)["accuracy"]
    images = data[name].normalise(data[name].images)
    assert accuracy(network, images, data[name].labels) == pytest.approx(stated, abs=1e-3)


@pytest.mark.parametrize(("name", "family"), PAIRS)
def test_digits_are_nearly_solved_and_the_others_leave_room(name, family):
    low, high = {"digits": (0.97, 1.0), "shapes": (0.85, 0.98), "objects": (0.80, 0.95)}[name]
    assert low <= read_about(name, family)["accuracy"] <= high


@pytest.mark.parametrize(("name", "family"), PAIRS)
def test_every_checkpoint_loads_and_training_helped(data, name, family):
    network = model.get(family).build(data[name])
    for checkpoint in CHECKPOINTS:
        load_weights(network, name, family, checkpoint)
        assert read_about(name, family, checkpoint)["checkpoint"] == checkpoint
    hashes = {weights_path(name, family, checkpoint).read_bytes() for checkpoint in CHECKPOINTS}
    assert len(hashes) == len(CHECKPOINTS)
    assert read_about(name, family)["accuracy"] > read_about(name, family, 25)["accuracy"]
