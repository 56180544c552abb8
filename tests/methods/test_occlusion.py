"""Occlusion equals the exact drops."""

import pytest
import torch
from captum.attr import Occlusion
from torch import nn

from attrcheck.graph.preparing import prepare
from attrcheck.methods import method
from attrcheck.methods.perturbation import WINDOWS, occlusion
from attrcheck.tensors.batching import limited_to
from tests.worlds import FAMILIES, random_family, smooth_images, trained_family


def drops(model, images, targets, size, stride):
    """Window by window, image by image."""
    maps = torch.zeros(len(images), *images.shape[2:])
    for i, (image, target) in enumerate(zip(images, targets, strict=True)):
        height, width = image.shape[1:]
        covered = torch.zeros(height, width)
        intact = model(image[None])[0, target]
        top = 0
        while True:
            left = 0
            while True:
                window = slice(top, top + size[0]), slice(left, left + size[1])
                blanked = image.clone()
                blanked[:, *window] = 0
                maps[i][window] += (intact - model(blanked[None])[0, target]).detach()
                covered[window] += 1
                if left + size[1] >= width:
                    break
                left += stride[1]
            if top + size[0] >= height:
                break
            top += stride[0]
        maps[i] /= covered
    return maps


@pytest.mark.parametrize(
    ("shape", "size", "stride"),
    [((32, 32), (4, 4), (2, 2)), ((20, 9), (3, 2), (2, 1)), ((8, 17), (1, 3), (1, 2))],
)
def test_the_exact_drops(shape, size, stride):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Tanh(), nn.AdaptiveMaxPool2d(1), nn.Flatten())
    images, targets = torch.randn(2, 2, *shape), torch.tensor([0, 2])
    found = occlusion(model, images, targets)
    assert torch.allclose(found, drops(model, images, targets, size, stride), atol=1e-5)


def test_of_a_linear_model_it_is_the_mean_of_contributions_nearby():
    weights, images = smooth_images(1, 16, seed=5)[0], smooth_images(2, 16)

    class Linear(nn.Module):
        def forward(self, x):
            return (x * weights).sum((1, 2, 3))[:, None]

    found = occlusion(Linear(), images, torch.tensor([0, 0]))
    parts = (images * weights).sum(1, keepdim=True)
    # Windows of 2 x 2 at every place: a pixel's are summed, then averaged over those it is in.
    sums = 4 * nn.functional.avg_pool2d(parts, 2, 1)
    wanted = nn.functional.avg_pool2d(sums, 2, 1, 1, count_include_pad=False)[:, 0]
    assert torch.allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_equals_captum(family):
    network, images, labels = trained_family(family, 2)
    model = prepare(network)
    with torch.no_grad():
        peer = Occlusion(model).attribute(
            images, (3, 4, 4), (3, 2, 2), target=labels, perturbations_per_eval=32
        )
    # Captum gives every channel the drop; the sum of channels is not wanted here.
    assert torch.allclose(occlusion(model, images, labels), peer[:, 0], atol=1e-3)


def test_batches_do_not_matter():
    model, images = prepare(random_family("efficientnet")), smooth_images(3)
    targets = torch.tensor([1, 2, 3])
    maps = occlusion(model, images, targets)
    with limited_to(4_000_000):
        alone = occlusion(model, images[1:2], targets[1:2])
    assert torch.allclose(alone[0], maps[1], atol=1e-4)
    assert not maps.requires_grad


@pytest.mark.parametrize("side", [1, 2, 7, 8, 15, 16, 17, 20, 31, 32, 33, 64, 100, 224, 299])
def test_there_are_never_more_windows_than_it_says(side):
    class Counter(nn.Module):
        samples = 0

        def forward(self, x):
            self.samples += len(x)
            return x.mean((2, 3))

    model = Counter()
    maps = occlusion(model, torch.ones(1, 1, side, side), torch.tensor([0]))
    assert maps.shape == (1, side, side)
    assert maps.isfinite().all()
    assert model.samples - 1 <= method.get("occlusion").passes[0] == WINDOWS + 1
    assert side < 16 or side % 16 or model.samples - 1 == WINDOWS + 1
