"""What protocols need, and that the case table leaves out what cannot be."""

from dataclasses import dataclass

import pytest

import attrcheck
from attrcheck.contracts import Protocol
from attrcheck.engine.cases import table
from attrcheck.protocols import protocol as protocols
from attrcheck.registry import RegistryError

TRUTH = {"pointing_game", "relevance_mass", "relevance_rank"}
TUNED = {"idsds", "idsds_2", "idsds_8", "idsds_blur", "idsds_random", "f_fidelity"}
RETRAINED = {"roar"}
SIBLINGS = {"sds_2", "sds_8", "sds_blur", "sds_random", "srg"}
SAMPLED = {"sensitivity_n", "infidelity", "faithfulness_correlation", "saco"}
GRIDS = {"grid_pointing", "difull", "dipart"}
ASKED = {*SIBLINGS, *SAMPLED, *GRIDS, *TUNED - {"idsds"}, *RETRAINED}


@dataclass(frozen=True)
class Slopes(Protocol):
    """A protocol that differentiates the model."""

    higher_is_better = True
    needs = ("gradients",)

    def observe(self, model, batch, maps, shared):
        raise NotImplementedError

    def reduce(self, rows):
        raise NotImplementedError


def test_every_built_in_protocol_states_its_needs():
    needs = {name: protocols.get(name).make().needs for name in protocols}
    assert {name for name, needed in needs.items() if "masks" in needed} == TRUTH
    assert {name for name, needed in needs.items() if "training" in needed} == TUNED | RETRAINED
    assert {name for name, needed in needs.items() if "architecture" in needed} == RETRAINED
    assert {name for name, needed in needs.items() if needed} == TRUTH | TUNED | RETRAINED


def test_a_dataset_with_neither_masks_nor_training_has_no_such_cases(tiny):
    names = {case.protocol for case in table(dataset="tiny", model="linear")}
    assert names == set(protocols) - TRUTH - TUNED - RETRAINED


@pytest.mark.parametrize(("offer", "gained"), [("masks", TRUTH), ("training", TUNED)])
def test_a_dataset_has_the_cases_whose_needs_it_meets(tiny, offer, gained):
    attrcheck.dataset("tiny_rich", offers=(offer,))(tiny.dataset)
    rich, poor = (
        {case.protocol for case in table(dataset=name, model="linear")}
        for name in ("tiny_rich", "tiny")
    )
    assert rich - poor == gained


def test_only_what_can_be_built_without_weights_is_retrained(tiny):
    attrcheck.model("pretrained", datasets="digits")(tiny.network)
    models = {case.model for case in table(dataset="digits", protocol="roar")}
    assert "resnet" in models
    assert "pretrained" not in models


def test_a_model_that_cannot_be_differentiated_has_no_case_that_needs_it(tiny):
    attrcheck.protocol("slopes")(Slopes)
    attrcheck.model("frozen", datasets="tiny*", offers=())(tiny.network)
    models = [case.model for case in table(dataset="tiny", protocol="slopes")]
    assert models == ["linear"]
    with pytest.raises(RegistryError, match="slopes needs gradients"):
        table(dataset="tiny", model="frozen", protocol="slopes")


def test_asking_for_what_nobody_offers_is_an_error_that_says_what_is_missing(tiny):
    with pytest.raises(RegistryError, match="relevance_mass needs masks"):
        table(dataset="tiny", protocol="relevance_mass")


def test_variants_run_only_when_asked_for():
    unasked = {case.protocol for case in table(dataset="shapes", model="resnet", profile="default")}
    assert unasked == set(protocols) - ASKED
    asked = table(dataset="shapes", model="resnet", protocol="sds_8", profile="default")
    assert [case.protocol for case in asked] == ["sds_8"]


def test_only_soundness_needs_many_images():
    assert {name for name in protocols if protocols.get(name).make().least_images > 1} == {
        "soundness"
    }


def test_costly_protocols_score_fewer_images_where_time_is_short():
    for name in protocols:
        assert protocols.get(name).make("full").most_images is None
    limited = {name for name in protocols if protocols.get(name).make("default").most_images}
    assert limited >= {"ids", "ids_updated", "road_morf", "road_lerf", "completeness", "idsds"}
    assert "soundness" not in limited
