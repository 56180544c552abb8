"""CAMs against figures worked out by hand, and the published ones."""

import pytest
import torch
from torch import nn

from attrcheck.graph.preparing import prepare
from attrcheck.methods.noise import Noise
from attrcheck.methods.stages import stage_of
from tests.methods.cam_world import (
    IMAGE,
    at_stage,
    attribute,
    enlarge,
    ignore_coarse,
    published,
    tiny,
)
from tests.worlds import smooth_images


def scaled(maps, cams):
    """As the reference is: the small CAM scaled to [0, 1], then enlarged, which commutes."""
    low, high = (cams.amin((1, 2), keepdim=True), cams.amax((1, 2), keepdim=True))
    return (maps - low) / (high - low)


def small(model, images, targets, weights):
    """A CAM of the reference network before it is enlarged; weights of activations, gradients."""
    rows = [at_stage(model, image, target) for image, target in zip(images, targets, strict=True)]
    return torch.stack([(weights(a, g) * a).sum(0).clamp(min=0) for a, g in rows])


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("gradcam", lambda a, g: g.mean((1, 2), keepdim=True)),
        ("xgradcam", lambda a, g: g.mean((1, 2), keepdim=True)),
        ("layercam", lambda a, g: g.clamp(min=0)),
    ],
)
def test_the_reference_maps(name, weights):
    model, arrays = published()
    images, targets = arrays["images"], arrays["targets"]
    assert stage_of(model, images)[0].target == "features.1"
    found = scaled(attribute(name, model, images, targets), small(model, images, targets, weights))
    assert (found - arrays[f"attr_{name}"][:, 0]).abs().max() < 1e-5


def test_the_published_grad_cam_pp_is_the_sum_of_cubes_and_ours_is_not():
    model, arrays = published()
    images, targets, wanted = arrays["images"], arrays["targets"], arrays["attr_gradcampp"][:, 0]
    cams = small(
        model, images, targets, lambda a, g: g.clamp(min=0).pow(3).sum((1, 2), keepdim=True)
    )
    cubes = torch.stack([enlarge(cam, images[0]) for cam in cams])
    assert (scaled(cubes, cams) - wanted).abs().max() < 1e-5
    ours = attribute("gradcam_pp", model, images, targets)
    both = torch.stack([ours.flatten(1), wanted.flatten(1)], 1)
    assert all(torch.corrcoef(pair)[0, 1] < 0.98 for pair in both)


@ignore_coarse
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        # Channel 0 sums to 4 with gradient 8 / 4 = 2, channel 1 to 3 with gradient -4 / 4 = -1.
        ("gradcam", [[2.0, 0.0], [4.0, 2.0]]),
        ("xgradcam", [[2.0, 0.0], [4.0, 2.0]]),
        ("layercam", [[2.0, 0.0], [4.0, 2.0]]),
        # Four cells of 4 / (8 + 4 * 8) * 2 = 0.2 make a weight of 0.8.
        ("gradcam_pp", [[0.8, 0.0], [1.6, 0.8]]),
        ("smooth_gradcam_pp", [[0.8, 0.0], [1.6, 0.8]]),
        # f = 2 * 4 - 1 * 3: without channel 0 it loses 8, without channel 1 it gains 3.
        ("ablation_cam", [[8.0, 0.0], [16.0, 8.0]]),
        # Channels are orthogonal, with squares 6 and 9: the second is the larger component.
        ("eigencam", [[0.0, 3.0], [0.0, 0.0]]),
    ],
)
def test_by_hand(name, wanted):
    still = {"noise": Noise(2, 0.0)} if name.startswith("smooth") else {}
    found = attribute(name, tiny([[8.0, -4.0]]), IMAGE, torch.tensor([0]), (1,), **still)
    assert torch.allclose(found, torch.tensor([wanted]))


@ignore_coarse
def test_score_cam_by_hand():
    # M_0 = A_0 / 2 leaves [[.5, 0], [2, .5]] and M_1 = A_1 / 3 leaves [[0, 0], [0, 0]] of channel
    # 0; of channel 1 they leave 0 and 3. So f(x M_0) = 2 * 3 = 6 and f(x M_1) = -3.
    weights = torch.tensor([6.0, -3.0]).softmax(0)
    wanted = weights[0] * IMAGE[:, 0] + weights[1] * IMAGE[:, 1]
    found = attribute("scorecam", tiny([[8.0, -4.0]]), IMAGE, torch.tensor([0]))
    assert torch.allclose(found, wanted)


@ignore_coarse
def test_grad_cam_pp_weights_are_the_true_derivatives_of_the_exponential():
    model = tiny([[3.0, 1.5, -2.0]], side=4)
    image = smooth_images(1, 4, seed=5).double().abs()
    model = model.double()
    activations, logit = image.clone(), None
    weights = torch.zeros(3, dtype=torch.float64)
    for k in range(3):
        total = activations[0, k].sum()
        for cell in range(16):
            x = activations[0, k].flatten()[cell].clone().requires_grad_()
            with_x = activations.flatten().clone()
            with_x[16 * k + cell] = 0
            hot = torch.zeros_like(with_x)
            hot[16 * k + cell] = 1
            logit = model((with_x + x * hot).view(1, 3, 4, 4))[0, 0]
            first = torch.autograd.grad(logit.exp(), x, create_graph=True)[0]
            second = torch.autograd.grad(first, x, create_graph=True)[0]
            third = torch.autograd.grad(second, x)[0]
            ratio = second / (2 * second + total * third)
            weights[k] += (ratio * first.clamp(min=0)).item()
    # The factor exp(f), the same for all channels, is left out of ours.
    wanted = (weights[:, None, None] / logit.exp().item() * activations[0]).sum(0)
    found = attribute("gradcam_pp", model, image, torch.tensor([0]))
    assert torch.allclose(found[0], wanted.detach(), rtol=1e-9)
    assert found.max() > 0.1


@ignore_coarse
def test_grad_cam_pp_survives_what_no_rectifier_made():
    # A_0 sums to -4 and has gradient 1 / 2: by the letter, cells would divide by 2 - 2 = 0.
    network = nn.Sequential(nn.Conv2d(2, 2, 1, bias=False), nn.AvgPool2d(2), nn.Flatten())
    network[0].weight.data = torch.eye(2)[:, :, None, None]
    network.append(nn.Linear(2, 1, bias=False))
    network[3].weight.data = torch.tensor([[2.0, 4.0]])
    image = torch.tensor([[[[-4.0, 0.0], [0.0, 0.0]], [[0.0, 4.0], [0.0, 0.0]]]])
    # Weights: four cells of .5 / 2, and four of 1 / (2 + 4).
    found = attribute("gradcam_pp", prepare(network), image, torch.tensor([0]))
    assert torch.allclose(found, torch.tensor([[[0.0, 8 / 3], [0.0, 0.0]]]))
