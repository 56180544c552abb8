"""Edge detectors against slow ones, and the published ones."""

import math

import numpy as np
import torch

from attrcheck.methods.edges import (
    LAPLACIAN,
    SOBEL,
    differences,
    edge_strength,
    filtered,
    smoothed,
)
from tests.methods.dummy_world import (
    around,
    attribute,
    close,
    each_pixel,
    grey,
    inside,
    noise,
    normalised,
    published,
)


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
