"""Scenes are what they say: the spot decides, and contributions add up to the logit."""

import pytest
import torch

from attrcheck.laws.scenes import KINDS, Scene
from attrcheck.testing import scenes


@pytest.mark.parametrize("kind", KINDS)
def test_a_scene_is_what_it_says(kind):
    scene = Scene(3, 6, kind)
    batch = scene.batch()
    assert batch.intact["correct"].all()  # the spot decides
    empty = scene.images * ~scene.masks[:, None]
    assert not (scene.model(empty).argmax(1) == scene.labels).all()
    logits = scene.model(scene.images).gather(1, scene.labels[:, None])[:, 0]
    bias = scene.model[1].bias[scene.labels]
    sums = scene.contributions(scene.images).sum((1, 2))
    torch.testing.assert_close(sums.double() + bias, logits, rtol=1e-5, atol=1e-5)
    flat = scene.chosen.amax((1, 2)) == scene.chosen.amin((1, 2))
    assert int(flat.sum()) == {"some flat": 3, "all flat": 6}.get(kind, 0)
    assert scene.chosen.dtype == torch.float32
    small = Scene(3, 2, kind)
    assert torch.equal(small.images, scene.images[:2])
    assert repr(scene) == f"Scene(seed=3, count=6, maps={kind!r})"


def test_scenes_differ():
    assert not torch.equal(Scene(0).images, Scene(1).images)
    assert scenes() is not None
