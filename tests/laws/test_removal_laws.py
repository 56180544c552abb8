"""Every law of removals catches its culprit, and holds for all built-in removals."""

import numpy as np
import pytest
import torch

from attrcheck.laws.removals import Cut, laws_of
from attrcheck.laws.strategies import cuts
from attrcheck.laws.trying import BrokenLawError, Effort, attempt
from attrcheck.removal import Removal
from attrcheck.removal import removal as removals


def named(removal):
    return {law.__name__.removeprefix("law_"): law for law in laws_of(removal)}


def hold(removal, law, examples=20):
    attempt(lambda cut: named(removal)[law](removal, cut), cuts(), Effort(examples, seed=0))


@pytest.mark.parametrize("name", list(removals))
def test_built_in_removals_obey_the_law(name):
    for law in named(removals.get(name)):
        hold(removals.get(name), law)


def test_the_simplest_cut_by_hand():
    cut = Cut(seed=0, count=1, channels=1, height=2, width=2, keep="one")
    assert cut.images.shape == (1, 1, 2, 2)
    assert cut.kept.sum() == 1
    zero = cut.by(Removal("zero", lambda images, keep: images * keep[:, None]))
    assert (zero != 0).sum() == 1


def zero(images, keep):
    return images * keep[:, None]


def shaded(images, keep):
    return zero(images, keep) + 0.01 * images.mean((2, 3), keepdim=True)


def torn(images, keep):
    return images / keep[:, None]


def flat(images, keep):
    return zero(images, keep)[:, :1]


def noisy(images, keep):
    return torch.where(keep[:, None], images, torch.rand(images.shape))


def numpy_noise(images, keep):
    return torch.where(keep[:, None], images, torch.from_numpy(np.random.rand(1)).float())


def in_place(images, keep):
    return images.mul_(keep[:, None])


def across(images, keep):
    return torch.where(keep[:, None], images, images.mean(0, keepdim=True))


def of_the_kept(images, keep):
    kept = keep[:, None].float()
    mean = (images * kept).sum((2, 3), keepdim=True) / kept.sum((2, 3), keepdim=True).clamp(min=1)
    return torch.where(keep[:, None], images, mean)


@pytest.mark.parametrize(
    ("culprit", "law", "says"),
    [
        (shaded, "kept_pixels_stay_as_they_are", "a kept pixel is changed, by up to 0.00"),
        (shaded, "keeping_all_changes_nothing", "of which all is kept is changed"),
        (torn, "removed_pixels_are_finite", "a removed pixel is not finite"),
        (flat, "removed_pixels_are_finite", r"images \[1, 3, 2, 2\] become \[1, 1, 2, 2\]"),
        (noisy, "removing_again_gives_the_same", "the second time"),
        (numpy_noise, "removing_again_gives_the_same", "the second time"),
        (in_place, "removing_leaves_its_input_alone", "changed the images"),
        (across, "an_image_is_not_filled_from_others", "image 0 of 2 becomes something else"),
        (of_the_kept, "fixed_fillings_do_not_depend_on_what_is_kept", "depends on others"),
    ],
    ids=lambda value: value.__name__ if callable(value) else value.split()[0],
)
def test_each_law_catches_its_culprit(culprit, law, says):
    hold(Removal("zero", zero, fixed=True), law)
    with pytest.raises(BrokenLawError, match=says) as caught:
        hold(Removal("culprit", culprit, fixed=True), law, examples=200)
    assert "height=2, width=2" in caught.value.scene


def test_only_fixed_removals_are_held_to_it():
    names = [set(named(Removal("zero", zero, fixed=fixed))) for fixed in (True, False)]
    assert names[0] - names[1] == {"fixed_fillings_do_not_depend_on_what_is_kept"}
