"""Removals: what is kept stays, what is gone is as said, and nobody looks at anybody else."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage, stats

import attrcheck
from attrcheck.protocols import protocol as protocols
from attrcheck.registry import RegistryError
from attrcheck.removal import Removal, removal
from attrcheck.removal.fills import RADIUS, SIGMA, blurred_copy

NAMES = ["blur", "channel_mean", "constant", "histogram", "mean", "uniform"]
each_removal = pytest.mark.parametrize("name", NAMES)


@st.composite
def holes(draw):
    """Images, what is kept of them, and their seeds."""
    torch.manual_seed(draw(st.integers(0, 2**32 - 1)))
    shape = draw(
        st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(2, 9), st.integers(2, 9))
    )
    images = torch.randn(shape)
    keep = torch.rand(shape[0], *shape[2:]) < draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    return images, keep, tuple(range(7, 7 + shape[0]))


@each_removal
@given(scene=holes())
def test_kept_pixels_are_untouched_bit_for_bit(name, scene):
    images, keep, seeds = scene
    before = images.clone()
    found = removal.get(name)(images, keep, seeds=seeds)
    assert found.shape == images.shape
    assert found.dtype == images.dtype
    kept = keep[:, None].expand_as(images)
    assert found[kept].numpy().tobytes() == images[kept].numpy().tobytes()
    assert torch.equal(images, before)


@each_removal
@given(scene=holes())
def test_removing_in_many_steps_is_removing_each_time(name, scene):
    images, keep, seeds = scene
    spec = removal.get(name)
    remove = spec.of(images, seeds)
    for each in (keep, ~keep, keep):
        assert torch.equal(remove(each), spec(images, each, seeds=seeds))


@each_removal
@given(scene=holes())
def test_an_image_becomes_the_same_alone_as_in_a_batch(name, scene):
    images, keep, seeds = scene
    together = removal.get(name)(images, keep, seeds=seeds)
    for place, seed in enumerate(seeds):
        one = slice(place, place + 1)
        alone = removal.get(name)(images[one], keep[one], seeds=(seed,))
        # A convolution of one image may round in another order than one of many.
        error = 1e-6 if name == "blur" else 0
        torch.testing.assert_close(alone, together[one], rtol=error, atol=error)


@each_removal
@given(scene=holes())
def test_what_a_removed_pixel_becomes_does_not_depend_on_the_others(name, scene):
    """All of these are `fixed`, so that a step costs no more than a choice between two images."""
    images, keep, seeds = scene
    assert removal.get(name).fixed
    some = removal.get(name)(images, keep, seeds=seeds)
    none = removal.get(name)(images, torch.zeros_like(keep), seeds=seeds)
    gone = ~keep[:, None].expand_as(images)
    assert torch.equal(some[gone], none[gone])


@each_removal
def test_keep_may_be_whole_numbers(name):
    images, keep = torch.randn(2, 1, 4, 4), torch.rand(2, 4, 4) < 0.5
    found = removal.get(name)(images, keep.to(torch.uint8), seeds=(1, 2))
    assert torch.equal(found, removal.get(name)(images, keep, seeds=(1, 2)))


def empty(name, images, **settings):
    return removal.get(name)(images, torch.zeros_like(images[:, 0]).bool(), **settings)


def test_mean_is_zero_in_normalised_units():
    assert (empty("mean", torch.randn(2, 3, 4, 4)) == 0).all()


def test_channel_mean_is_the_mean_of_the_whole_intact_image():
    images = torch.randn(2, 3, 4, 4)
    keep = torch.zeros(2, 4, 4, dtype=torch.bool)
    keep[:, 0] = True
    found = removal.get("channel_mean")(images, keep)
    wanted = images.mean((2, 3), keepdim=True).expand(2, 3, 3, 4)
    torch.testing.assert_close(found[:, :, 1:], wanted)


def test_constant_is_what_it_is_told():
    images = torch.randn(1, 2, 3, 3)
    assert (empty("constant", images) == 1).all()
    assert (empty("constant", images, value=-2.5) == -2.5).all()


def test_uniform_is_noise_from_the_seeds():
    images = torch.zeros(2, 3, 50, 50)
    found = empty("uniform", images, seeds=(1, 2))
    assert ((found >= -1) & (found < 1)).all()
    assert stats.kstest(found.flatten().numpy(), "uniform", args=(-1, 2)).pvalue > 0.01
    assert not torch.equal(found[0], found[1])
    torch.manual_seed(0)
    assert torch.equal(found, empty("uniform", images, seeds=(1, 2)))
    assert torch.equal(found.flip(0), empty("uniform", images, seeds=(2, 1)))
    assert not torch.equal(found, empty("uniform", images, seeds=(3, 4)))


def test_histogram_draws_colours_of_the_image():
    colours = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    images = torch.stack([colours, 10 + colours])[None].repeat(2, 1, 8, 8)
    drawn = empty("histogram", images, seeds=(1, 2))
    assert torch.equal(drawn[:, 1], 10 + drawn[:, 0])  # whole pixels, never channels of their own
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn, images)
    counts = [int((drawn[:, 0] == value).sum()) for value in range(4)]
    assert sum(counts) == 512
    assert all(90 < count < 170 for count in counts)  # 128 each, as in the image


def test_uniform_without_seeds_is_an_error_that_names_them():
    with pytest.raises(TypeError, match="seeds"):
        empty("uniform", torch.zeros(1, 1, 2, 2))


@pytest.mark.parametrize("shape", [(224, 224), (32, 32), (8, 8), (12, 20), (2, 3)])
def test_blur_is_the_gaussian_of_scipy(shape):
    images = torch.randn(2, 1, *shape, dtype=torch.float64)
    found = empty("blur", images)
    wanted = images.numpy()
    for axis, side in ((2, shape[0]), (3, shape[1])):
        reach = min(side - 1, max(1, round(RADIUS * side)))
        wanted = ndimage.gaussian_filter1d(
            wanted, SIGMA * side, axis=axis, mode="mirror", radius=reach
        )
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_at_224_pixels_the_blur_is_51x51_with_a_sigma_of_41():
    """A single bright pixel shows the kernel: its width, and its true sigma."""
    images = torch.zeros(1, 1, 224, 224, dtype=torch.float64)
    images[0, 0, 112, 112] = 1
    row = empty("blur", images)[0, 0, 112]
    assert row.nonzero()[:, 0].tolist() == list(range(112 - 25, 112 + 26))
    assert row[112 + 20] / row[112] == pytest.approx(np.exp(-(20**2) / (2 * 41**2)), rel=1e-5)


def test_blur_keeps_a_flat_image_up_to_its_border():
    torch.testing.assert_close(
        empty("blur", torch.full((1, 3, 10, 10), 0.7)), torch.full((1, 3, 10, 10), 0.7)
    )


def test_blur_takes_other_lengths():
    images = torch.randn(1, 1, 16, 16, dtype=torch.float64)
    found = empty("blur", images, sigma=2 / 16, radius=5 / 16)
    wanted = ndimage.gaussian_filter(images[0, 0].numpy(), 2, mode="mirror", radius=5)
    np.testing.assert_allclose(found[0, 0], wanted, atol=1e-6)
    assert torch.equal(found, blurred_copy(images, 2 / 16, 5 / 16))


def test_removals_are_attributes_of_the_registry():
    assert attrcheck.removal.blur is removal.get("blur")
    assert isinstance(attrcheck.removal.mean, Removal)
    with pytest.raises(AttributeError, match="no removal is called 'blurr'"):
        attrcheck.removal.blurr  # noqa: B018


@each_removal
@pytest.mark.parametrize("order", ["morf", "lerf"])
def test_any_removal_goes_with_either_order_by_its_prefix(order, name):
    made = protocols.get(f"{order}:{name}").make()
    assert made.removal == name
    assert made.most_relevant_first is (order == "morf")
    assert f"{order}:{name}" in protocols
    assert made.shared.key == f"emptied.{name}"
    assert made.observation.startswith(f"{order}.{name}.")


def test_morf_with_the_mean_is_morf():
    assert protocols.get("morf:mean").make() == protocols.get("morf").make()


def test_a_removal_of_ones_own(registries):
    @attrcheck.removal("black")
    def black(images, keep):
        return torch.where(keep[:, None], images, -2.0)

    assert not removal.get("black").fixed
    images = torch.zeros(1, 1, 2, 2)
    assert (empty("black", images, seeds=(1,)) == -2).all()
    keep = torch.eye(2, dtype=torch.bool)[None]
    assert removal.get("black").of(images, (1,))(keep).tolist() == [[[[0, -2], [-2, 0]]]]
    assert protocols.get("morf:black").make().removal == "black"


def test_an_unknown_removal_is_named():
    with pytest.raises(RegistryError, match="no removal is called 'blurr'; did you mean blur"):
        protocols.get("morf:blurr")
