"""Functions are exposed: a network written with them has the maps of its twin made of modules."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attrcheck.graph.kinds import Mean, Sum
from attrcheck.graph.predictor import predictor_of
from attrcheck.graph.preparing import prepare
from attrcheck.methods import method as methods
from tests.graph.prepared import assert_ready, assert_same_output, kinds
from tests.graph.twins import CifarResNet, Functions
from tests.reference import change
from tests.worlds import enliven, smooth_images

META_RANK = [
    *("input_x_gradient", "integrated_gradients", "deeplift", "saliency", "lrp"),
    *("guided_backprop", "guided_gradcam", "deconvolution"),
]
OTHERS = ["lrp_epsilon", "lrp_gamma", "gradcam", "gradcam_pp", "layercam", "xgradcam"]


def twins(kind, side=32):
    """The network with functions and its twin, with the same weights, and images for them."""
    torch.manual_seed(0)
    one = enliven(kind(), side)
    other = kind(modular=True)
    other.load_state_dict(one.state_dict())
    return one, other.eval(), smooth_images(3, side)


@pytest.mark.parametrize("name", [*META_RANK, *OTHERS])
@pytest.mark.parametrize("kind", [CifarResNet, Functions])
def test_maps_are_those_of_the_twin_made_of_modules(kind, name):
    one, other, images = twins(kind)
    targets, method = torch.tensor([0, 1, 2]), methods.get(name)
    maps = []
    for network in (one, other):
        prepared = prepare(network, images)
        assert method.not_applicable(prepared) is None
        maps.append(method.attribute(prepared, images, targets))
    assert torch.equal(*maps)
    assert maps[0].abs().max() > 0


@pytest.mark.parametrize("kind", [CifarResNet, Functions])
def test_deeplift_sums_to_the_difference(kind):
    network, _, images = twins(kind)
    prepared = prepare(network.double(), images.double())
    targets = torch.tensor([0, 1, 2])
    sums = methods.get("deeplift").attribute(prepared, images.double(), targets).sum((1, 2))
    wanted = change(network, images.double()).gather(1, targets[:, None])[:, 0]
    torch.testing.assert_close(sums, wanted, rtol=1e-6, atol=1e-9)


def test_every_layer_is_a_module():
    network, twin, images = twins(Functions)
    prepared = prepare(network, images)
    assert_ready(prepared)
    assert_same_output(network, prepared, images)
    assert (
        kinds(prepared)
        == kinds(prepare(twin, images))
        == [
            *(nn.ZeroPad2d, nn.Conv2d, nn.ReLU, nn.ReflectionPad2d, nn.Conv2d, nn.Upsample),
            *(nn.MaxPool2d, nn.AdaptiveAvgPool2d, Mean, nn.Linear, nn.Linear),
        ]
    )
    assert not [node for node in prepared.graph.nodes if node.op == "call_function"]


def test_a_pooling_over_all_that_is_left_needs_to_know_the_size_of_images():
    network, _, images = twins(CifarResNet)
    assert nn.AvgPool2d in kinds(prepare(network, images))
    blind = prepare(network)
    assert_same_output(network, blind, images)
    assert "avg_pool2d" in methods.get("lrp").not_applicable(blind)


@pytest.mark.parametrize("kind", [CifarResNet, Functions])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_graph_takes_any_number_of_images(kind, count):
    network, _, images = twins(kind)
    more = smooth_images(count, 32, seed=5)
    assert_same_output(network, prepare(network, images), more)
    assert_same_output(network, predictor_of(network, images), more)


class Reduces(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how, self.head = how, nn.LazyLinear(3)

    def forward(self, x):
        return self.head(self.how(x).flatten(1))


REDUCTIONS = {
    "mean": (lambda x: x.mean((2, 3)), Mean),
    "tokens": (lambda x: x.flatten(2).transpose(1, 2).mean(1), Mean),
    "last axis": (lambda x: torch.mean(x, -1, True), Mean),
    "by keyword": (lambda x: torch.mean(input=x, dim=[2], keepdim=True), Mean),
    "axis": (lambda x: x.sum(axis=3), Sum),
    "sum": (lambda x: torch.sum(x, (-2, -1)), Sum),
    "channels": (lambda x: x.sum(-3), Sum),
}


@pytest.mark.parametrize("how", REDUCTIONS)
def test_means_and_sums_of_each_image_are_modules(how):
    function, kind = REDUCTIONS[how]
    network, images = Reduces(function).eval(), smooth_images(2, 4)
    network(images)
    prepared = prepare(network, images)
    assert_same_output(network, prepared, images)
    assert kind in kinds(prepared)
    assert all(methods.get(name).not_applicable(prepared) is None for name in ("lrp", "deeplift"))


class MixesImages(nn.Module):
    def __init__(self, axis):
        super().__init__()
        self.axis, self.head = axis, nn.Linear(48, 3)

    def forward(self, x):
        return self.head((x - x.mean(self.axis, keepdim=True)).flatten(1))


@pytest.mark.parametrize("axis", [0, -4, (0, 1)])
def test_a_mean_over_images_is_not_exposed(axis):
    images = smooth_images(2, 4)
    prepared = prepare(MixesImages(axis).eval(), images)
    assert Mean not in kinds(prepared)
    assert "mean" in methods.get("lrp").not_applicable(prepared)


class Standardised(nn.Conv2d):
    """Weights that are computed in every pass, as in BiT."""

    def forward(self, x):
        weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        return F.conv2d(x, weight / (self.weight.std() + 1e-3), self.bias)


def test_weights_that_do_not_depend_on_the_image_are_computed_once():
    network = nn.Sequential(Standardised(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2)).eval()
    images = smooth_images(2, 6)
    prepared = prepare(network, images)
    assert kinds(prepared) == [nn.Conv2d, nn.ReLU, nn.Flatten, nn.Linear]
    assert_same_output(network, prepared, images)


class Dynamic(nn.Module):
    def __init__(self):
        super().__init__()
        self.make, self.head = nn.Linear(48, 12), nn.Linear(4, 2)

    def forward(self, x):
        weight = self.make(x[:1].flatten(1)).view(4, 3, 1, 1)
        return self.head(F.conv2d(x, weight).mean((2, 3)))


def test_weights_that_depend_on_the_image_have_no_rule():
    images = smooth_images(2, 4)
    network = Dynamic().eval()
    prepared = prepare(network, images)
    assert_same_output(network, prepared, images)
    assert "conv2d" in methods.get("deeplift").not_applicable(prepared)


def test_a_norm_by_the_batch_stays_a_call():
    class Norm(nn.BatchNorm2d):
        def forward(self, x):
            return F.batch_norm(x, None, None, self.weight, self.bias, True)

    network = nn.Sequential(Norm(3), nn.Flatten(), nn.Linear(48, 2)).eval()
    prepared = prepare(network, smooth_images(2, 4))
    assert "batch_norm" in methods.get("lrp").not_applicable(prepared)


def test_bicubic_enlargement_has_no_rule():
    class Enlarges(nn.Module):
        def forward(self, x):
            return F.interpolate(x, scale_factor=2, mode="bicubic").mean((2, 3))

    prepared = prepare(Enlarges().eval(), smooth_images(2, 4))
    assert "interpolate" in methods.get("lrp").not_applicable(prepared)
    network = nn.Sequential(nn.Upsample(scale_factor=2, mode="bicubic"), nn.Flatten())
    assert "both signs" in methods.get("lrp").not_applicable(prepare(network))
    assert methods.get("deeplift").not_applicable(prepare(network)) is None


@pytest.mark.parametrize(
    "norm", [nn.LayerNorm([3, 4, 4]), nn.GroupNorm(3, 3), nn.LayerNorm(4, bias=False)]
)
def test_other_norms_keep_their_weights(norm):
    nn.init.uniform_(norm.weight)

    class Calls(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.bias = copy.deepcopy(norm.weight), copy.deepcopy(norm.bias)

        def forward(self, x):
            if isinstance(norm, nn.GroupNorm):
                return F.group_norm(x, 3, self.weight, self.bias, 0.1).flatten(1)
            return F.layer_norm(x, norm.normalized_shape, self.weight, self.bias, 0.1).flatten(1)

    network, images = Calls().eval(), smooth_images(2, 4)
    prepared = prepare(network, images)
    assert kinds(prepared) == [type(norm)]
    assert_same_output(network, prepared, images)
