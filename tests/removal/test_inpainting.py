"""Inpainting: flat and slanted images come back, and it is close to what OpenCV makes of one."""

import numpy as np
import pytest
import torch

from attrcheck.removal import inpainting
from attrcheck.removal import removal as removals


def painted(image, keep):
    return removals.get("inpaint")(image[None, None], keep[None])[0, 0]


def hole(size, low, high):
    keep = torch.ones(size, size, dtype=torch.bool)
    keep[low:high, low:high] = False
    return keep


def test_a_flat_image_comes_back():
    image = torch.full((12, 12), 0.7)
    assert torch.allclose(painted(image, hole(12, 3, 9)), image, atol=1e-6)


def test_a_slope_goes_on_through_the_hole():
    image = torch.arange(12.0).expand(12, 12) / 10
    assert torch.allclose(painted(image, hole(12, 4, 8)), image, atol=1e-3)


def test_scattered_pixels_are_near_their_neighbours():
    generator = torch.Generator().manual_seed(0)
    keep = torch.rand(16, 16, generator=generator) > 0.5
    image = torch.linspace(-1, 1, 16)[:, None] * torch.linspace(0, 2, 16)
    apart = (painted(image, keep) - image).abs()
    assert apart[keep].max() == 0
    assert apart.max() < 0.3
    assert apart.mean() < 0.03


def test_without_anything_kept_there_is_the_mean():
    assert not painted(torch.rand(5, 5), torch.zeros(5, 5, dtype=torch.bool)).any()


def test_one_pixel_is_enough():
    keep = torch.zeros(9, 9, dtype=torch.bool)
    keep[2, 3] = True
    assert torch.allclose(painted(torch.full((9, 9), 0.4), keep), torch.tensor(0.4))


def test_colours_stay_within_those_that_are_kept():
    generator = torch.Generator().manual_seed(0)
    image, keep = (torch.randn(20, 20, generator=generator) for _ in range(2))
    filled = painted(image, keep > 1.2)
    kept = image[keep > 1.2]
    assert kept.min() <= filled.min() <= filled.max() <= kept.max()


@pytest.fixture(params=range(3))
def scene(request):
    """A smooth image, what is kept of it, and what OpenCV makes of the rest."""
    cv2 = pytest.importorskip("cv2")
    across, down = np.meshgrid(np.arange(32), np.arange(32))
    image = 128 + 60 * np.sin(across / 6 + request.param) + 50 * np.cos(down / 5)
    keep = np.random.default_rng(request.param).random((32, 32)) > 0.4
    gone = (~keep).astype(np.uint8)
    return image, keep, cv2.inpaint(image.astype(np.uint8), gone, 3, cv2.INPAINT_TELEA)


def test_it_is_closer_to_the_truth_than_opencv(scene):
    image, keep, theirs = scene
    ours = painted(torch.from_numpy(image), torch.from_numpy(keep)).numpy()
    assert np.abs(ours - image)[~keep].mean() < np.abs(theirs - image)[~keep].mean() / 2


def test_without_slopes_it_is_opencv_up_to_rounding(scene, monkeypatch):
    """OpenCV adds the direction of the slope, a grey level or two, and not the slope."""
    image, keep, theirs = scene
    slope = inpainting._slope

    def flat(values, known, rows, at, width):
        slopes = slope(values, known, rows, at, width)
        return slopes if at.shape[1] == 1 else tuple(0 * one for one in slopes)

    monkeypatch.setattr(inpainting, "_slope", flat)
    ours = painted(torch.from_numpy(image), torch.from_numpy(keep)).numpy()
    assert np.abs(ours - theirs)[~keep].mean() < 2


def test_images_of_a_batch_are_painted_as_if_alone():
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(6, 3, 12, 9, generator=generator)
    keep = torch.rand(6, 12, 9, generator=generator) > torch.linspace(0.1, 0.9, 6)[:, None, None]
    keep[2], keep[4] = False, True
    together = inpainting.inpaint(images, keep)
    for image, kept, whole in zip(images, keep, together, strict=True):
        assert torch.equal(inpainting.inpaint(image[None], kept[None])[0], whole)
