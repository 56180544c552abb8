"""Noisy linear imputation: published figures, a direct solver, noise and errors."""

import functools
import inspect
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attrcheck.removal import noisy_linear, removal
from attrcheck.removal.imputing import impute
from tests import reference, worlds

PUBLISHED = ("rand10", "rand20", "rand30", "rand50", "rand70", "rand80", "rand90", "rand95")


PUBLISHED += ("box", "corner", "onekept", "onemissing", "stripes")


@functools.cache
def published():
    with np.load(Path(__file__).parents[1] / "data" / "noisy_linear.npz") as file:
        return {name: torch.from_numpy(file[name]) for name in file}


def mean_of_neighbours(images, keep, tolerance=1e-6):
    """The imputation without noise."""
    return noisy_linear(images, keep, noise=0.0, tolerance=tolerance)


def noise_image(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def smooth_image(*shape):
    """Waves, finer ones fainter."""
    y, x = torch.meshgrid(*(torch.linspace(0, 1, side) for side in shape[-2:]), indexing="ij")
    waves = [
        noise_image(*shape[:-2], 1, 1, seed=k) / k * torch.sin(k * (3 * x + 2 * y))
        for k in range(1, 12)
    ]
    return torch.stack(waves).sum(0)


def check_error(images, keep, names, *tolerances):
    """The largest error of each image, in the standard deviation of its channel."""
    pairs = zip(images, keep, strict=True)
    exact = np.stack([reference.impute(image.numpy(), mask.numpy()) for image, mask in pairs])
    for tolerance in tolerances:
        gap = mean_of_neighbours(images, keep, tolerance).double() - torch.from_numpy(exact)
        errors = (gap.abs().amax((2, 3)) / images.std((2, 3))).amax(1)
        assert not {
            name: e for name, e in zip(names, errors.tolist(), strict=True) if e > tolerance
        }


@st.composite
def problems(draw, least_kept=1):
    """Images [1..3, 1..2, 1..12, 1..12] and masks that keep at least so many pixels of each."""
    n, channels, height, width = (draw(st.integers(1, most)) for most in (3, 2, 12, 12))
    pixels = height * width
    keep = torch.zeros(n, pixels, dtype=torch.bool)
    for row in keep:
        chosen = draw(st.sets(st.integers(0, pixels - 1), min_size=min(least_kept, pixels)))
        row[list(chosen)] = True
    images = noise_image(n, channels, height, width, seed=draw(st.integers(0, 99)))
    return images, keep.view(n, height, width)


@pytest.mark.parametrize("name", PUBLISHED)
def test_as_published(name):
    arrays = published()
    image, mask = arrays["img_16_0"], arrays[f"mask_16_0_{name}"]
    filled = mean_of_neighbours(image[None], mask[None])[0]
    torch.testing.assert_close(filled, arrays[f"out_16_0_{name}"], rtol=0, atol=1e-5)


def test_all_published_masks_are_tried():
    assert {f"mask_16_0_{name}" for name in PUBLISHED} == {
        name for name in published() if name.startswith("mask")
    }


def test_solves_the_published_system():
    arrays = published()
    image, mask = arrays["sys_img"], arrays["sys_mask"]
    filled = mean_of_neighbours(image[None].double(), mask[None])[0]
    x = filled[:, mask == 0].T
    torch.testing.assert_close(arrays["sys_A"] @ x, arrays["sys_b"], rtol=0, atol=1e-6)


def test_the_reference_has_the_published_system():
    arrays = {name: array.numpy() for name, array in published().items()}
    matrix, right = reference.system(arrays["sys_img"], arrays["sys_mask"])
    np.testing.assert_allclose(-matrix.toarray(), arrays["sys_A"], atol=1e-12)
    np.testing.assert_allclose(-right, arrays["sys_b"], atol=1e-7)


def test_by_hand():
    # In the middle of 3 x 3: (4 edges x 2 + 4 corners x 1) / 12. In a corner: (2 + 2 x 2 + 1) / 5.
    middle, corner = torch.arange(9.0).view(1, 1, 3, 3) ** 2, torch.ones(1, 3, 3)
    corner[0, 0, 0] = 0
    assert mean_of_neighbours(middle, corner)[0, 0, 0, 0] == pytest.approx((2 * 1 + 2 * 9 + 16) / 5)
    keep = torch.ones(1, 3, 3)
    keep[0, 1, 1] = 0
    mean = (2 * (1 + 9 + 25 + 49) + (0 + 4 + 36 + 64)) / 12
    assert mean_of_neighbours(middle, keep)[0, 0, 1, 1] == pytest.approx(mean)


@pytest.mark.parametrize("shape", [(16, 16), (32, 32), (19, 46)])
def test_error_is_within_the_tolerance(shape):
    masks = worlds.masks(*shape)
    keep = torch.from_numpy(np.stack(list(masks.values())))
    images = torch.cat([noise_image(len(keep), 2, *shape), smooth_image(len(keep), 1, *shape)], 1)
    check_error(images, keep, masks, 1e-3, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("side", [97, 224])
def test_error_is_within_the_tolerance_for_large_images(side):
    masks = worlds.masks(side, side)
    image = torch.cat([noise_image(1, 1, side, side), smooth_image(1, 1, side, side)], 1)
    keep = torch.from_numpy(np.stack(list(masks.values())))
    check_error(image.expand(len(keep), -1, -1, -1), keep, masks, 1e-3, 1e-4)


@given(problems())
def test_solves_as_directly(problem):
    images, keep = problem
    filled = mean_of_neighbours(images.double(), keep, tolerance=1e-9)
    for image, mask, result in zip(images, keep, filled, strict=True):
        exact = reference.impute(image.numpy(), mask.numpy())
        np.testing.assert_allclose(result.numpy(), exact, atol=1e-7)


def test_nothing_missing():
    images = noise_image(2, 3, 9, 9)
    assert torch.equal(noisy_linear(images, torch.ones(2, 9, 9)), images)


def test_all_missing_becomes_zero():
    images = noise_image(2, 3, 9, 9) + 5
    keep = torch.zeros(2, 9, 9)
    keep[1, 4, 4] = 1
    filled = mean_of_neighbours(images, keep)
    assert torch.equal(filled[0], torch.zeros(3, 9, 9))
    expected = images[1, :, 4:5, 4:5].expand(3, 9, 9)
    torch.testing.assert_close(filled[1], expected, rtol=0, atol=1e-5)
    noisy = noisy_linear(images, keep, noise=0.1, seeds=[1, 2])
    assert noisy[0].std() == pytest.approx(0.1, rel=0.2)


def test_no_images():
    assert noisy_linear(torch.zeros(0, 3, 8, 8), torch.ones(0, 8, 8)).shape == (0, 3, 8, 8)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.float32, torch.int64])
def test_masks_of_any_type(dtype):
    images, keep = noise_image(2, 3, 9, 9), noise_image(2, 9, 9, seed=1) > 0
    expected = mean_of_neighbours(images, keep)
    assert torch.equal(mean_of_neighbours(images, keep.to(dtype)), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_images_of_any_float(dtype):
    images, keep = noise_image(2, 3, 9, 9).to(dtype), noise_image(2, 9, 9, seed=1) > 0
    filled = mean_of_neighbours(images, keep)
    assert filled.dtype == dtype
    expected = mean_of_neighbours(images.double(), keep)
    error = torch.finfo(dtype).eps * 4 + 1e-6
    torch.testing.assert_close(filled.double(), expected, rtol=error, atol=error)


def test_results_can_be_differentiated_through():
    images = noise_image(1, 1, 6, 6)
    keep = noise_image(1, 6, 6, seed=1) > 0
    with torch.inference_mode():
        assert noisy_linear(images, keep).is_inference()
    filled = noisy_linear(images, keep).requires_grad_()
    filled.square().sum().backward()
    torch.testing.assert_close(filled.grad, 2 * filled.detach())


def test_noise_has_the_standard_deviation_asked_for_in_every_channel_by_itself():
    images, keep = noise_image(4, 3, 48, 48), noise_image(4, 48, 48, seed=1) > 0
    plain = mean_of_neighbours(images, keep, tolerance=1e-3)
    noisy = noisy_linear(images, keep, noise=0.3, seeds=range(10, 14))
    noise = (noisy - plain).transpose(0, 1)[:, ~keep]
    count = noise.shape[1]
    assert noise.mean(1).abs().max() < 4 * 0.3 / math.sqrt(count)
    assert (noise.std(1) - 0.3).abs().max() < 4 * 0.3 / math.sqrt(2 * count)
    correlation = torch.corrcoef(noise) - torch.eye(3)
    assert correlation.abs().max() < 4 / math.sqrt(count)


def test_seeds_give_the_same_noise_whatever_else_is_missing():
    images, keep = noise_image(1, 3, 9, 9), noise_image(1, 9, 9, seed=1) > 0
    less = keep & (noise_image(1, 9, 9, seed=2) > 0)
    draws = [
        noisy_linear(images, mask, seeds=[5]) - mean_of_neighbours(images, mask, tolerance=1e-3)
        for mask in (keep, less)
    ]
    torch.testing.assert_close(*(draw[:, :, ~keep[0]] for draw in draws), rtol=0, atol=1e-6)


def test_different_seeds_give_different_noise():
    images, keep = torch.zeros(2, 3, 9, 9), torch.zeros(2, 9, 9)
    first, second = noisy_linear(images, keep, seeds=[1, 2])
    assert not torch.equal(first, second)


def test_a_generator_or_the_global_one_decides():
    images, keep = noise_image(2, 3, 9, 9), noise_image(2, 9, 9, seed=1) > 0
    first, again = (
        noisy_linear(images, keep, generator=torch.Generator().manual_seed(3)) for _ in range(2)
    )
    assert torch.equal(first, again)
    torch.manual_seed(3)
    assert torch.equal(noisy_linear(images, keep), first)
    assert not torch.equal(noisy_linear(images, keep), first)


def test_is_registered_and_takes_seeds():
    images, keep = noise_image(2, 3, 9, 9), noise_image(2, 9, 9, seed=1) > 0
    by_name = removal.get("noisy_linear")(images, keep, seeds=[1, 2])
    assert torch.equal(by_name, noisy_linear(images, keep, seeds=[1, 2]))
    assert inspect.signature(noisy_linear).parameters["noise"].default == 0.01


def test_torch_is_not_imported_before_the_call():
    code = "import sys, attrcheck; attrcheck.removal; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("images", "keep", "settings", "message"),
    [
        (torch.zeros(3, 9, 9), torch.ones(3, 9), {}, r"images \[N, C, H, W\].*not \[3, 9, 9\]"),
        (torch.zeros(1, 3, 9, 9).int(), torch.ones(1, 9, 9), {}, "floats.*torch.int32"),
        (
            torch.zeros(2, 3, 9, 9),
            torch.ones(2, 1, 9, 9),
            {},
            r"is \[2, 9, 9\], not \[2, 1, 9, 9\]",
        ),
        (torch.zeros(2, 3, 9, 9), torch.ones(1, 9, 9), {}, r"is \[2, 9, 9\], not \[1, 9, 9\]"),
        (torch.zeros(2, 3, 9, 9), torch.ones(2, 9, 9), {"seeds": [1]}, "seed per image: 2.*not 1"),
        (torch.zeros(2, 3, 9, 9), torch.ones(2, 9, 9), {"tolerance": 0.0}, "tolerance.*not 0"),
    ],
)
def test_errors_name_the_culprit(images, keep, settings, message):
    with pytest.raises(ValueError, match=message):
        noisy_linear(images, keep, **settings)


def test_says_so_if_it_does_not_converge(monkeypatch):
    monkeypatch.setattr(sys.modules[impute.__module__], "MOST_CYCLES", 1)
    with pytest.raises(RuntimeError, match="not within 1e-06 standard deviations after 1 cycle"):
        mean_of_neighbours(noise_image(1, 1, 20, 20), noise_image(1, 20, 20, seed=1) > 1)
