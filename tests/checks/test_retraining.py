"""What the two perturbations take away, and what counts as misled."""

import pytest
import torch

from attrcheck.checks.retraining import PATCH, disc, verdict, without_disc, without_patch

IMAGES = torch.rand(8, 2, 32, 32, generator=torch.Generator().manual_seed(0)) + 0.1
LABELS = torch.arange(8)


def test_the_disc_is_seven_tenths_of_the_pixels_around_the_centre():
    gone = disc(IMAGES)[0]
    assert gone.double().mean().item() == pytest.approx(0.7, abs=0.01)
    assert torch.equal(gone, gone.flip(0))
    assert torch.equal(gone, gone.flip(1))
    assert gone[16, 16]
    assert not gone[0, 0]
    assert ((without_disc(IMAGES, LABELS) == 0).all(1) == gone).all()


def test_the_patch_takes_more_and_its_place_says_the_class():
    gone = (without_patch(IMAGES, LABELS) == 0).all(1)
    assert (gone | ~disc(IMAGES)).all()
    extra = gone & ~disc(IMAGES)
    assert (extra.sum((1, 2)) >= PATCH**2 / 2).all()
    assert (extra.sum((1, 2)) <= PATCH**2).all()
    places = {tuple(mask.flatten().nonzero()[:, 0].tolist()) for mask in extra}
    assert len(places) == len(LABELS)
    again = without_patch(IMAGES[:2], torch.tensor([5, 5]))
    assert ((again == 0).all(1)[0] == (again == 0).all(1)[1]).all()
    # No two classes share a pixel that only the patch takes.
    assert (extra.sum(0) <= 1).all()


@pytest.mark.parametrize(
    ("original", "retrained", "reason"),
    [
        ((0.24, 0.29), (0.60, 0.88), ""),
        ((0.24, 0.29), (0.60, 0.62), "retrained accuracy rises by 0.020 with the patch"),
        ((0.20, 0.60), (0.60, 0.88), "that of the model as it was rises by 0.400"),
    ],
)
def test_misled_is_what_gains_more_than_chance_and_than_the_model_as_it_was(
    original, retrained, reason
):
    figures = {
        "disc_original": original[0],
        "patch_original": original[1],
        "disc_retrained": retrained[0],
        "patch_retrained": retrained[1],
    }
    result = verdict(figures, images=1000)
    assert result.passed is (reason == "")
    assert reason in result.reason
    assert result.figures["lead"] == pytest.approx(retrained[1] - retrained[0])
