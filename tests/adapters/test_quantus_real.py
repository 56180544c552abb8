"""Metrics of Quantus as protocols: the real library, where it is installed."""

import numpy as np
import pytest
import torch
from torch import nn

from attrcheck.adapters import quantus as adapter
from attrcheck.adapters.quantus import quantus_protocol
from attrcheck.errors import AttrcheckError
from attrcheck.graph.guard import Snapshot

COUNT, CHANNELS, SIDE = 3, 3, 16


@pytest.fixture
def quantus():
    """The real library."""
    return pytest.importorskip("quantus")


SMALL = {
    "PixelFlipping": {"features_in_step": 32},
    "RegionPerturbation": {"patch_size": 4, "regions_evaluation": 8},
    "Selectivity": {"patch_size": 4},
    "ROAD": {"percentages": [10, 50, 90]},
    "IROF": {},
    "FaithfulnessCorrelation": {"subset_size": 64, "nr_runs": 30},
    "FaithfulnessEstimate": {"features_in_step": 32},
    "Monotonicity": {"features_in_step": 32},
    "MonotonicityCorrelation": {"features_in_step": 32, "nr_samples": 3},
    "Infidelity": {"n_perturb_samples": 1, "perturb_patch_sizes": [4]},
    "MaxSensitivity": {"nr_samples": 3},
    "AvgSensitivity": {"nr_samples": 3},
    "LocalLipschitzEstimate": {"nr_samples": 3},
    "Continuity": {"nr_steps": 4},
    "RelativeInputStability": {"nr_samples": 3},
    "RelativeOutputStability": {"nr_samples": 3},
    "RelativeRepresentationStability": {"nr_samples": 3},
    "PointingGame": {},
    "TopKIntersection": {"k": 20},
    "RelevanceMassAccuracy": {},
    "RelevanceRankAccuracy": {},
    "AttributionLocalisation": {},
    "AUC": {},
    "Sparseness": {},
    "Complexity": {},
    "EffectiveComplexity": {},
    "Completeness": {},
}
"""All metrics that can be protocols, with little to do; NonSensitivity takes no less than all."""


def test_every_real_metric_is_used_or_refused(quantus):
    assert set(adapter._metrics()) == {*SMALL, "NonSensitivity", *adapter.REFUSED}


@pytest.mark.usefixtures("quantus")
@pytest.mark.parametrize("name", SMALL)
def test_real_metrics_score_each_image_alone_and_leave_no_trace(world, name):
    protocol = quantus_protocol(name, **SMALL[name])()
    before, kept = Snapshot.of(world.model), (world.images.clone(), world.maps.clone())
    whole = world.scores(protocol)
    assert np.isfinite(whole).any()
    assert before.change(world.model) is None
    assert torch.equal(world.images, kept[0])
    assert torch.equal(world.maps, kept[1])
    assert world.scores(protocol, order=[2]) == pytest.approx(whole[[2]], rel=1e-4, nan_ok=True)
    assert world.scores(protocol, order=[1, 0]) == pytest.approx(
        whole[[1, 0]], rel=1e-4, nan_ok=True
    )
    robust = ("Sensitivity", "Stability", "Lipschitz", "Continuity")
    assert bool(world.asked) == any(word in name for word in robust)


@pytest.mark.usefixtures("quantus")
@pytest.mark.parametrize(
    "name",
    [
        *("PixelFlipping", "RegionPerturbation", "Selectivity", "ROAD", "IROF"),
        *("FaithfulnessCorrelation", "FaithfulnessEstimate", "Infidelity"),
    ],
)
def test_contributions_beat_their_negation_in_the_real_direction(world, name):
    protocol = quantus_protocol(name, **SMALL[name])()
    right, wrong = (
        protocol.reduce({"score": world.scores(protocol, sign * world.maps)}).score
        for sign in (1, -1)
    )
    assert (right > wrong) == protocol.higher_is_better
    assert right != wrong


def test_least_relevant_first_turns_the_real_direction(world, quantus):
    protocol = quantus_protocol("RegionPerturbation", order="lerf", **SMALL["RegionPerturbation"])()
    assert not protocol.higher_is_better
    assert world.scores(protocol).mean() < world.scores(protocol, -world.maps).mean()


def test_real_pixel_flipping_by_hand(grey_world, quantus):
    world, step = grey_world, 32
    scores = world.scores(
        quantus_protocol("PixelFlipping", features_in_step=step, perturb_baseline=0.0)()
    )
    for place, score in enumerate(scores):
        order = world.maps[place].flatten().argsort(descending=True)
        image, curve = world.images[place].flatten().clone(), []
        for start in range(0, SIDE * SIDE, step):
            image[order[start : start + step]] = 0
            logits = world.model(image.view(1, 1, SIDE, SIDE))
            curve.append(float(logits.softmax(1)[0, world.labels[place]]))
        assert score == pytest.approx(sum(curve) - (curve[0] + curve[-1]) / 2, rel=1e-4)


@pytest.mark.parametrize("kind", ["grey_world", "world"])
def test_real_road_removes_pixels_by_hand(request, quantus, kind):
    world, percentages = request.getfixturevalue(kind), [10, 30, 70]
    protocol = quantus_protocol("ROAD", percentages=percentages, noise=0.0)()
    maps = 9 - world.maps.abs()  # so that it is neither always right nor always wrong
    scores = world.scores(protocol, maps)
    wanted = []
    for image, label, values in zip(world.images, world.labels, maps, strict=True):
        order = values.flatten().argsort(descending=True).numpy()
        right = []
        for percentage in percentages:
            gone = order[: SIDE * SIDE * percentage // 100]
            left = quantus.noisy_linear_imputation(image.numpy(), gone, noise=0.0)
            logits = world.model(torch.as_tensor(left, dtype=torch.float32)[None])
            right.append(bool(logits.argmax() == label))
        wanted.append(np.mean(right))
    assert scores == pytest.approx(wanted)


class Witness(nn.Module):
    """Notes every image that it sees."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, images):
        self.seen.extend(images.clone())
        return images.mean((2, 3))


@pytest.mark.parametrize("levels", [256, 4])
def test_real_road_removes_as_many_pixels_as_it_says(world, quantus, levels):
    world.maps = (torch.randperm(256) % levels).float().view(1, SIDE, SIDE).repeat(COUNT, 1, 1)
    world.model = Witness().eval()
    world.scores(quantus_protocol("ROAD", percentages=[25, 50, 60], noise=0.01)())
    seen = torch.stack(world.model.seen[COUNT:]).view(COUNT, 3, CHANNELS, SIDE, SIDE)
    gone = seen != world.images[:, None]
    assert torch.equal(gone.all(2), gone.any(2))
    assert (gone.all(2).sum((2, 3)) == torch.tensor([64, 128, 153])).all()
    least_gone = torch.where(gone.all(2), world.maps[:, None], levels).amin((2, 3))
    most_left = torch.where(gone.all(2), -1, world.maps[:, None]).amax((2, 3))
    assert (least_gone >= most_left).all()


def test_real_localisation_by_hand(world, quantus):
    maps = torch.zeros(COUNT, SIDE, SIDE)
    maps[:, 5, 5], maps[:, 0, 0] = torch.tensor([3.0, 1, 3]), torch.tensor([1.0, 3, 1])
    world.masks[2] = False
    for name, wanted in [
        ("PointingGame", [1, 0, np.nan]),
        ("RelevanceMassAccuracy", [0.75, 0.25, np.nan]),
    ]:
        protocol = quantus_protocol(name)()
        reduced = protocol.reduce({"score": world.scores(protocol, maps)})
        assert reduced.per_image == pytest.approx(wanted, nan_ok=True)
        assert reduced.score == pytest.approx(0.5)
        assert reduced.undefined == 1


def test_real_complexity_by_hand(world, quantus):
    maps = torch.zeros(COUNT, SIDE, SIDE)
    for place, pixels in enumerate((1, 2, 8)):
        maps[place].view(-1)[:pixels] = 1
    # Entropy of a map that is equal on some pixels, and the Gini index of the same.
    assert world.scores(quantus_protocol("Complexity")(), maps) == pytest.approx(
        np.log([1, 2, 8]), abs=1e-3
    )
    gini = 1 - np.array([1, 2, 8]) / SIDE**2
    assert world.scores(quantus_protocol("Sparseness")(), maps) == pytest.approx(gini, abs=1e-2)


def test_real_sensitivity_by_hand(world, quantus):
    for name in ("MaxSensitivity", "LocalLipschitzEstimate"):
        scores = world.scores(
            quantus_protocol(name, nr_samples=4)(), attribute=lambda images: world.maps
        )
        assert scores == pytest.approx(np.zeros(COUNT), abs=1e-6)
    maps, change = world.maps, torch.full((COUNT, SIDE, SIDE), 0.5)
    # The norm of the change over that of the map.
    scores = world.scores(
        quantus_protocol("MaxSensitivity", nr_samples=2)(), attribute=lambda images: maps + change
    )
    wanted = 0.5 * SIDE / maps.flatten(1).norm(dim=1)
    assert scores == pytest.approx(wanted.numpy(), rel=1e-3)


def test_real_metrics_take_a_wrapper_that_is_not_in_eval_mode(world, quantus):
    protocol = quantus_protocol("PixelFlipping", **SMALL["PixelFlipping"])()
    wanted = world.scores(protocol)
    world.model = nn.Sequential(world.model)
    assert world.scores(protocol) == pytest.approx(wanted)


def test_real_maps_that_quantus_refuses(world, quantus):
    maps = torch.stack([torch.ones(SIDE, SIDE), -torch.rand(SIDE, SIDE) - 1, world.maps[2]])
    for name in ("Sparseness", "PixelFlipping"):
        scores = world.scores(quantus_protocol(name, **SMALL[name])(), maps)
        assert np.isnan(scores).tolist() == [True, True, False]


def test_real_settings_that_do_not_fit_are_named(world, quantus):
    protocol = quantus_protocol("FaithfulnessCorrelation", subset_size=SIDE**2 * CHANNELS)()
    with pytest.raises(AttrcheckError, match=r"quantus:FaithfulnessCorrelation raised .*subset"):
        world.scores(protocol)
