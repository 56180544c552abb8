"""All dummies: what they say of themselves, maps of any size, and blank images."""

import math

import numpy as np
import pytest
import torch

from attrcheck.methods import method
from tests.methods.dummy_world import (
    DUMMIES,
    LOOKING,
    attribute,
    close,
    grey,
    noise,
    normalised,
    published,
)


def test_all_dummies_of_the_spec_are_there():
    assert set(DUMMIES) == {
        *("random", "intensity", "local_entropy"),
        *("gaussian_centre_8", "gaussian_centre_4", "gaussian_centre_2"),
        *("local_variance_3", "local_variance_9", "local_variance_31"),
        *("edge_sobel", "edge_gradient", "edge_canny", "edge_marr_hildreth"),
        *("frequency_low", "frequency_band", "frequency_high"),
    }


@pytest.mark.parametrize("name", DUMMIES)
def test_what_a_dummy_says_of_itself(name):
    spec = method.get(name)
    assert (spec.family, spec.passes, spec.cost) == ("dummy", (0, 0), 0)
    assert bool(spec.constant) == (name in LOOKING)


@pytest.mark.parametrize("name", DUMMIES)
@pytest.mark.parametrize(("channels", "height", "width"), [(3, 32, 32), (1, 8, 8), (3, 12, 20)])
def test_maps_have_one_finite_value_a_pixel_for_any_size(name, channels, height, width):
    _, images = noise(height, 2, channels, width)
    kept = images.clone()
    maps = attribute(name, images)
    assert maps.shape == (2, height, width)
    assert maps.dtype == torch.float32
    assert maps.isfinite().all()
    assert (maps >= 0).all()
    assert (maps.amax((1, 2)) > maps.amin((1, 2))).all()
    assert torch.equal(images, kept)
    assert torch.equal(attribute(name, images)[:1], attribute(name, images[:1]))


@pytest.mark.parametrize("name", LOOKING)
def test_a_blank_image_ranks_nothing_and_the_reason_is_declared(name):
    images = normalised(torch.full((1, 3, 32, 32), 0.3))
    maps = attribute(name, images)
    assert (maps == maps[0, 0, 0]).all()
    assert "blank" in method.get(name).constant


# Rounding must not rank the pixels of the two flat halves.
@pytest.mark.parametrize("name", [n for n in LOOKING if not n.startswith("frequency")])
def test_flat_areas_are_flat(name):
    unit = torch.full((1, 3, 32, 64), 0.3)
    unit[..., 32:] = 0.7
    maps = attribute(name, normalised(unit))
    for part in (maps[..., :16], maps[..., 48:]):
        assert (part == part[0, 0, 0]).all()


@pytest.mark.parametrize("share", [8, 4, 2])
def test_gaussian_centre(share):
    found = attribute(f"gaussian_centre_{share}", torch.zeros(1, 3, 8, 16))[0]
    for y in range(8):
        for x in range(16):
            away = ((y - 3.5) / (8 / share)) ** 2 + ((x - 7.5) / (16 / share)) ** 2
            assert found[y, x].item() == pytest.approx(math.exp(-away / 2), rel=1e-5)


def test_the_published_gaussians_are_one_ranking_and_so_are_ours():
    ours = [attribute(f"gaussian_centre_{n}", torch.zeros(1, 3, 32, 32))[0] for n in (8, 4, 2)]
    first, last = published()["gaussian"]
    units = np.linspace(-1, 1, 32) ** 2  # theirs measured in half sides
    for maps, sigma in ((first, 1), (last, 256)):
        assert np.allclose(maps, np.exp(-np.add.outer(units, units) / (2 * sigma**2)), atol=1e-6)
    distance = np.add.outer((np.arange(32) - 15.5) ** 2, (np.arange(32) - 15.5) ** 2)
    order = np.argsort(distance.ravel(), kind="stable")
    for maps in (first, last, *(each.numpy() for each in ours)):
        assert (np.diff(maps.ravel()[order].astype(float)) <= 1e-6 * maps.max()).all()


def test_intensity_is_the_brightness_of_the_image_as_it_was():
    unit, images = noise(6)
    assert close(attribute("intensity", images), grey(unit), 1e-6)
    arrays = published()
    found = attribute("intensity", torch.from_numpy(arrays["images_norm"]))
    assert np.allclose(found, arrays["images_unit"].mean(1), atol=1e-6)
