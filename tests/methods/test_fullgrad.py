"""FullGrad: nothing of a logit is lost, and the map of what is found."""

import pytest
import torch
from torch import nn

from attrcheck.graph.preparing import prepare
from attrcheck.methods import method
from attrcheck.methods.fullgrad import full_gradients
from attrcheck.tensors.batching import limited_to
from tests.methods.gradient_world import each_family, error, logits, subject
from tests.worlds import random_family, smooth_images


def attribute(model, images, targets):
    return method.get("fullgrad").attribute(model, images, targets)


def total(model, images, targets):
    pixels, biases = full_gradients(model, images, targets)
    return sum(part.flatten(1).sum(1) for part in (pixels, *biases))


def test_by_hand():
    network = nn.Sequential(nn.Conv2d(1, 1, 1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten())
    network = network.append(nn.Linear(1, 1))
    for layer, weight, bias in ((network[0], 2.0, 1.0), (network[4], 4.0, 3.0)):
        nn.init.constant_(layer.weight, weight)
        nn.init.constant_(layer.bias, bias)
    images, targets = torch.tensor([[[[1.0, -1.0], [0.0, 2.0]]]]), torch.tensor([0])
    # Units 3, -1, 1 and 5: the second is off. Each of the others has the slope 4 / 4.
    pixels, biases = full_gradients(prepare(network), images, targets)
    assert torch.equal(pixels, torch.tensor([[[[2.0, 0.0], [0.0, 4.0]]]]))
    assert torch.equal(biases[0], torch.tensor([[[[1.0, 0.0], [1.0, 1.0]]]]))
    assert torch.equal(biases[1], torch.tensor([[3.0]]))
    assert network(images).item() == 12 == 6 + 3 + 3
    found = attribute(prepare(network), images, targets)
    assert torch.equal(found, torch.tensor([[[1.5, 0.0], [1.0, 2.0]]]))


@each_family
def test_pixels_and_biases_sum_to_the_logit(family):
    """Also where activations are not piecewise linear, and gates multiply: efficientnet."""
    model, _, images, targets = subject(family)
    assert method.get("fullgrad").not_applicable(model) is None
    found, wanted = total(model, images, targets), logits(model, images, targets)
    assert error(found[:, None], wanted[:, None]) < 1e-4
    assert ((found - full_gradients(model, images, targets)[0].sum((1, 2, 3))).abs() > 0.1).any()


class Shifted(nn.Module):
    """Constants are added to the signal, and subtracted, by calls; it is negated and scaled."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=False)
        nn.init.normal_(self.norm.running_mean)
        self.act = nn.Softplus()

    def forward(self, x):
        x = 2 - self.act(self.norm(self.conv(x / 3 + 1)))
        return (x * 5 - 0.5).mean((2, 3))


def test_what_calls_add_is_counted():
    torch.manual_seed(0)
    model = prepare(Shifted().eval().requires_grad_(False).double())
    images, targets = smooth_images(2, 8).double(), torch.tensor([1, 3])
    assert method.get("fullgrad").not_applicable(model) is None
    found = total(model, images, targets)
    assert torch.allclose(found, logits(model, images, targets), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_bias_gradients_are_those_of_pytorch_grad_cam():
    import attrcheck.adapters.vision  # noqa: F401, I001  # it imports torchvision
    from pytorch_grad_cam import FullGrad

    torch.manual_seed(0)
    # A bias before a norm would be one with the norm's shift, as they are one layer when prepared.
    layers = (nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 5, 3))
    network = nn.Sequential(*layers, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network = network.append(nn.Linear(5, 3)).eval()
    nn.init.normal_(network[1].running_mean)
    nn.init.normal_(network[1].bias)
    images, targets = smooth_images(1, 8), torch.tensor([2])
    _, (*found, _) = full_gradients(prepare(network), images, targets)
    with FullGrad(network, []) as peer:
        peer.activations_and_grads(images.clone().requires_grad_())[0, 2].backward()
        pairs = zip(peer.bias_data, peer.activations_and_grads.gradients, strict=True)
        wanted = [torch.from_numpy(bias)[:, None, None] * slopes for bias, slopes in pairs]
    for mine, theirs in zip(found, wanted, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-6)


def test_a_map_depends_neither_on_the_batch_nor_on_the_memory():
    model, _, images, targets = subject("vgg")
    together = attribute(model, images, targets)
    assert error(attribute(model, images[1:2], targets[1:2]), together[1:2]) < 1e-4
    with limited_to(1):
        assert error(attribute(model, images, targets), together) < 1e-4
    assert (together >= 0).all()


def test_a_layer_norm_has_no_such_bias():
    assert "no rule for LayerNorm" in method.get("fullgrad").not_applicable(
        prepare(random_family("vit"))
    )
    with pytest.raises(TypeError, match="not a prepared graph"):
        attribute(nn.Flatten(), smooth_images(1, 4), torch.tensor([0]))
