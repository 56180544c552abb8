"""Blurs and enlargements of images, against plainer ones."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from attrcheck.tensors.images import blurred, enlarge, gaussian_weights

MODES = {"reflect": "mirror", "replicate": "nearest"}
"""What scipy calls the borders."""


def test_weights_are_those_of_a_gaussian():
    weights = gaussian_weights(3, 1.5)
    assert weights.dtype == torch.float64
    wanted = np.exp(-(np.arange(-3, 4) ** 2) / (2 * 1.5**2))
    np.testing.assert_allclose(weights, wanted / wanted.sum(), rtol=1e-12)
    assert gaussian_weights(2, 1.0, torch.float32).dtype == torch.float32


@pytest.mark.parametrize("border", MODES)
@pytest.mark.parametrize("axes", [(2, 3), (3, 2)])
@pytest.mark.parametrize("shape", [(2, 3, 9, 12), (1, 1, 8, 8)])
def test_a_blur_is_a_convolution_along_both_axes(border, axes, shape):
    images = torch.randn(shape, generator=torch.Generator().manual_seed(0)).double()
    down, right = gaussian_weights(3, 1.1), gaussian_weights(2, 0.8)
    wanted = ndimage.convolve1d(images.numpy(), down.numpy(), 2, mode=MODES[border])
    wanted = ndimage.convolve1d(wanted, right.numpy(), 3, mode=MODES[border])
    found = blurred(images, down, right, border, axes)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_a_blur_has_the_type_of_the_images():
    weights = gaussian_weights(1, 1.0)
    assert blurred(torch.ones(1, 2, 4, 4), weights, weights, "reflect").dtype == torch.float32


def test_enlarged_maps_have_the_size_of_the_images_and_keep_constants():
    maps = torch.tensor([[[1.0, 3.0]], [[2.0, 2.0]]])
    large = enlarge(maps, torch.zeros(2, 3, 2, 4))
    assert large[0].tolist() == [[1.0, 1.5, 2.5, 3.0]] * 2
    assert torch.equal(large[1], torch.full((2, 4), 2.0))
