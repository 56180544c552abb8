"""B-cos layers and networks: by hand, and the public full-size ones from a file."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from attrcheck.graph.bcos import BcosConv2d, Encode, UncentredNorm
from attrcheck.graph.preparing import prepare
from attrcheck.methods import method
from attrcheck.models.bcos_resnet import BcosResNet, bcos_resnet
from attrcheck.training.weights import WeightsError
from tests.worlds import blank, smooth_images

MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


def test_a_transform_by_hand():
    layer = BcosConv2d(2, 1, 1, gain=3.0)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([3.0, 4.0]).view(1, 2, 1, 1))
    x = torch.tensor([[1.0, 0.0], [0.6, 0.8], [-4.0, 3.0], [-6.0, -8.0]])[:, :, None, None]
    # The unit weight is (.6, .8): w^T x is .6, 1, 0, -10 and the cosine .6, 1, 0, -1.
    wanted = torch.tensor([3 * 0.6 * 0.6, 3.0, 0.0, -30.0])
    assert torch.allclose(layer(x).flatten(), wanted, atol=1e-4)


def test_a_transform_sees_patches():
    torch.manual_seed(0)
    layer = BcosConv2d(3, 4, 3, stride=2, padding=1)
    images = smooth_images(2, 8)
    patches = F.unfold(images, 3, stride=2, padding=1)
    weights = F.normalize(layer.weight.flatten(1))
    linear = torch.einsum("kp,npl->nkl", weights, patches)
    cosines = F.cosine_similarity(weights[None, :, :, None], patches[:, None], dim=2)
    wanted = (linear * cosines.abs()).view(2, 4, 4, 4)
    assert torch.allclose(layer(images), wanted, atol=1e-4)


def test_longer_weights_and_brighter_patches_change_no_direction():
    torch.manual_seed(0)
    layer, images = BcosConv2d(3, 4, 3), smooth_images(1, 8)
    before = layer(images)
    with torch.no_grad():
        layer.weight.mul_(7)
    assert torch.allclose(layer(images), before, atol=1e-5)
    assert torch.allclose(layer(2 * images), 2 * before, atol=1e-4)
    assert (layer(torch.zeros_like(images)) == 0).all()


def test_an_encoded_image_is_the_pixels_and_their_inverse():
    encode = Encode(MEAN, STD)
    images = torch.zeros(1, 3, 1, 2)
    images[..., 1] = 1
    wanted = [[0.4, 0.6], [0.5, 0.75], [0.6, 0.9], [0.6, 0.4], [0.5, 0.25], [0.4, 0.1]]
    assert torch.allclose(encode(images)[0, :, 0], torch.tensor(wanted))
    assert not encode.state_dict()


def test_the_norm_scales_and_does_not_shift():
    norm = UncentredNorm(2, eps=0.0)
    x = torch.tensor([[1.0, 3.0], [10.0, 30.0]]).T.reshape(2, 2, 1, 1) + 5
    assert torch.allclose(norm(x), x / torch.tensor([1.0, 10.0]).view(2, 1, 1))
    assert torch.allclose(norm.running_var, torch.tensor([0.9 + 0.1, 0.9 + 10.0]))
    norm.eval()
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([2.0, 3.0]))
    wanted = x * torch.tensor([2.0, 3.0 / 10.9**0.5]).view(2, 1, 1)
    assert torch.allclose(norm(x), wanted)


def test_the_embedded_network_has_neither_bias_nor_rectifier():
    from attrcheck.models import model

    network = model.get("bcos").build(blank())
    assert not [name for name, _ in network.named_parameters() if "bias" in name]
    kinds = {type(part) for part in network.modules()}
    assert kinds == {
        nn.Sequential, Encode, BcosConv2d, UncentredNorm, nn.AdaptiveAvgPool2d, nn.Flatten
    }  # fmt: skip


def lively(depth):
    """A full-size network whose norms have seen data, with ten classes."""
    torch.manual_seed(0)
    network = BcosResNet(MEAN, STD, depth, 10)
    for part in network.modules():
        if isinstance(part, UncentredNorm):
            part.momentum = 1.0
            nn.init.uniform_(part.weight, 0.5, 1.5)
    with torch.no_grad():
        network(smooth_images(4, 64))
    return network.eval()


def as_published(network):
    """The state under the names of the public files, with what they hold besides."""
    state = {}
    for name, part in network.named_modules():
        if isinstance(part, BcosConv2d):
            state[f"{name}.linear.weight"] = part.weight.detach().clone()
        elif isinstance(part, UncentredNorm):
            state[f"{name}.weight"] = part.weight.detach().clone()
            state[f"{name}.running_var"] = part.running_var.clone()
            state[f"{name}.running_mean"] = torch.randn(len(part.weight))
            state[f"{name}.num_batches_tracked"] = torch.tensor(7)
    return state


@pytest.mark.parametrize("depth", [18, pytest.param(50, marks=pytest.mark.slow)])
def test_a_full_size_network_from_a_file(tmp_path, depth):
    network, images = lively(depth), smooth_images(2, 64)
    torch.save(as_published(network), tmp_path / "public.pth")
    save_file(as_published(network), tmp_path / "public.safetensors")
    with torch.no_grad():
        wanted = network(images)
    for path in tmp_path.iterdir():
        loaded = bcos_resnet(path, MEAN, STD, depth)
        assert not loaded.training
        with torch.no_grad():
            assert torch.equal(loaded(images), wanted)
    model, targets = prepare(network), torch.tensor([1, 2])
    with torch.no_grad():
        assert torch.allclose(model(images), wanted, rtol=1e-4)
    explain = method.get("bcos_weights")
    assert explain.not_applicable(model) is None
    total = explain.attribute(model, images, targets).sum((1, 2))
    assert torch.allclose(total, wanted.gather(1, targets[:, None])[:, 0], rtol=1e-3)


def test_the_sizes_are_those_that_are_published():
    """In millions: 11.69, 21.80, 25.54, 44.50 and 60.13."""
    published = {18: 11.69, 34: 21.80, 50: 25.54, 101: 44.50, 152: 60.13}
    for depth, millions in published.items():
        with torch.device("meta"):
            network = BcosResNet(MEAN, STD, depth, 1000)
        count = sum(part.numel() for part in network.parameters())
        assert count / 1e6 == pytest.approx(millions, abs=0.005)


def test_the_strides_are_those_that_are_published():
    """In deep blocks the 3x3 convolution has it, in shallow ones the first."""
    with torch.device("meta"):
        deep, shallow = (BcosResNet(MEAN, STD, depth, 10) for depth in (50, 18))
    for stage, stride in zip(("layer1", "layer2", "layer3", "layer4"), (1, 2, 2, 2), strict=True):
        first, second = (network.get_submodule(f"{stage}.0") for network in (deep, shallow))
        strides = [getattr(first, f"conv{i}").stride[0] for i in (1, 2, 3)]
        assert strides == [1, stride, 1]
        assert [second.conv1.stride[0], second.conv2.stride[0]] == [stride, 1]
        assert getattr(deep, stage)[1].conv2.stride == (1, 1)


def test_other_files_are_told_apart(tmp_path):
    state = as_published(lively(18))
    del state["layer1.0.conv1.linear.weight"]
    torch.save(state, tmp_path / "lacking.pth")
    with pytest.raises(WeightsError, match=r"(?s)lacking.pth does not fit.*layer1.0.conv1.weight"):
        bcos_resnet(tmp_path / "lacking.pth", MEAN, STD, 18)
    with pytest.raises(WeightsError, match=r"cannot read weights from .*missing.pth"):
        bcos_resnet(tmp_path / "missing.pth", MEAN, STD, 18)
