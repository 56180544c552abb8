"""The embedded transformer, and the preparation of full-size ones."""

import pytest
import torch
from torch import fx, nn

from attrcheck.graph.landmarks import attentions
from attrcheck.graph.nodes import call_name
from attrcheck.graph.preparing import prepare
from tests.worlds import enliven, random_family, smooth_images

ACTIVE = ("relu", "gelu", "silu", "sigmoid", "tanh", "dropout", "scaled_dot_product_attention")


def kinds(prepared):
    calls = (node for node in prepared.graph.nodes if node.op == "call_module")
    return [type(prepared.get_submodule(node.target)) for node in calls]


def assert_prepared(network, side, count=2):
    """The same output within 1e-5; activations are modules of their own, none in place."""
    images = smooth_images(count, side)
    prepared = prepare(network)
    assert isinstance(prepared, fx.GraphModule)
    with torch.no_grad():
        wanted, logits = network(images.clone()), prepared(images)
    assert wanted.abs().max() > 0
    assert (logits - wanted).abs().max() <= 1e-5 * wanted.abs().max()
    assert not any(getattr(part, "inplace", False) for part in prepared.modules())
    called = [node.target for node in prepared.graph.nodes if node.op == "call_module"]
    assert len(called) == len(set(called))
    assert not [node for node in prepared.graph.nodes if call_name(node) in ACTIVE]
    assert len(prepared.graph.find_nodes(op="placeholder")) == 1
    return prepared


def test_the_embedded_one_is_a_transformer():
    network = random_family("vit")
    prepared = assert_prepared(network, 32)
    layers = kinds(prepared)
    assert layers.count(nn.GELU) == 4 + 3
    assert layers.count(nn.LayerNorm) == 2 * 3 + 1
    assert nn.BatchNorm2d not in layers
    assert len(attentions(prepared)) == 3


def test_patches_are_told_apart_by_their_places():
    network = random_family("vit")
    images = smooth_images(2)
    turned = images.flip(3)
    with torch.no_grad():
        assert not torch.allclose(network(images), network(turned), atol=1e-3)
        network.positions.zero_()
        tokens = network.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([network.token.expand(2, -1, -1), tokens], 1)
        shuffled = tokens[:, [0, *range(64, 0, -1)]]
        # Without positions the order of the patches means nothing.
        out, other = (network.norm(network.blocks(t))[:, 0] for t in (tokens, shuffled))
    assert torch.allclose(out, other, atol=1e-4)


def test_a_token_sees_only_its_own_surroundings():
    network = random_family("vit")
    images = smooth_images(1)
    changed = images.clone()
    changed[:, :, 20:, 20:] += 1
    with torch.no_grad():
        different = (network.patches(images) != network.patches(changed)).any(1)[0]
    assert different.shape == (8, 8)
    # Four convolutions reach 9 pixels to either side of a token's centre.
    assert not different[:2].any()
    assert not different[:, :2].any()
    assert different[4:, 4:].all()


class TwoInputs(nn.Module):
    """As timm's transformers do, forward() takes more than the image."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(12, 2)

    def forward(self, x, mask=None, *more, scale=2, **others):
        y = self.head(x.flatten(1)) * scale + len(more) + len(others)
        return y if mask is None else y * mask


def test_what_else_forward_takes_keeps_its_default():
    network = TwoInputs().eval()
    prepared = assert_prepared(network, 2)
    assert [node.name for node in prepared.graph.find_nodes(op="placeholder")] == ["x"]


@pytest.mark.slow
def test_torchvision_vit_b_16():
    from attrcheck.adapters.vision import torchvision

    torch.manual_seed(0)
    network = torchvision.models.vit_b_16(weights=None, image_size=64, num_classes=10).eval()
    nn.init.normal_(network.heads.head.weight)
    prepared = assert_prepared(network, 64)
    assert len(attentions(prepared)) == 12
    assert kinds(prepared).count(nn.GELU) == 12
    assert nn.MultiheadAttention not in kinds(prepared)


@pytest.mark.slow
def test_timm_vit_tiny():
    from attrcheck.adapters.vision import timm

    torch.manual_seed(0)
    network = timm.create_model("vit_tiny_patch16_224", pretrained=False, img_size=64).eval()
    prepared = assert_prepared(network, 64)
    assert len(attentions(prepared)) == 12
    assert kinds(prepared).count(nn.GELU) == 12


@pytest.mark.slow
def test_timm_inception_v4():
    from attrcheck.adapters.vision import timm

    torch.manual_seed(0)
    network = enliven(timm.create_model("inception_v4", pretrained=False, num_classes=10), 96)
    network = network.double()  # deep random networks blow up rounding errors
    images, prepared = smooth_images(2, 96).double(), prepare(network)
    with torch.no_grad():
        wanted, logits = network(images), prepared(images)
    assert (logits - wanted).abs().max() <= 1e-5 * wanted.abs().max()
    # timm's norm layers hold the activation: both come out, and the norm is folded away.
    assert kinds(prepared).count(nn.ReLU) == kinds(prepared).count(nn.Conv2d) == 149
    assert nn.BatchNorm2d not in kinds(prepared)
    assert not [node for node in prepared.graph.nodes if call_name(node) in ACTIVE]
