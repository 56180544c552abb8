"""Random sets of pixels: by hand, against scipy, and against Captum's infidelity."""

import itertools
from itertools import cycle

import captum.metrics
import numpy as np
import pytest
import torch
from scipy.stats import pearsonr

from attrcheck.laws.scenes import Scene
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols import sampling
from attrcheck.protocols.sampling import Correlation, Infidelity, Pixels, Squares

NAMES = ("sensitivity_n", "faithfulness_correlation", "infidelity")
SEEDS = (3, 5)


def test_sets_have_their_sizes_and_hold_those_before():
    masks = list(Pixels((1, 4), 8, samples=3).masks(SEEDS, 4, 4))
    assert [mask.sum((1, 2)).tolist() for mask in masks] == [[2, 2]] * 3 + [[8, 8]] * 3
    assert all((masks[k] <= masks[k + 3]).all() for k in range(3))
    assert not torch.equal(masks[0], masks[1])


def test_squares_lie_inside():
    for mask in Squares(4, samples=20).masks(SEEDS, 8, 12):
        for one in mask:
            rows, columns = one.any(1), one.any(0)
            assert (int(rows.sum()), int(columns.sum())) == (2, 3)
            assert int(one.sum()) == 6


def test_an_image_draws_its_own_sets():
    sets = Pixels((1,), 4, samples=2)
    together = list(sets.masks(SEEDS, 4, 4))
    alone = list(sets.masks(SEEDS[1:], 4, 4))
    assert all(torch.equal(one[1:], other) for one, other in zip(together, alone, strict=True))


def test_sets_are_drawn_once_for_all_methods_while_there_is_room(monkeypatch):
    drawn = []

    class Counted(Squares):
        def draw(self, rng, height, width):
            drawn.append(True)
            return super().draw(rng, height, width)

    monkeypatch.setattr(sampling, "SETS", {})
    sets, batches = Counted(4, samples=2), ((1, 2), (3, 4))

    def asked(methods):
        drawn.clear()
        told = [sets.masks(seeds, 5, 7) for _ in range(methods) for seeds in batches]
        return told, len(drawn)

    remembered, images = asked(3)
    assert images == 4  # those of two batches, whatever the methods
    sampling.SETS.clear()
    monkeypatch.setattr(sampling, "KEPT_BYTES", 1)
    redrawn, images = asked(3)
    assert images == 12
    assert len(sampling.SETS) == 1
    assert all(map(torch.equal, itertools.chain(*remembered), itertools.chain(*redrawn)))


def test_infidelity_by_hand():
    protocol = Infidelity(Squares(4, samples=2))
    rows = {
        "attribution": np.array([[1.0, 3.0], [1.0, 0.0], [-1.0, -2.0], [0.0, 0.0]]),
        "loss_logit": np.array([[2.0, 6.0], [2.0, 2.0], [1.0, 2.0], [1.0, 3.0]]),
    }
    # Twice the map; twice, but the second set is missed; the wrong sign; nothing.
    assert protocol.reduce(rows).per_image == pytest.approx([0, 2, 2.5, 5])


def test_correlations_of_sizes_are_averaged():
    protocol = Correlation(Pixels((1, 2), 4, samples=3), sizes=2)
    sums, losses = np.array([[1.0, 2, 3, 5, 1, 4]]), np.array([[2.0, 1, 3, 1, 2, 2]])
    wanted = np.mean(
        [pearsonr(sums[0, :3], losses[0, :3])[0], pearsonr(sums[0, 3:], losses[0, 3:])[0]]
    )
    rows = {"attribution": sums, "loss_logit": losses}
    assert protocol.reduce(rows).score == pytest.approx(wanted)
    flat = {**rows, "attribution": np.array([[1.0, 2, 3, 0.1, 0.1, 0.1 + 1e-15]])}
    assert protocol.reduce(flat).score == pytest.approx(pearsonr(sums[0, :3], losses[0, :3])[0])
    assert np.isnan(protocol.reduce({**rows, "attribution": np.full((1, 6), 0.1)}).score)


@pytest.mark.parametrize("name", NAMES)
def test_the_truth_of_a_linear_model_is_exact(name):
    scene = Scene(seed=1, count=3, maps="truth")
    protocol = protocols.get(name).make()
    score = protocol.reduce(scene.observe(protocol)).score
    assert score == pytest.approx(0 if name == "infidelity" else 1, abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_methods_share_all_passes(tiny, passes, name):
    tiny.run(f"tiny-linear-{name}", methods=("slope",))
    before = len(passes)
    outcome = tiny.run(f"tiny-linear-{name}").outcomes["brightness"]
    assert len(passes) == before
    assert outcome.passes["observation"] == [0.0, 0.0]


def test_infidelity_is_that_of_captum_with_its_best_scale():
    scene = Scene(seed=2, count=1, maps="truth")
    noisy = scene.contributions(scene.images) + 0.3 * Scene(seed=9, count=1).chosen
    protocol, batch = protocols.get("infidelity").make(), scene.batch()
    rows = protocol.observe(scene.model, batch, noisy, protocol.observe_shared(scene.model, batch))
    gone = [mask[0] for mask in protocol.sets.masks(batch.seeds, 8, 8)]
    following = cycle(gone)

    def perturb(images):
        taken = torch.stack([next(following) for _ in images])[:, None].expand_as(images)
        return taken.to(images.dtype), images.masked_fill(taken, 0)

    theirs = captum.metrics.infidelity(
        scene.model,
        perturb,
        scene.images,
        (noisy.double()[:, None] / 3).expand_as(scene.images),
        target=scene.labels,
        n_perturb_samples=len(gone),
        normalize=True,
    )
    assert protocol.reduce(rows).score == pytest.approx(float(theirs), rel=1e-6)


@pytest.mark.parametrize("name", ["sensitivity_n", "faithfulness_correlation"])
def test_correlations_are_those_of_a_plain_loop(name):
    """FaithfulnessCorrelation of Quantus, with our sets: set by set, one pass each.

    Its SensitivityN is another one: it correlates across images, and removes the top of each map.
    """
    scene = Scene(seed=4, count=2)
    protocol, batch = protocols.get(name).make(), scene.batch()
    scores = protocol.reduce(scene.observe(protocol)).per_image
    masks = torch.stack(list(protocol.sets.masks(batch.seeds, 8, 8)), 1)
    for at, sets in enumerate(masks):
        image, label = scene.images[at], scene.labels[at]
        intact = scene.model(image[None])[0, label]
        sums = [float(scene.chosen[at][gone].double().sum()) for gone in sets]
        losses = [float(intact - scene.model((image * ~gone)[None])[0, label]) for gone in sets]
        by_size = zip(
            *(np.array_split(side, protocol.sizes) for side in (sums, losses)), strict=True
        )
        wanted = np.mean([pearsonr(*both)[0] for both in by_size])
        assert scores[at] == pytest.approx(wanted, abs=1e-9)
