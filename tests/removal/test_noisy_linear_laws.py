"""Laws of the noisy linear imputation, whatever images and masks."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attrcheck.removal import noisy_linear
from attrcheck.removal.imputing import CHUNK
from tests import worlds


def mean_of_neighbours(images, keep, tolerance=1e-6):
    """The imputation without noise."""
    return noisy_linear(images, keep, noise=0.0, tolerance=tolerance)


def noise_image(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


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


@given(problems(least_kept=0))
def test_kept_pixels_are_as_given(problem):
    images, keep = problem
    kept = keep[:, None].expand_as(images)
    assert torch.equal(noisy_linear(images, keep)[kept], images[kept])


@given(problems())
def test_maximum_principle(problem):
    images, keep = problem
    filled = mean_of_neighbours(images, keep)
    for image, mask, result in zip(images, keep, filled, strict=True):
        for channel, new in zip(image, result, strict=True):
            known = channel[mask]
            assert known.min() - 1e-5 <= new.min()
            assert new.max() <= known.max() + 1e-5


@given(problems(), st.floats(-3, 3), st.floats(-3, 3))
def test_linear_in_the_image(problem, a, b):
    images, keep = problem
    others = noise_image(*images.shape, seed=100)
    left = mean_of_neighbours(a * images + b * others, keep)
    right = a * mean_of_neighbours(images, keep) + b * mean_of_neighbours(others, keep)
    torch.testing.assert_close(left, right, rtol=0, atol=1e-4)


@given(problems())
def test_idempotent(problem):
    images, keep = problem
    once = mean_of_neighbours(images, keep)
    torch.testing.assert_close(mean_of_neighbours(once, keep), once, rtol=0, atol=2e-5)


@given(problems())
def test_removed_values_do_not_matter(problem):
    images, keep = problem
    others = torch.where(keep[:, None], images, noise_image(*images.shape, seed=100) * 50)
    expected = mean_of_neighbours(images, keep)
    torch.testing.assert_close(mean_of_neighbours(others, keep), expected, rtol=0, atol=1e-5)


@given(st.integers(0, 99), st.floats(0, 1))
def test_exact_on_affine_images_off_the_border(seed, share):
    y, x = torch.meshgrid(torch.arange(14.0), torch.arange(11.0), indexing="ij")
    image = (2 - 0.3 * y + 0.7 * x)[None, None]
    keep = torch.rand(1, 14, 11, generator=torch.Generator().manual_seed(seed)) > share
    keep[:, 0] = keep[:, -1] = keep[:, :, 0] = keep[:, :, -1] = True
    torch.testing.assert_close(mean_of_neighbours(image, keep), image, rtol=0, atol=3e-5)


@given(problems(least_kept=0), st.randoms())
def test_does_not_depend_on_batch_mates_or_order(problem, random):
    images, keep = problem
    together = noisy_linear(images, keep, seeds=range(len(images)))
    order = random.sample(range(len(images)), len(images))
    shuffled = noisy_linear(images[order], keep[order], seeds=order)
    torch.testing.assert_close(shuffled, together[order], rtol=0, atol=1e-5)
    alone = [noisy_linear(images[i : i + 1], keep[i : i + 1], seeds=[i]) for i in order]
    torch.testing.assert_close(torch.cat(alone), together[order], rtol=0, atol=1e-5)


@given(st.lists(problems(least_kept=0), min_size=2, max_size=4))
def test_does_not_depend_on_what_was_imputed_before(calls):
    """Memory is used again: nothing that was left in it may show."""
    first = [mean_of_neighbours(*call) for call in calls]
    for call, before in reversed(list(zip(calls, first, strict=True))):
        assert mean_of_neighbours(*call).equal(before)


def test_threads_do_not_get_in_each_others_way():
    images = noise_image(16, 3, 32, 32)
    masks = [torch.rand(16, 32, 32, generator=torch.Generator().manual_seed(k)) for k in range(4)]
    masks = [mask < 0.3 for mask in masks]
    alone = [mean_of_neighbours(images, mask) for mask in masks]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda k: mean_of_neighbours(images, masks[k % 4]), range(40)))
    assert all(found.equal(alone[k % 4]) for k, found in enumerate(together))


def test_easy_and_hard_mates_get_along():
    masks = worlds.masks(32, 32)
    keep = torch.from_numpy(np.stack(list(masks.values())))
    images = noise_image(len(keep), 3, 32, 32)
    images[::2] *= 1000
    together = mean_of_neighbours(images, keep, tolerance=1e-3)
    for i, mask in enumerate(keep):
        alone = mean_of_neighbours(images[i : i + 1], mask[None], tolerance=1e-3)[0]
        gap = (alone - together[i]).abs().max() / images[i].std()
        assert gap < 1e-5, list(masks)[i]


def test_a_batch_of_more_than_a_chunk():
    count = CHUNK // (3 * 8 * 8) + 7
    images = noise_image(count, 3, 8, 8)
    keep = noise_image(count, 8, 8, seed=1) > 0
    filled = mean_of_neighbours(images, keep)
    for i in (0, count - 8, count - 7, count - 1):
        expected = mean_of_neighbours(images[i : i + 1], keep[i : i + 1])
        torch.testing.assert_close(filled[i : i + 1], expected, rtol=0, atol=1e-5)


def test_a_broken_image_breaks_no_other():
    images, keep = noise_image(3, 2, 17, 12), noise_image(3, 17, 12, seed=1) > 0.5
    expected = mean_of_neighbours(images, keep)
    for value in (math.nan, math.inf):
        images[1, 0] = value
        filled = mean_of_neighbours(images, keep)
        assert not filled[1, 0].isfinite().any()
        for channel in ((0, 0), (0, 1), (1, 1), (2, 0), (2, 1)):
            torch.testing.assert_close(filled[channel], expected[channel])


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_constant_channels(shift):
    keep = noise_image(1, 20, 20) > 1
    image = torch.full((1, 1, 20, 20), shift)
    torch.testing.assert_close(mean_of_neighbours(image, keep), image, rtol=1e-6, atol=0)
