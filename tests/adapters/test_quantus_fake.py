"""Metrics of Quantus as protocols: the adapter on a stand-in for the library."""

import random
import sys

import numpy as np
import pytest
import torch

import attrcheck
from attrcheck.adapters import libraries
from attrcheck.adapters.quantus import quantus_protocol, resolve
from attrcheck.contracts import Protocol
from attrcheck.engine import keys
from attrcheck.errors import AttrcheckError, MethodError
from attrcheck.registry import RegistryError
from tests.adapters import fake_quantus
from tests.adapters.fake_quantus import COUNT


@pytest.fixture
def library(monkeypatch):
    """A stand-in for Quantus."""
    for module in fake_quantus.modules():
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
    protocol = quantus_protocol("Fake", factor=3.0, softmax=True)()
    assert world.scores(protocol) == pytest.approx(3 * kept.sum((1, 2)).numpy() + 1000, rel=1e-4)
    assert torch.equal(world.maps, kept)


@stand_in
def test_a_setting_that_the_metric_does_not_take_is_refused_at_once():
    with pytest.raises(RegistryError, match=r"quantus:Fake takes no setting facto; .*factor"):
        quantus_protocol("Fake", facto=3)
    for ours in ("a_batch", "device", "explain_func"):
        with pytest.raises(RegistryError, match=f"takes no setting {ours}"):
            quantus_protocol("Fake", **{ours: None})
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
    assert quantus_protocol("Fake")().higher_is_better
    assert not quantus_protocol("Shaky")().higher_is_better
    with pytest.raises(RegistryError, match=r"quantus:Aimless does not say whether higher or low"):
        resolve("Aimless")


@stand_in
def test_the_direction_of_drops_is_mended():
    assert quantus_protocol("RegionPerturbation")().higher_is_better
    assert quantus_protocol("RegionPerturbation", order="morf")().higher_is_better
    assert not quantus_protocol("RegionPerturbation", order="lerf")().higher_is_better


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
    protocol = quantus_protocol("Random")()
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
    protocol = quantus_protocol("Shaky")()
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
    assert world.scores(quantus_protocol("Intact")()).tolist() == [0] * COUNT
    assert not world.asked


@stand_in
def test_what_cannot_be_explained_is_an_error(world):
    for name in ("OtherClass", "OtherModel"):
        with pytest.raises(AttrcheckError, match=f"quantus:{name} explains another model or class"):
            world.scores(quantus_protocol(name)())
    with pytest.raises(AttrcheckError, match="quantus:Twisted changes images depending on"):
        world.scores(quantus_protocol("Twisted")())
    with pytest.raises(AttrcheckError, match=r"quantus:Shaky needs `Batch.attribute`"):
        world.scores(quantus_protocol("Shaky")(), attribute=None)


@stand_in
def test_an_error_of_the_method_stays_its_own(world):
    def broken(images):
        raise MethodError("method 'mine' raised")

    with pytest.raises(MethodError, match=r"^method 'mine' raised$"):
        world.scores(quantus_protocol("Shaky")(), attribute=broken)


@stand_in
def test_masks_go_where_they_are_needed(world):
    protocol = quantus_protocol("Inside")()
    assert protocol.needs == ("masks",)
    assert quantus_protocol("Fake")().needs == ()
    inside = world.maps[:, 4:8, 4:8].sum((1, 2)) / world.maps.sum((1, 2))
    assert world.scores(protocol) == pytest.approx(inside.numpy(), rel=1e-4)
    with pytest.raises(AttrcheckError, match="quantus:Inside needs masks"):
        world.scores(protocol, masks=None)
    world.masks[1] = False
    reduced = protocol.reduce({"score": world.scores(protocol)})
    assert np.isnan(reduced.per_image).tolist() == [False, True, False]
    assert reduced.score == pytest.approx(float(inside[[0, 2]].mean()), rel=1e-4)
    assert reduced.undefined == 1


@stand_in
def test_one_number_per_image(world):
    assert world.scores(quantus_protocol("Curve")()).tolist() == [4] * COUNT
    assert world.scores(quantus_protocol("Steps")()).tolist() == [0.5] * COUNT
    for name in ("Many", "Layers", "Words"):
        with pytest.raises(AttrcheckError, match=rf"quantus:{name} gives no single .*aggregate=T"):
            world.scores(quantus_protocol(name)())


@stand_in
def test_a_map_that_the_library_refuses_has_no_score(world):
    world.maps[1] = 0.5
    protocol = quantus_protocol("Picky")()
    reduced = protocol.reduce({"score": world.scores(protocol)})
    assert np.isnan(reduced.per_image).tolist() == [False, True, False]
    assert (reduced.score, reduced.undefined) == (1, 1)


@stand_in
def test_other_errors_of_the_library_are_named(world):
    with pytest.raises(AttrcheckError, match=r"quantus:Strict raised AssertionError: subset_size"):
        world.scores(quantus_protocol("Strict")())


@stand_in
def test_settings_and_version_are_part_of_the_fingerprint(monkeypatch):
    def marks(**settings):
        protocol = quantus_protocol("Fake", **settings)()
        return keys.of_observer(protocol), keys.of_settings(protocol), repr(protocol)

    several = [{}, {"factor": 1}, {"factor": {"a": 1}}, {"factor": {"a": 2}}, {"factor": len}]
    prints = {marks(**settings) for settings in several}
    assert len(prints) == len(several)
    assert {marks(**settings) for settings in several} == prints
    monkeypatch.setattr(libraries, "version", lambda package: "9.9")
    assert marks() not in prints


@stand_in
def test_by_prefix_and_with_settings(registries):
    assert attrcheck.protocol.get("quantus:Fake").build().name == "quantus:Fake"
    attrcheck.protocol("mine")(attrcheck.quantus_protocol("Fake", factor=2.0))
    assert dict(attrcheck.protocol.get("mine").make().settings) == {"factor": 2.0}


@stand_in
def test_a_case_by_prefix(tiny, monkeypatch):
    tiny.in_batches_of(3, monkeypatch)
    first = tiny.run("tiny-linear-quantus:Brightest").outcomes
    assert [outcome.status for outcome in first.values()] == ["ok", "ok"]
    tiny.in_batches_of(8, monkeypatch)
    again = tiny.run("tiny-linear-quantus:Brightest", store=tiny.folder / "other").outcomes
    for name, outcome in first.items():
        assert again[name].score == pytest.approx(outcome.score, rel=1e-4)


def test_a_library_that_is_not_installed_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "quantus", None)
    for ask in (resolve, quantus_protocol):
        with pytest.raises(AttrcheckError, match=r'run `pip install "attrcheck\[quantus\]"`'):
            ask("PixelFlipping")
