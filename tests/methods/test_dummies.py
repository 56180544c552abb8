"""Dummies: pixel by pixel against their definitions, and against the maps as once published."""

import functools
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods.edges import (
    LAPLACIAN,
    SOBEL,
    differences,
    edge_strength,
    filtered,
    smoothed,
)

DUMMIES = [name for name in method if method.get(name).dummy]
LOOKING = [name for name in DUMMIES if name != "random" and not name.startswith("gaussian")]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@functools.cache
def published():
    """Arrays of the reproduction: images, and its dummy maps with their faults."""
    with np.load(Path(__file__).parents[1] / "data" / "dummies.npz") as file:
        return {name: file[name] for name in file}


def dataset(channels=3, side=32):
    image, label = torch.zeros(1, channels, side, side), torch.zeros(1, dtype=torch.int64)
    return Dataset("d", image, label, 2, MEAN[:channels], STD[:channels], ("d/0",))


def attribute(name, images):
    """The maps of normalised images."""
    spec = method.get(name)
    targets = torch.zeros(len(images), dtype=torch.int64)
    if name == "random":
        return spec.attribute(None, images, targets, seeds=tuple(range(len(images))))
    if name.startswith("gaussian"):
        return spec.attribute(None, images, targets)
    data = dataset(images.shape[1], images.shape[2])
    return spec.attribute(None, images, targets, dataset=data)


def noise(side, count=2, channels=3, width=None):
    """Unit images, and the same ones normalised."""
    generator = torch.Generator().manual_seed(3)
    unit = torch.rand(count, channels, side, width or side, generator=generator)
    return unit, normalised(unit)


def normalised(unit):
    return dataset(unit.shape[1]).normalise(unit)


def grey(unit):
    return unit.double().mean(1).numpy()


def inside(image, y, x, mode):
    """The value at a place that may lie outside: the border's, or the mirror image's."""
    height, width = image.shape
    if mode == "reflect":
        y, x = (abs(v) if v < n else 2 * (n - 1) - v for v, n in ((y, height), (x, width)))
    return image[min(max(y, 0), height - 1), min(max(x, 0), width - 1)]


def each_pixel(images, function):
    """function(image, y, x) at every pixel."""
    return np.array(
        [
            [[function(image, y, x) for x in range(image.shape[1])] for y in range(image.shape[0])]
            for image in images
        ]
    )


def around(image, y, x, kernel, mode="reflect"):
    """The values in a window."""
    steps = range(-(kernel // 2), kernel // 2 + 1)
    return np.array([[inside(image, y + i, x + j, mode) for j in steps] for i in steps])


def close(found, wanted, tolerance=1e-5):
    return np.abs(found.numpy() - wanted).max() <= tolerance * np.abs(wanted).max()


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


def test_edge_sobel():
    unit, images = noise(10)
    kernel = np.outer([1, 2, 1], [-1, 0, 1])

    def slopes(g, y, x):
        window = around(g, y, x, 3, "replicate")
        return abs((window * kernel).sum()) + abs((window * kernel.T).sum())

    assert close(attribute("edge_sobel", images), each_pixel(grey(unit), slopes))


def test_edge_gradient():
    unit, images = noise(10)

    def slopes(g, y, x):
        window = around(g, y, x, 3, "replicate")
        return (abs(window[1, 2] - window[1, 0]) + abs(window[2, 1] - window[0, 1])) / 2

    assert close(attribute("edge_gradient", images), each_pixel(grey(unit), slopes))


def test_sobel_agrees_with_the_published_one_inside_the_border():
    arrays = published()
    norm = torch.from_numpy(arrays["images_norm"]).double().mean(1)
    ours, theirs = edge_strength(norm, SOBEL).numpy(), arrays["edge_sobel"]
    assert np.allclose(ours[:, 1:-1, 1:-1], theirs[:, 1:-1, 1:-1], atol=1e-5)
    # Theirs took what lies outside for zero, in normalised units: the border is an edge.
    ring = np.ones((32, 32), bool)
    ring[1:-1, 1:-1] = False
    assert (theirs[:, ring].mean(1) > 1.5 * ours[:, ring].mean(1)).any()
    blank = torch.full((1, 3, 8, 8), 0.9)
    assert (attribute("edge_sobel", normalised(blank)) == 0).all()


def test_the_published_gradient_was_sobel_again():
    arrays = published()
    norm = torch.from_numpy(arrays["images_norm"]).double().mean(1)
    gx, gy = differences(norm, SOBEL)
    again, theirs = torch.hypot(gx, gy).numpy()[:, 1:-1, 1:-1], arrays["edge_gradient"]
    assert np.allclose(again, theirs[:, 1:-1, 1:-1], atol=1e-5)
    gx, gy = differences(norm, (0.0, 0.5, 0.0))
    plain = torch.hypot(gx, gy).numpy()[:, 1:-1, 1:-1]
    assert np.corrcoef(plain.ravel(), again.ravel())[0, 1] < 0.95


def test_intensity_is_the_brightness_of_the_image_as_it_was():
    unit, images = noise(6)
    assert close(attribute("intensity", images), grey(unit), 1e-6)
    arrays = published()
    found = attribute("intensity", torch.from_numpy(arrays["images_norm"]))
    assert np.allclose(found, arrays["images_unit"].mean(1), atol=1e-6)


def smooth(image, sigma):
    """A Gaussian out to four sigma, pixel by pixel."""
    radius = math.ceil(4 * sigma)
    weights = np.exp(-(np.arange(-radius, radius + 1) ** 2) / (2 * sigma**2))
    kernel = np.outer(weights, weights) / weights.sum() ** 2
    size = 2 * radius + 1
    return each_pixel([image], lambda g, y, x: (around(g, y, x, size, "replicate") * kernel).sum())[
        0
    ]


def test_edge_marr_hildreth():
    unit, images = noise(10)

    def crossings(g, y, x):
        jumps = 0
        for i, j in ((y, x + 1), (y + 1, x)):
            if i < 10 and j < 10 and g[y, x] * g[i, j] < 0:
                jumps += abs(g[y, x] - g[i, j])
        return jumps

    curved = []
    for image in grey(unit):
        g = smooth(image, 1)
        curved.append(each_pixel([g], lambda g, y, x: _cross(around(g, y, x, 3, "replicate")))[0])
    assert close(attribute("edge_marr_hildreth", images), each_pixel(curved, crossings))


def _cross(window):
    return window[0, 1] + window[1, 0] + window[1, 2] + window[2, 1] - 4 * window[1, 1]


def test_the_published_marr_hildreth_was_the_signed_laplacian_without_crossings():
    arrays = published()
    norm = torch.from_numpy(arrays["images_norm"]).double().mean(1)
    ours = filtered(smoothed(norm), LAPLACIAN).numpy()[:, 4:-4, 4:-4]
    theirs = arrays["edge_marr_hildreth"][:, 4:-4, 4:-4]
    assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.999
    assert (theirs < 0).mean() > 0.3
    # One bright half: the crossing is at the step; a signed Laplacian has its peak beside it.
    unit = torch.zeros(1, 3, 16, 16)
    unit[..., 8:] = 1
    found = attribute("edge_marr_hildreth", normalised(unit))[0]
    assert (found[:, 7] > 0).all()
    assert (found[:, :7] == 0).all()
    assert (found[:, 8:] == 0).all()


def canny(image):
    """Canny, pixel by pixel, with a flood from every strong ridge."""
    height, width = image.shape
    g = smooth(image, 1)
    kernel = np.outer([1, 2, 1], [-1, 0, 1])
    slope = {}
    for y in range(height):
        for x in range(width):
            window = around(g, y, x, 3, "replicate")
            slope[y, x] = (window * kernel).sum(), (window * kernel.T).sum()
    size = np.array([[math.hypot(*slope[y, x]) for x in range(width)] for y in range(height)])
    ridge = set()
    for (y, x), (gx, gy) in slope.items():
        degrees = math.degrees(math.atan2(gy, gx)) % 180
        dy, dx = [(0, 1), (1, 1), (1, 0), (1, -1)][round(degrees / 45) % 4]
        ahead, behind = (inside(size, y + s * dy, x + s * dx, "replicate") for s in (1, -1))
        if size[y, x] >= ahead - 1e-9 and size[y, x] > behind + 1e-9:
            ridge.add((y, x))
    weak = {place for place in ridge if size[place] >= 0.1 * size.max()}
    waiting = [place for place in weak if size[place] >= 0.2 * size.max()]
    edge = np.zeros_like(image)
    while waiting:
        y, x = waiting.pop()
        edge[y, x] = 1
        near = [(y + i, x + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        waiting += [place for place in near if place in weak and not edge[place]]
    return edge


def test_edge_canny():
    unit, _ = noise(16, 3)
    unit = unit * torch.linspace(0.05, 1, 16)  # faint on the left, so that thresholds matter
    found = attribute("edge_canny", normalised(unit)).numpy()
    wanted = np.array([canny(image) for image in grey(unit)])
    assert 0.1 < wanted.mean() < 0.4
    assert (found != wanted).sum() <= 1  # float32 may move a pixel across a threshold


def test_edge_canny_of_a_step_is_one_line():
    unit = torch.full((1, 3, 16, 16), 0.2)
    unit[..., 8:] = 0.7
    found = attribute("edge_canny", normalised(unit))[0]
    assert (found.sum(1) == 1).all()
    assert found[:, 7].sum() == 16


def test_edge_canny_links_weak_ridges_to_strong_ones_only():
    unit = torch.zeros(1, 3, 32, 32)
    unit[..., :20, 16:] = torch.linspace(1, 0.15, 20)[:, None]  # one line, strong to weak
    unit[..., 24:, 4:12] = 0.15  # weak and alone
    found = attribute("edge_canny", normalised(unit))[0]
    assert found[2:17, 15:17].sum(1).min() == 1
    assert found[22:, :14].sum() == 0


def test_the_published_canny_wrapped_negative_values():
    arrays = published()
    ours = attribute("edge_canny", torch.from_numpy(arrays["images_norm"])).numpy()
    # On the image of a shape, theirs on the unit image finds as many edges as ours, and most of
    # them within a pixel; on the normalised image, whose negatives wrap, four times as many.
    shape, unit, wrapped = (
        maps[1] for maps in (ours, arrays["edge_canny_unit"], arrays["edge_canny"])
    )
    assert 0.8 < shape.sum() / unit.sum() < 1.25
    near = torch.nn.functional.max_pool2d(torch.from_numpy(unit)[None, None], 3, 1, 1)[0, 0].numpy()
    assert (shape * near).sum() > 0.95 * shape.sum()
    assert wrapped.sum() > 4 * shape.sum()


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
