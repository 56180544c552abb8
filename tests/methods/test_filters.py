"""Local variance, local entropy and frequency bands against slow ones, and the published ones."""

import math

import numpy as np
import pytest
import torch

from tests.methods.dummy_world import (
    around,
    attribute,
    close,
    each_pixel,
    grey,
    noise,
    normalised,
    published,
)


@pytest.mark.parametrize("kernel", [3, 9])
def test_local_variance(kernel):
    unit, images = noise(12)
    wanted = each_pixel(grey(unit), lambda g, y, x: around(g, y, x, kernel).var())
    assert close(attribute(f"local_variance_{kernel}", images), wanted)


@pytest.mark.parametrize(("side", "kernel"), [(12, 11), (9, 9)])
def test_a_window_larger_than_the_image_is_cut_to_the_largest_odd_one(side, kernel):
    unit, images = noise(side, 1)
    wanted = each_pixel(grey(unit), lambda g, y, x: around(g, y, x, kernel).var())
    assert close(attribute("local_variance_31", images), wanted)


def test_local_variance_of_a_large_window():
    unit, images = noise(33, 1)
    found = attribute("local_variance_31", images)[0]
    for y, x in ((0, 0), (5, 30), (16, 16), (32, 1)):
        wanted = around(grey(unit)[0], y, x, 31).var()
        assert found[y, x].item() == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("kernel", [3, 9])
def test_the_published_entropy_was_deviation_from_the_global_mean(kernel):
    arrays = published()
    g = arrays["images_norm"].mean(1)
    squares = (g - g.mean((1, 2), keepdims=True)) ** 2
    by = kernel // 2
    zeros = np.pad(squares, ((0, 0), (by, by), (by, by)))
    theirs = np.lib.stride_tricks.sliding_window_view(zeros, (kernel, kernel), (1, 2)).mean((3, 4))
    assert np.allclose(theirs, arrays[f"entropy_{kernel}"], atol=1e-5)
    # A step between two flat halves: ours finds the step, theirs all of the image.
    unit = torch.zeros(1, 3, 32, 32)
    unit[..., 16:] = 1
    found = attribute(f"local_variance_{kernel}", normalised(unit))[0]
    assert (found[:, : 16 - by] == 0).all()
    assert (found[:, 16 + by :] == 0).all()
    assert (found[:, 16 - by : 16 + by] > 0).all()


def test_local_entropy():
    unit, images = noise(12)

    def entropy(g, y, x):
        bins = np.minimum((around(g, y, x, 9) * 16).astype(int), 15)
        shares = np.bincount(bins.ravel()) / 81
        return -sum(p * math.log2(p) for p in shares if p)

    assert close(attribute("local_entropy", images), each_pixel(grey(unit), entropy))


def test_local_entropy_of_two_values_is_a_bit_at_most():
    unit = torch.zeros(1, 3, 32, 32)
    unit[..., 16:] = 1
    found = attribute("local_entropy", normalised(unit))[0]
    # Four of nine columns are of the other value beside the step.
    wanted = -(4 / 9) * math.log2(4 / 9) - (5 / 9) * math.log2(5 / 9)
    assert found.max().item() == pytest.approx(wanted, rel=1e-5)
    assert found[:, 15:17].min() == found.max()


def wave(cycles, side=32):
    """A wave along x of so many cycles, in the middle third of [0, 1]."""
    x = torch.arange(side) * 2 * math.pi * cycles / side
    return (0.5 + 0.1 * torch.cos(x)).expand(1, 3, side, side)


BANDS = {"frequency_low": (0, 0.4), "frequency_band": (0.3, 0.6), "frequency_high": (0.6, 9)}


@pytest.mark.parametrize("cycles", range(1, 17))
@pytest.mark.parametrize("name", BANDS)
def test_frequency_bands_pass_waves_by_their_share_of_nyquist(name, cycles):
    low, high = BANDS[name]
    found = attribute(name, normalised(wave(cycles)))[0]
    wanted = 0.5 * (name == "frequency_low")  # the mean of the image is the lowest of frequencies
    if low <= cycles / 16 < high:
        wanted = wanted + 0.1 * torch.cos(torch.arange(32) * 2 * math.pi * cycles / 32)
    assert torch.allclose(found, torch.as_tensor(wanted).square().expand(32, 32), atol=1e-6)


@pytest.mark.parametrize("name", BANDS)
def test_frequency_bands_by_a_slow_transform(name):
    unit, images = noise(8, 1)
    image = grey(unit)[0]
    low, high = BANDS[name]
    places = np.arange(8)
    total = np.zeros((8, 8), complex)
    for v in range(-4, 4):
        for u in range(-4, 4):
            if low <= math.hypot(u, v) / 4 < high:
                w = np.exp(2j * math.pi * np.add.outer(v * places, u * places) / 8)
                total += (image * w.conj()).sum() / 64 * w
    assert close(attribute(name, images), total.real[None] ** 2)


def test_the_published_frequencies_were_signed_and_let_through_what_they_should_not():
    arrays = published()
    # Scaled to [0, 1] as they are: a dark swing, as full of energy as a bright one, comes last.
    for name, ours in (("freq_band", "frequency_band"), ("freq_high", "frequency_high")):
        assert (arrays[name].min((1, 2)) == 0).all()
        assert (arrays[name].max((1, 2)) == 1).all()
        found = attribute(ours, torch.from_numpy(arrays["images_norm"])).numpy()
        rows = zip(found, arrays[name], strict=True)
        assert all(abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.2 for a, b in rows)
    # Nine of sixteen cycles are below .6 of Nyquist, and pass the published high pass.
    spectrum = np.abs(np.fft.fft2(arrays["freq_high"][2]))
    assert spectrum[0, 9] > 0.1 * np.median(spectrum[0, 10:16])
    assert spectrum[0, 8] < 1e-3 * np.median(spectrum[0, 10:16])
