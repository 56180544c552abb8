"""Captum's metrics as protocols: hand-computed, seeded by the image, independent of the batch."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import attrcheck
from attrcheck.adapters.captum_metrics import blank_square, captum_protocol, resolve
from attrcheck.contracts import Batch, Protocol
from attrcheck.engine import keys
from attrcheck.errors import AttrcheckError
from attrcheck.protocols.responses import responses
from attrcheck.registry import RegistryError

COUNT, CHANNELS, SIDE, CLASSES = 4, 3, 8, 3
SEEDS = (11, 2**40, 13, 14)


@pytest.fixture(scope="module")
def linear():
    """A linear model, images and labels."""
    torch.manual_seed(3)
    layer = nn.Linear(CHANNELS * SIDE * SIDE, CLASSES)
    model = nn.Sequential(nn.Flatten(), layer).eval().requires_grad_(False)
    return model, torch.randn(COUNT, CHANNELS, SIDE, SIDE), torch.tensor([0, 1, 2, 1])


def contributions(model, images, labels):
    return (model[1].weight.view(CLASSES, CHANNELS, SIDE, SIDE)[labels] * images).sum(1)


def batch_of(model, images, labels, attribute=None, seeds=SEEDS):
    return Batch(images, labels, seeds, responses(model, images, labels), attribute=attribute)


def scores(protocol, model, batch, maps):
    return protocol.observe(model, batch, maps, {})["score"]


def part_of(batch, order):
    return replace(
        batch,
        images=batch.images[order],
        labels=batch.labels[order],
        seeds=tuple(batch.seeds[place] for place in order),
        intact={name: row[order] for name, row in batch.intact.items()},
    )


def everything(images):
    return torch.ones_like(images), torch.zeros_like(images)


def test_contributions_to_a_linear_model_have_no_infidelity(linear):
    model, images, labels = linear
    maps = contributions(model, images, labels)
    batch = batch_of(model, images, labels)
    exact = scores(captum_protocol("infidelity")(), model, batch, maps)
    assert exact == pytest.approx(np.zeros(COUNT), abs=1e-9)
    assert (scores(captum_protocol("infidelity")(), model, batch, -maps) > 1e-3).all()


def test_infidelity_by_hand(linear):
    model, images, labels = linear
    # Everything goes at once: the map promises its sum, and the logit falls to the bias.
    maps = torch.arange(COUNT * SIDE * SIDE).view(COUNT, SIDE, SIDE) / 1000
    fall = (model(images) - model[1].bias)[torch.arange(COUNT), labels]
    infidelity = scores(
        captum_protocol("infidelity", perturb_func=everything, n_perturb_samples=2)(),
        model,
        batch_of(model, images, labels),
        maps,
    )
    assert infidelity == pytest.approx(((maps.sum((1, 2)) - fall) ** 2).numpy(), rel=1e-4)


def test_normalised_infidelity_ignores_scale(linear):
    model, images, labels = linear
    maps = contributions(model, images, labels) + torch.randn(COUNT, SIDE, SIDE)
    batch = batch_of(model, images, labels)
    protocol = captum_protocol("infidelity", normalize=True)()
    small, large = (scores(protocol, model, batch, factor * maps) for factor in (1, 7))
    assert small == pytest.approx(large, rel=1e-3)
    assert (small > 1e-3).all()


def test_a_square_of_a_quarter_of_the_sides_goes():
    torch.manual_seed(0)
    images = torch.rand(50, 3, 8, 12) + 1
    gone, left = blank_square(images)
    assert torch.equal(left == 0, gone.bool())
    assert torch.equal(left[gone == 0], images[gone == 0])
    assert (gone.sum((1, 2, 3)) == 3 * 2 * 3).all()
    rows, columns = gone[:, 0].amax(2), gone[:, 0].amax(1)
    assert (rows.sum(1) == 2).all()
    assert (columns.sum(1) == 3).all()
    assert (rows.sum(0) > 0).all()  # each place comes up
    assert (columns.sum(0) > 0).all()


def test_a_constant_explanation_is_not_sensitive(linear):
    model, images, labels = linear
    maps = torch.rand(COUNT, SIDE, SIDE)
    batch = batch_of(model, images, labels, lambda changed: maps)
    assert scores(captum_protocol("sensitivity_max")(), model, batch, maps).tolist() == [0] * COUNT


def test_sensitivity_by_hand(linear):
    model, images, labels = linear
    # The map is the image itself: half as much again is a change of half its norm.
    batch = batch_of(model, images, labels, lambda changed: changed.sum(1))
    protocol = captum_protocol("sensitivity_max", perturb_func=lambda inputs: 1.5 * inputs)()
    assert scores(protocol, model, batch, images.sum(1)) == pytest.approx(np.full(COUNT, 0.5))


def test_the_method_explains_whole_batches_and_nothing_twice(linear):
    model, images, labels = linear
    asked = []

    def attribute(changed):
        asked.append(changed)
        return changed.sum(1)

    protocol = captum_protocol("sensitivity_max", n_perturb_samples=5, perturb_radius=0.1)()
    largest = scores(protocol, model, batch_of(model, images, labels, attribute), images.sum(1))
    assert [len(changed) for changed in asked] == [COUNT] * 5
    distances = torch.stack([(changed - images).abs().amax((1, 2, 3)) for changed in asked])
    assert (distances > 0.05).all()
    assert (distances <= 0.1).all()
    # By hand: the largest change of the five.
    changes = torch.stack([(changed - images).sum(1).flatten(1).norm(dim=1) for changed in asked])
    wanted = changes.amax(0) / images.sum(1).flatten(1).norm(dim=1)
    assert largest == pytest.approx(wanted.numpy(), rel=1e-5)


def test_without_a_method_there_is_nothing_to_ask(linear):
    model, images, labels = linear
    with pytest.raises(AttrcheckError, match=r"captum:sensitivity_max needs `Batch.attribute`"):
        scores(
            captum_protocol("sensitivity_max")(),
            model,
            batch_of(model, images, labels),
            images.sum(1),
        )


@pytest.mark.parametrize("name", ["infidelity", "sensitivity_max"])
def test_scores_do_not_depend_on_batch_mates_or_global_numbers(linear, name):
    model, images, labels = linear
    protocol = captum_protocol(name)()
    maps = (images**2).sum(1)
    batch = batch_of(model, images, labels, lambda changed: (changed**2).sum(1))
    whole = scores(protocol, model, batch, maps)
    for order in ([2], [3, 1], [1, 0, 2]):
        torch.manual_seed(order[0])
        state = torch.get_rng_state()
        some = scores(protocol, model, part_of(batch, order), maps[order])
        assert some == pytest.approx(whole[order], rel=1e-5)
        assert torch.equal(state, torch.get_rng_state())
    other = scores(protocol, model, replace(batch, seeds=(1, 2, 3, 4)), maps)
    assert (np.abs(other - whole) > 1e-6 * whole).all()


def test_nothing_is_changed(linear):
    model, images, labels = linear
    kept, maps = images.clone(), images.sum(1)
    batch = batch_of(model, images, labels, lambda changed: changed.sum(1))
    for name in ("infidelity", "sensitivity_max"):
        scores(captum_protocol(name)(), model, batch, maps)
    assert torch.equal(images, kept)
    assert torch.equal(maps, kept.sum(1))


def test_the_score_is_the_mean_of_the_defined():
    protocol = captum_protocol("infidelity")()
    reduction = protocol.reduce({"score": np.array([1.0, np.nan, 3.0, np.inf])})
    assert reduction.score == 2
    assert reduction.undefined == 2
    assert np.isnan(protocol.reduce({"score": np.array([np.nan])}).score)


def test_what_captum_cannot_do_is_named(linear):
    model, images, labels = linear
    protocol = captum_protocol("infidelity", perturb_func=lambda inputs: 1 / 0)()
    with pytest.raises(AttrcheckError, match=r"captum:infidelity raised ZeroDiv.*captum_protocol"):
        scores(protocol, model, batch_of(model, images, labels), images.sum(1))


def test_an_unknown_name_and_an_unknown_setting_are_refused():
    with pytest.raises(RegistryError, match=r"no metric 'fidelity'; did you mean infidelity"):
        resolve("fidelity")
    with pytest.raises(RegistryError, match=r"no metric 'zzz'; there are: infidelity, sens"):
        resolve("zzz")
    with pytest.raises(RegistryError, match=r"infidelity takes no setting samples; .*n_pert"):
        captum_protocol("infidelity", samples=3)
    with pytest.raises(RegistryError, match="takes no setting target"):
        captum_protocol("infidelity", target=3)


def nothing(images):
    return torch.zeros_like(images), images


def test_settings_are_part_of_the_fingerprint():
    def marks(**settings):
        protocol = captum_protocol("infidelity", **settings)()
        return keys.of_observer(protocol), keys.of_settings(protocol), repr(protocol)

    several = [
        {},
        {"baselines": 1},
        {"baselines": 2},
        {"perturb_func": everything},
        {"perturb_func": nothing},  # in the same file
    ]
    assert len({marks(**settings) for settings in several}) == len(several)
    assert all(marks(**settings) == marks(**settings) for settings in several)
    assert "0x" not in repr(captum_protocol("infidelity", perturb_func=nothing)())


def test_by_prefix_and_with_settings():
    for name in ("infidelity", "sensitivity_max"):
        spec = attrcheck.protocol.get(f"captum:{name}")
        assert spec.name == f"captum:{name}"
        assert isinstance(spec.build(), Protocol)
        assert not spec.build().higher_is_better
    built = attrcheck.captum_protocol("infidelity", n_perturb_samples=3)()
    assert dict(built.settings) == {"n_perturb_samples": 3}


def test_listing_imports_neither_library():
    code = (
        "import sys, attrcheck\n"
        "print(attrcheck.protocol.select('captum:infidelity,quantus:ROAD,morf'))\n"
        "print(sorted({'captum', 'quantus'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "['morf', 'captum:infidelity', 'quantus:ROAD']\n[]\n"


@pytest.mark.parametrize("name", ["infidelity", "sensitivity_max"])
def test_a_case_by_prefix(tiny, monkeypatch, name):
    tiny.in_batches_of(3, monkeypatch)
    result = tiny.run(f"tiny-linear-captum:{name}")
    assert {method: outcome.status for method, outcome in result.outcomes.items()} == {
        "brightness": "ok",
        "slope": "ok",
    }
    assert not result.higher_is_better
    before = {method: outcome.score for method, outcome in result.outcomes.items()}
    tiny.in_batches_of(8, monkeypatch)
    after = tiny.run(f"tiny-linear-captum:{name}", store=tiny.folder / "other").outcomes
    assert {name: outcome.score for name, outcome in after.items()} == pytest.approx(
        before, rel=1e-4
    )
