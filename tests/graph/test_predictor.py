"""The fast copy of a network: the same logits, another layout, and what it leaves alone."""

import pytest
import torch
from torch import nn

from attrcheck.datasets import dataset as datasets
from attrcheck.graph.guard import Snapshot
from attrcheck.graph.predictor import add_to, predictor_of
from attrcheck.models import model as models
from attrcheck.training.weights import load_weights
from tests.worlds import enliven, load, smooth_images

PAIRS = [
    (data, name)
    for data in ("digits", "shapes")
    for name in models
    if models.get(name).embedded and models.get(name).knows(data)
]
TORCHVISION = ["resnet18", "resnet50", "vgg19_bn", "efficientnet_b2", "densenet121", "vit_b_16"]


def assert_alike(network, images, error=1e-4):
    """Equal within the error, and it runs without gradients."""
    network.eval()
    before = Snapshot.of(network)
    quick = predictor_of(network)
    with torch.inference_mode():
        wanted, found = network(images), quick(images)
    assert wanted.std() > 0.01
    assert (found - wanted).abs().max() < error
    assert before.change(network) is None
    assert not any(part.requires_grad for part in quick.parameters())
    return quick


def random_norms(network):
    """Batch norms that have seen something, so that folding them is no trifle."""
    for part in network.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.running_mean.uniform_(-0.5, 0.5)
            part.running_var.uniform_(0.5, 2)
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.uniform_(part.bias, -0.5, 0.5)
    return network


def norms(network):
    return sum(isinstance(part, nn.BatchNorm2d) for part in network.modules())


@pytest.mark.parametrize(("data", "name"), PAIRS)
def test_embedded_models_say_the_same(data, name):
    few = datasets.get(data).load().head(32)
    network = models.get(name).build(few).eval()
    load_weights(network, data, name)
    images = few.normalise(few.images)
    assert_alike(network, images)
    # Emptied and noisy images are what protocols look at.
    assert_alike(
        network, torch.cat([torch.zeros_like(images[:2]), 3 * torch.randn(8, *images[0].shape)])
    )


def test_a_pair_is_loaded_with_it():
    pair = load("digits", "resnet", 8, "cpu")
    with torch.inference_mode():
        plain = pair.network(pair.images)
        assert (pair.predictor(pair.images) - plain).abs().max() < 1e-4
    assert norms(pair.predictor) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TORCHVISION, "inception_v4"])
def test_networks_of_torchvision_and_timm(name):
    """In float64: deep networks with random weights blow up rounding errors, and nothing else."""
    from attrcheck.adapters.vision import timm, torchvision

    torch.manual_seed(0)
    side = 128 if name == "inception_v4" else 64
    if name == "inception_v4":
        network = timm.create_model(name, pretrained=False)
    else:
        settings = {"image_size": side} if name == "vit_b_16" else {}
        network = torchvision.models.get_model(name, weights=None, **settings)
    if name == "vit_b_16":
        nn.init.normal_(network.heads.head.weight)  # it starts at zero, and so would all logits
    quick = assert_alike(enliven(network, side).double(), smooth_images(2, side).double(), 1e-9)
    # In a DenseNet most norms come before a convolution.
    assert (norms(quick) == 0) is (name != "densenet121")


def chain():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Dropout()]
    return random_norms(
        nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    )


def test_batch_norms_are_folded_and_kernels_lie_channels_last():
    quick = assert_alike(chain(), torch.randn(5, 3, 9, 9))
    assert norms(quick) == 0
    [kernel] = [part.weight for part in quick.modules() if isinstance(part, nn.Conv2d)]
    assert kernel.is_contiguous(memory_format=torch.channels_last)


def test_the_layout_of_what_is_looked_at_does_not_matter():
    quick, images = predictor_of(chain()), torch.randn(5, 3, 9, 9)
    wanted = quick(images)
    last = images.contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(quick(last), wanted)
    torch.testing.assert_close(
        quick(images[:, :, ::2, ::2]), predictor_of(chain())(images[:, :, ::2, ::2])
    )


def test_passes_are_counted_image_by_image():
    quick = predictor_of(chain())
    assert quick.passes == 0
    quick(torch.randn(5, 3, 9, 9))
    quick(torch.randn(2, 3, 9, 9))
    assert quick.passes == 7


def test_a_network_in_training_is_left_so_and_the_copy_is_not():
    network = chain().train()
    before = Snapshot.of(network)
    quick = predictor_of(network)
    assert not quick.training or not quick.network.training
    one, other = quick(torch.ones(1, 3, 9, 9)), quick(torch.ones(1, 3, 9, 9))
    assert torch.equal(one, other)
    assert before.change(network) is None
    assert network.training
    assert all(part.requires_grad for part in network.parameters())


def test_changing_the_network_afterwards_does_not_reach_the_copy():
    network, images = chain().eval(), torch.randn(2, 3, 9, 9)
    quick = predictor_of(network)
    before = quick(images)
    with torch.no_grad():
        for part in network.parameters():
            part.zero_()
    network.register_forward_hook(lambda *_: 1 / 0)
    assert torch.equal(quick(images), before)


class Branches(nn.Module):
    """Takes one way or another, so that it cannot be traced; its first layer works in place."""

    def __init__(self):
        super().__init__()
        self.relu, self.conv = nn.ReLU(inplace=True), nn.Conv2d(1, 3, 3)

    def forward(self, images):
        images = self.conv(self.relu(images))
        return images.mean((2, 3)) if images.sum() > 0 else images.amax((2, 3))


def test_a_network_that_cannot_be_traced_works_as_it_is():
    images = torch.randn(4, 1, 6, 6)
    network = Branches().eval()
    wanted = network(images.clone())
    quick = predictor_of(network)
    with torch.inference_mode():
        torch.testing.assert_close(quick(images.clone()), wanted)
    assert quick.passes == 4


@pytest.mark.parametrize(
    "network", [Branches(), nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(1, 3, 3))]
)
def test_images_are_not_changed_by_a_first_layer_that_works_in_place(network):
    images = torch.randn(4, 1, 6, 6)
    before = images.clone()
    predictor_of(network)(images)
    assert torch.equal(images, before)


class Sums(nn.Module):
    """Adds in each way that matters to who would add in place."""

    def __init__(self):
        super().__init__()
        self.conv, self.other, self.pool = (
            nn.Conv2d(3, 4, 1),
            nn.Conv2d(3, 4, 1),
            nn.Conv2d(3, 4, 6),
        )

    def forward(self, images):
        fresh = self.conv(images) + self.other(images)
        broad = self.pool(images) + fresh  # the first is too small to hold the sum
        twice = self.conv(images)
        scaled = torch.add(self.conv(images), fresh, alpha=2)
        itself = self.other(images)
        total = twice + fresh + broad + twice + scaled + (itself + itself) + (self.conv(images) + 1)
        return total.mean((2, 3))


def test_sums_in_place_change_nothing_that_is_needed():
    torch.manual_seed(0)
    quick = assert_alike(Sums(), torch.randn(4, 3, 6, 6), 1e-6)
    targets = [node.target for node in quick.network.graph.nodes]
    assert add_to in targets
    assert torch.add in targets
