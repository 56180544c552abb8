"""Fine-tuned models against other architectures: what decides, and what is on record."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import attrcheck
from attrcheck.checks import tuning as module
from attrcheck.contracts import Dataset, Tuning
from attrcheck.engine.lab import Lab
from attrcheck.training.similarity import similarity

SIDE = 8


def halves(training=True):
    """Which half is brighter?"""

    def draw(count, seed):
        images = torch.rand(count, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(seed))
        left, right = (images[..., part].sum((1, 2, 3)) for part in (slice(0, 4), slice(4, 8)))
        return images, (left > right).long()

    images, labels = draw(20, 0)
    return Dataset(
        "halves",
        images,
        labels,
        2,
        (0.5,),
        (0.3,),
        tuple(f"halves/{index}" for index in range(20)),
        training=(lambda: draw(60, 1)) if training else None,
    )


def network(seed):
    def build(data):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Flatten(), nn.Linear(SIDE**2, 8), nn.ReLU(), nn.Linear(8, 2))

    return build


@pytest.fixture
def world(registries):
    """A dataset and two models that knew nothing before they were tuned."""
    attrcheck.dataset("halves", offers=("training",))(halves)
    attrcheck.model("one", datasets="halves")(network(0))
    attrcheck.model("other", datasets="halves")(network(1))


@pytest.fixture
def facts(monkeypatch):
    """Change what is on record about a fine-tuning."""

    def change(**changes):
        load = Lab.pair

        def changed(lab, dataset, model, images, tuning=None):
            pair = load(lab, dataset, model, images, tuning)
            return replace(pair, tuned={**pair.tuned, **changes}) if tuning else pair

        monkeypatch.setattr(Lab, "pair", changed)

    return change


CASES = ("halves-one-idsds", "halves-other-idsds")


def verdict_on_one(lab):
    return module.tuning(lab, "halves", "one")


def test_figures_are_those_on_record_beside_those_between_models(world, lab_of):
    lab = lab_of(*CASES)
    figures = verdict_on_one(lab).figures
    record = lab.pair("halves", "one", None, Tuning()).tuned
    one, other = (lab.pair("halves", name, None) for name in ("one", "other"))
    between = similarity(one.network, other.network, one.images, one.labels)
    for name in ("label_probability", "total_variation"):
        assert figures[f"{name}_moved"] == record["similarity"][name]
        assert figures[f"{name}_to_other"] == between[name]
    assert record["similarity"]["gradcam"] is None
    assert not any(name.startswith("gradcam") for name in figures)
    assert figures["worst_cell_before"] == record["worst_cell"]["before"]
    assert figures["accuracy_after"] == record["accuracy"]["after"]


ALIKE = {"label_probability": 0.0, "total_variation": 0.0, "gradcam": None}
BETTER = {"before": 0.5, "after": 0.6}


@pytest.mark.parametrize(
    ("similar", "worst", "reason"),
    [
        (ALIKE, BETTER, ""),
        (ALIKE, {"before": 0.5, "after": 0.5}, ""),
        ({**ALIKE, "total_variation": 0.9}, BETTER, "total_variation moved by 0.9000, other is"),
        (ALIKE, {"before": 0.5, "after": 0.25}, "without the worst cell the accuracy fell from"),
    ],
)
def test_it_must_stay_alike_and_get_no_worse(world, lab_of, facts, similar, worst, reason):
    facts(similarity=similar, worst_cell=worst)
    verdict = verdict_on_one(lab_of(*CASES))
    assert verdict.passed is not bool(reason)
    assert verdict.reason.startswith(reason)


def test_grad_cam_counts_where_both_have_it(world, lab_of, facts, monkeypatch):
    apart = {"label_probability": 0.5, "total_variation": 0.5, "gradcam": 0.1}
    monkeypatch.setattr(module, "similarity", lambda *given: apart)
    for moved, passed in ((0.2, False), (0.05, True), (None, True)):
        facts(similarity={**ALIKE, "gradcam": moved}, worst_cell=BETTER)
        assert verdict_on_one(lab_of(*CASES)).passed is passed


def test_without_fine_tuning_or_another_model_there_is_nothing_to_compare(world, lab_of):
    untuned = verdict_on_one(lab_of("halves-one-morf", "halves-other-morf"))
    assert (untuned.passed, untuned.reason) == (None, "no protocol of the run fine-tunes it")
    alone = verdict_on_one(lab_of("halves-one-idsds"))
    assert (alone.passed, alone.reason) == (None, "no other model is there")


def test_every_tuning_of_the_run_is_looked_at(world, lab_of):
    both = [*CASES, "halves-one-f_fidelity"]
    figures = verdict_on_one(lab_of(*both)).figures
    tunings = {name.partition(": ")[0] for name in figures}
    assert len(tunings) == 2
    alone = verdict_on_one(lab_of(*CASES)).figures
    (key,) = (
        key
        for key in tunings
        if figures[f"{key}: total_variation_moved"] == alone["total_variation_moved"]
    )
    assert {name for name in figures if name.startswith(key)} == {
        f"{key}: {name}" for name in alone
    }
