"""Metrics of Quantus as protocols: the adapter on a stand-in, and the true library if installed."""

import random
import sys
import types
from dataclasses import replace
from enum import Enum

import numpy as np
import pytest
import torch
from torch import nn

import attrcheck
from attrcheck.adapters import quantus as _quantus
from attrcheck.adapters.quantus import adapt, resolve
from attrcheck.contracts import Batch, Protocol
from attrcheck.errors import AttrcheckError, MethodError
from attrcheck.graph.guard import Snapshot
from attrcheck.protocols.responses import responses
from attrcheck.registry import RegistryError

COUNT, CHANNELS, SIDE, CLASSES = 3, 3, 16, 3
SEEDS = (5, 2**50, 7)


class World:
    """A linear model, images, labels, contributions as maps, masks; and the metrics' scores."""

    def __init__(self, channels=CHANNELS):
        torch.manual_seed(1)
        layer = nn.Linear(channels * SIDE * SIDE, CLASSES)
        layer.weight.data *= 3
        self.model = nn.Sequential(nn.Flatten(), layer).eval().requires_grad_(False)
        self.weight = layer.weight.view(CLASSES, channels, SIDE, SIDE)
        self.images = torch.randn(COUNT, channels, SIDE, SIDE)
        self.labels = self.model(self.images).argmax(1)
        self.masks = torch.zeros(COUNT, SIDE, SIDE, dtype=torch.bool)
        self.masks[:, 4:8, 4:8] = True
        self.maps = self.explain(self.images)
        self.asked = []

    def explain(self, images, labels=None):
        labels = self.labels if labels is None else labels
        return (self.weight[labels] * images).sum(1)

    def batch(self, order=None):
        order = list(range(COUNT)) if order is None else order
        images, labels = self.images[order], self.labels[order]

        def attribute(changed):
            assert changed.shape == images.shape
            assert changed.dtype == images.dtype
            self.asked.append(changed)
            return self.explain(changed, labels)

        return Batch(
            images=images,
            labels=labels,
            seeds=tuple(SEEDS[place] for place in order),
            intact=responses(self.model, images, labels),
            masks=self.masks[order],
            attribute=attribute,
        )

    def scores(self, protocol, maps=None, order=None, **changes):
        maps = self.maps if maps is None else maps
        batch = replace(self.batch(order), **changes)
        maps = maps if order is None else maps[order]
        return protocol.observe(self.model, batch, maps, {})["score"]


@pytest.fixture
def world():
    return World()


class Direction(Enum):
    HIGHER = "higher"
    LOWER = "lower"


class Fake:
    """What the metrics of Quantus look like from outside."""

    score_direction = Direction.HIGHER
    evaluation_category = types.SimpleNamespace(value="Faithfulness")

    def __init__(self, factor=1.0, disable_warnings=False, display_progressbar=False, **kwargs):
        assert not kwargs
        assert disable_warnings
        assert not display_progressbar
        self.factor = factor

    def __call__(
        self,
        model,
        x_batch,
        y_batch,
        a_batch=None,
        s_batch=None,
        channel_first=None,
        explain_func=None,
        explain_func_kwargs=None,
        softmax=False,
        device=None,
        **kwargs,
    ):
        assert (channel_first, device, kwargs) == (True, "cpu", {})
        assert x_batch.shape == (1, CHANNELS, SIDE, SIDE)
        assert y_batch.shape == (1,)
        assert a_batch.shape == (1, 1, SIDE, SIDE)
        self.soft, self.explain_func = softmax, explain_func
        return self.evaluate(model, x_batch, y_batch, a_batch, s_batch)

    def evaluate(self, model, x, y, a, s):
        assert s is None
        a[:] *= self.factor  # a library may well work in place
        return [a.sum() + 1000 * self.soft]


class Random(Fake):
    def evaluate(self, model, x, y, a, s):
        return np.random.rand(1) + 10 * random.random() + 100 * torch.rand(1).numpy()


class Shaky(Fake):
    """The largest change of the map under noise: asks for as many maps as the label says."""

    score_direction = "lower"

    def evaluate(self, model, x, y, a, s):
        changes = []
        for _ in range(1 + int(y[0])):
            noisy = x + np.random.uniform(-0.1, 0.1, x.shape)
            changed = self.explain_func(model=model, inputs=noisy, targets=y, device="cpu")
            assert changed.shape == (1, 1, SIDE, SIDE)
            changes.append(np.abs(a - changed).max())
        return np.array([max(changes)])


class Twisted(Fake):
    """Changes the image by what it learns of the maps."""

    def evaluate(self, model, x, y, a, s):
        for _ in range(2):
            x = x + self.explain_func(model=model, inputs=x + 1, targets=y)
        return [x.sum()]


class Intact(Fake):
    def evaluate(self, model, x, y, a, s):
        return [np.abs(self.explain_func(model=model, inputs=x, targets=y) - a).max()]


class OtherClass(Fake):
    def evaluate(self, model, x, y, a, s):
        return self.explain_func(model=model, inputs=x, targets=y + 1)


class OtherModel(Fake):
    def evaluate(self, model, x, y, a, s):
        return self.explain_func(model=nn.Sequential(model), inputs=x, targets=y)


class Inside(Fake):
    evaluation_category = types.SimpleNamespace(value="Localisation")

    def evaluate(self, model, x, y, a, s):
        assert s.shape == (1, 1, SIDE, SIDE)
        assert s.dtype == bool
        return [a[s].sum() / a.sum()]


class Curve(Fake):
    def evaluate(self, model, x, y, a, s):
        self.evaluation_scores = [[4.0, 2.0, 0.0]]
        return self.evaluation_scores

    @property
    def get_auc_score(self):
        return sys.modules["quantus.helpers.utils"].calculate_auc(self.evaluation_scores[0])


class Steps(Fake):
    def evaluate(self, model, x, y, a, s):
        return {10: 1.0, 20: 1, 30: np.float64(0), 40: False}


class Many(Fake):
    def evaluate(self, model, x, y, a, s):
        return [[1.0, 2.0]]


class Layers(Fake):
    def evaluate(self, model, x, y, a, s):
        return {"conv": [1.0], "head": [2.0]}


class Words(Fake):
    def evaluate(self, model, x, y, a, s):
        return ["good"]


class Picky(Fake):
    """Refuses constant maps in the way of Quantus."""

    def evaluate(self, model, x, y, a, s):
        def assert_attributions():
            assert a.max() > a.min(), "uniform"

        assert_attributions()
        return [1.0]


class Strict(Fake):
    def evaluate(self, model, x, y, a, s):
        raise AssertionError("subset_size is too large")


class Aimless(Fake):
    score_direction = None


class RegionPerturbation(Fake):
    score_direction = Direction.LOWER

    def __init__(self, order="morf", **kwargs):
        super().__init__(**kwargs)


class Needy(Fake):
    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)


class Sufficiency(Fake):
    pass


class MPRT(Fake):
    pass


class RandomLogit(Fake):
    pass


@pytest.fixture
def library(monkeypatch):
    """A stand-in for Quantus."""
    fake, helpers, utils = (
        types.ModuleType(name) for name in ("quantus", "quantus.helpers", "quantus.helpers.utils")
    )
    utils.calculate_auc = lambda values: float(np.sum(values[:-1]) + np.sum(values[1:])) / 2
    robust = {"Shaky": Shaky, "Twisted": Twisted, "Intact": Intact}
    others = (Fake, Random, OtherClass, OtherModel, Inside, Curve, Steps, Many, Layers, Words)
    others += (Picky, Strict, Aimless, RegionPerturbation, Needy, Sufficiency, MPRT, RandomLogit)
    fake.AVAILABLE_METRICS = {
        "Robustness": robust,
        "Others": {f"The {found.__name__} ": found for found in others},
    }
    for module in (fake, helpers, utils):
        monkeypatch.setitem(sys.modules, module.__name__, module)


stand_in = pytest.mark.usefixtures("library")


@stand_in
def test_a_metric_by_name(world):
    spec = resolve("Fake")
    assert spec.name == "quantus:Fake"
    protocol = spec.build()
    assert isinstance(protocol, Protocol)
    assert world.scores(protocol) == pytest.approx(world.maps.sum((1, 2)).numpy(), rel=1e-4)
    assert not world.asked


@stand_in
def test_settings_reach_the_class_and_the_call(world):
    kept = world.maps.clone()
    protocol = adapt("Fake", factor=3.0, softmax=True)()
    assert world.scores(protocol) == pytest.approx(3 * kept.sum((1, 2)).numpy() + 1000, rel=1e-4)
    assert torch.equal(world.maps, kept)


@stand_in
def test_a_setting_that_the_metric_does_not_take_is_refused_at_once():
    with pytest.raises(RegistryError, match=r"quantus:Fake takes no setting facto; .*factor"):
        adapt("Fake", facto=3)
    for ours in ("a_batch", "device", "explain_func"):
        with pytest.raises(RegistryError, match=f"takes no setting {ours}"):
            adapt("Fake", **{ours: None})
    with pytest.raises(RegistryError, match=r"quantus:Needy needs more .* settings layer"):
        resolve("Needy")


@stand_in
def test_unknown_metrics_get_close_matches_or_the_list():
    with pytest.raises(RegistryError, match=r"no metric 'Shakey'; did you mean Shaky"):
        resolve("Shakey")
    with pytest.raises(RegistryError, match=r"no metric 'Zzz'; there are: Shaky, .*Inside"):
        resolve("Zzz")


@stand_in
def test_the_direction_is_read():
    assert adapt("Fake")().higher_is_better
    assert not adapt("Shaky")().higher_is_better
    with pytest.raises(RegistryError, match=r"quantus:Aimless does not say whether higher or low"):
        resolve("Aimless")


@stand_in
def test_the_direction_of_drops_is_mended():
    assert adapt("RegionPerturbation")().higher_is_better
    assert adapt("RegionPerturbation", order="morf")().higher_is_better
    assert not adapt("RegionPerturbation", order="lerf")().higher_is_better


@stand_in
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Sufficiency", "compares images with each other"),
        ("MPRT", "explains a changed model.* check `randomisation`"),
        ("RandomLogit", "explains another class.* check `target_sensitivity`"),
    ],
)
def test_metrics_that_cannot_be_protocols_say_why(name, says):
    with pytest.raises(RegistryError, match=f"quantus:{name} {says}"):
        resolve(name)


@stand_in
def test_every_image_is_seeded_alone_and_the_generators_are_put_back(world):
    protocol = adapt("Random")()
    states = np.random.get_state()[1].copy(), random.getstate(), torch.get_rng_state()
    whole = world.scores(protocol)
    assert len(set(whole)) == COUNT
    assert world.scores(protocol, order=[2, 0]).tolist() == whole[[2, 0]].tolist()
    assert (world.scores(protocol, seeds=(1, 2, 3)) != whole).all()
    assert np.array_equal(np.random.get_state()[1], states[0])
    assert random.getstate() == states[1]
    assert torch.equal(torch.get_rng_state(), states[2])


@stand_in
def test_changed_images_are_explained_for_all_images_together(world):
    world.labels = torch.tensor([0, 2, 1])
    protocol = adapt("Shaky")()
    maps = world.explain(world.images)
    whole = world.scores(protocol, maps)
    assert len(world.asked) == 3  # the second image asks three times
    changes = torch.stack([(world.explain(asked) - maps).abs() for asked in world.asked])
    wanted = changes.amax((0, 2, 3)).numpy()  # those that are not asked for change nothing
    assert whole == pytest.approx(wanted, rel=1e-3)
    assert torch.equal(world.asked[1][0], world.images[0])  # it had no more to ask
    assert world.scores(protocol, maps, order=[2, 1]) == pytest.approx(whole[[2, 1]], rel=1e-6)


@stand_in
def test_the_map_of_the_image_as_it_is_is_known(world):
    assert world.scores(adapt("Intact")()).tolist() == [0] * COUNT
    assert not world.asked


@stand_in
def test_what_cannot_be_explained_is_an_error(world):
    for name in ("OtherClass", "OtherModel"):
        with pytest.raises(AttrcheckError, match=f"quantus:{name} explains another model or class"):
            world.scores(adapt(name)())
    with pytest.raises(AttrcheckError, match="quantus:Twisted changes images by what it is told"):
        world.scores(adapt("Twisted")())
    with pytest.raises(AttrcheckError, match=r"quantus:Shaky needs `Batch.attribute`"):
        world.scores(adapt("Shaky")(), attribute=None)


@stand_in
def test_an_error_of_the_method_stays_its_own(world):
    def broken(images):
        raise MethodError("method 'mine' raised")

    with pytest.raises(MethodError, match=r"^method 'mine' raised$"):
        world.scores(adapt("Shaky")(), attribute=broken)


@stand_in
def test_masks_go_where_they_are_needed(world):
    protocol = adapt("Inside")()
    assert protocol.needs == ("masks",)
    assert adapt("Fake")().needs == ()
    inside = world.maps[:, 4:8, 4:8].sum((1, 2)) / world.maps.sum((1, 2))
    assert world.scores(protocol) == pytest.approx(inside.numpy(), rel=1e-4)
    with pytest.raises(AttrcheckError, match="quantus:Inside needs masks"):
        world.scores(protocol, masks=None)
    world.masks[1] = False
    found = protocol.reduce({"score": world.scores(protocol)})
    assert np.isnan(found.per_image).tolist() == [False, True, False]
    assert found.score == pytest.approx(float(inside[[0, 2]].mean()), rel=1e-4)
    assert found.undefined == 1


@stand_in
def test_one_number_an_image(world):
    assert world.scores(adapt("Curve")()).tolist() == [4] * COUNT
    assert world.scores(adapt("Steps")()).tolist() == [0.5] * COUNT
    for name in ("Many", "Layers", "Words"):
        with pytest.raises(AttrcheckError, match=rf"quantus:{name} gives no single .*aggregate=T"):
            world.scores(adapt(name)())


@stand_in
def test_a_map_that_the_library_refuses_has_no_score(world):
    world.maps[1] = 0.5
    protocol = adapt("Picky")()
    found = protocol.reduce({"score": world.scores(protocol)})
    assert np.isnan(found.per_image).tolist() == [False, True, False]
    assert (found.score, found.undefined) == (1, 1)


@stand_in
def test_other_errors_of_the_library_are_named(world):
    with pytest.raises(AttrcheckError, match=r"quantus:Strict raised AssertionError: subset_size"):
        world.scores(adapt("Strict")())


@stand_in
def test_settings_and_version_are_part_of_the_fingerprint(monkeypatch):
    def marks(**settings):
        protocol = adapt("Fake", **settings)()
        return protocol.code, repr(protocol)

    several = [{}, {"factor": 1}, {"factor": {"a": 1}}, {"factor": {"a": 2}}, {"factor": len}]
    found = {marks(**settings) for settings in several}
    assert len(found) == len(several)
    assert {marks(**settings) for settings in several} == found
    monkeypatch.setattr(_quantus, "version", lambda package: "9.9")
    assert marks() not in found


@stand_in
def test_by_prefix_and_with_settings(registries):
    assert attrcheck.protocol.get("quantus:Fake").build().name == "quantus:Fake"
    attrcheck.protocol("mine")(attrcheck.quantus_protocol("Fake", factor=2.0))
    assert dict(attrcheck.protocol.get("mine").make().settings) == {"factor": 2.0}


class Brightest(Fake):
    """For the tiny world: any shape."""

    def __call__(self, model, x_batch, y_batch, a_batch, explain_func):
        changed = explain_func(model=model, inputs=x_batch + np.random.rand(1), targets=y_batch)
        return [a_batch.max() - changed.max()]


@stand_in
def test_a_case_by_prefix(tiny, monkeypatch):
    sys.modules["quantus"].AVAILABLE_METRICS["Robustness"]["Brightest"] = Brightest
    tiny.in_batches_of(3, monkeypatch)
    found = tiny.run("tiny-linear-quantus:Brightest").outcomes
    assert [each.status for each in found.values()] == ["ok", "ok"]
    tiny.in_batches_of(8, monkeypatch)
    again = tiny.run("tiny-linear-quantus:Brightest", store=tiny.folder / "other").outcomes
    for name, each in found.items():
        assert again[name].score == pytest.approx(each.score, rel=1e-4)


def test_a_library_that_is_not_installed_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "quantus", None)
    for ask in (resolve, adapt):
        with pytest.raises(AttrcheckError, match=r'run `pip install "attrcheck\[quantus\]"`'):
            ask("PixelFlipping")


@pytest.fixture
def quantus():
    """The true library."""
    pytest.importorskip("attrcheck.adapters.vision")
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


def test_every_true_metric_is_used_or_refused(quantus):
    assert set(_quantus._metrics()) == {*SMALL, "NonSensitivity", *_quantus.REFUSED}


@pytest.mark.usefixtures("quantus")
@pytest.mark.parametrize("name", SMALL)
def test_true_metrics_score_each_image_alone_and_leave_no_trace(world, name):
    protocol = adapt(name, **SMALL[name])()
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
def test_contributions_beat_their_negation_in_the_true_direction(world, name):
    protocol = adapt(name, **SMALL[name])()
    right, wrong = (
        protocol.reduce({"score": world.scores(protocol, sign * world.maps)}).score
        for sign in (1, -1)
    )
    assert (right > wrong) == protocol.higher_is_better
    assert right != wrong


def test_least_relevant_first_turns_the_true_direction(world, quantus):
    protocol = adapt("RegionPerturbation", order="lerf", **SMALL["RegionPerturbation"])()
    assert not protocol.higher_is_better
    assert world.scores(protocol).mean() < world.scores(protocol, -world.maps).mean()


def test_true_pixel_flipping_by_hand(quantus):
    world, step = World(channels=1), 32
    found = world.scores(adapt("PixelFlipping", features_in_step=step, perturb_baseline=0.0)())
    for place, score in enumerate(found):
        order = world.maps[place].flatten().argsort(descending=True)
        image, curve = world.images[place].flatten().clone(), []
        for start in range(0, SIDE * SIDE, step):
            image[order[start : start + step]] = 0
            logits = world.model(image.view(1, 1, SIDE, SIDE))
            curve.append(float(logits.softmax(1)[0, world.labels[place]]))
        assert score == pytest.approx(sum(curve) - (curve[0] + curve[-1]) / 2, rel=1e-4)


@pytest.mark.parametrize("channels", [1, 3])
def test_true_road_removes_pixels_by_hand(quantus, channels):
    world, percentages = World(channels), [10, 30, 70]
    protocol = adapt("ROAD", percentages=percentages, noise=0.0)()
    maps = 9 - world.maps.abs()  # so that it is neither always right nor always wrong
    found = world.scores(protocol, maps)
    wanted = []
    for image, label, each in zip(world.images, world.labels, maps, strict=True):
        order = each.flatten().argsort(descending=True).numpy()
        right = []
        for percentage in percentages:
            gone = order[: SIDE * SIDE * percentage // 100]
            left = quantus.noisy_linear_imputation(image.numpy(), gone, noise=0.0)
            logits = world.model(torch.as_tensor(left, dtype=torch.float32)[None])
            right.append(bool(logits.argmax() == label))
        wanted.append(np.mean(right))
    assert found == pytest.approx(wanted)


class Witness(nn.Module):
    """Notes every image that it sees."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, images):
        self.seen.extend(images.clone())
        return images.mean((2, 3))


@pytest.mark.parametrize("levels", [256, 4])
def test_true_road_removes_as_many_pixels_as_it_says(world, quantus, levels):
    world.maps = (torch.randperm(256) % levels).float().view(1, SIDE, SIDE).repeat(COUNT, 1, 1)
    world.model = Witness().eval()
    world.scores(adapt("ROAD", percentages=[25, 50, 60], noise=0.01)())
    seen = torch.stack(world.model.seen[COUNT:]).view(COUNT, 3, CHANNELS, SIDE, SIDE)
    gone = seen != world.images[:, None]
    assert torch.equal(gone.all(2), gone.any(2))
    assert (gone.all(2).sum((2, 3)) == torch.tensor([64, 128, 153])).all()
    least_gone = torch.where(gone.all(2), world.maps[:, None], levels).amin((2, 3))
    most_left = torch.where(gone.all(2), -1, world.maps[:, None]).amax((2, 3))
    assert (least_gone >= most_left).all()


def test_true_localisation_by_hand(world, quantus):
    maps = torch.zeros(COUNT, SIDE, SIDE)
    maps[:, 5, 5], maps[:, 0, 0] = torch.tensor([3.0, 1, 3]), torch.tensor([1.0, 3, 1])
    world.masks[2] = False
    for name, wanted in [
        ("PointingGame", [1, 0, np.nan]),
        ("RelevanceMassAccuracy", [0.75, 0.25, np.nan]),
    ]:
        protocol = adapt(name)()
        found = protocol.reduce({"score": world.scores(protocol, maps)})
        assert found.per_image == pytest.approx(wanted, nan_ok=True)
        assert found.score == pytest.approx(0.5)
        assert found.undefined == 1


def test_true_complexity_by_hand(world, quantus):
    maps = torch.zeros(COUNT, SIDE, SIDE)
    for place, pixels in enumerate((1, 2, 8)):
        maps[place].view(-1)[:pixels] = 1
    # Entropy of a map that is equal on some pixels, and the Gini index of the same.
    assert world.scores(adapt("Complexity")(), maps) == pytest.approx(np.log([1, 2, 8]), abs=1e-3)
    gini = 1 - np.array([1, 2, 8]) / SIDE**2
    assert world.scores(adapt("Sparseness")(), maps) == pytest.approx(gini, abs=1e-2)


def test_true_sensitivity_by_hand(world, quantus):
    for name in ("MaxSensitivity", "LocalLipschitzEstimate"):
        found = world.scores(adapt(name, nr_samples=4)(), attribute=lambda images: world.maps)
        assert found == pytest.approx(np.zeros(COUNT), abs=1e-6)
    maps, change = world.maps, torch.full((COUNT, SIDE, SIDE), 0.5)
    # The norm of the change over that of the map.
    found = world.scores(
        adapt("MaxSensitivity", nr_samples=2)(), attribute=lambda images: maps + change
    )
    wanted = 0.5 * SIDE / maps.flatten(1).norm(dim=1)
    assert found == pytest.approx(wanted.numpy(), rel=1e-3)


def test_true_metrics_take_a_wrapper_that_is_not_in_eval_mode(world, quantus):
    protocol = adapt("PixelFlipping", **SMALL["PixelFlipping"])()
    wanted = world.scores(protocol)
    world.model = nn.Sequential(world.model)
    assert world.scores(protocol) == pytest.approx(wanted)


def test_true_maps_that_quantus_refuses(world, quantus):
    maps = torch.stack([torch.ones(SIDE, SIDE), -torch.rand(SIDE, SIDE) - 1, world.maps[2]])
    for name in ("Sparseness", "PixelFlipping"):
        found = world.scores(adapt(name, **SMALL[name])(), maps)
        assert np.isnan(found).tolist() == [True, True, False]


def test_true_settings_that_do_not_fit_are_named(world, quantus):
    protocol = adapt("FaithfulnessCorrelation", subset_size=SIDE**2 * CHANNELS)()
    with pytest.raises(AttrcheckError, match=r"quantus:FaithfulnessCorrelation raised .*subset"):
        world.scores(protocol)
