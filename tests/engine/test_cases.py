import pytest
from hypothesis import given
from hypothesis import strategies as st

import attrcheck
from attrcheck.contracts import Case
from attrcheck.engine.cases import families, sample, table
from attrcheck.protocols.ablation import Ablation
from attrcheck.registry import NAME, RegistryError

NAMES = st.from_regex(NAME, fullmatch=True)


@given(NAMES, NAMES, NAMES)
def test_an_id_names_its_case(dataset, model, protocol):
    case = Case(dataset, model, protocol)
    assert Case.of(case.id) == case
    assert case.id == f"{case.pair}-{protocol}"


@pytest.fixture
def world(tiny):
    """Beside `tiny` and `linear`: a second dataset, and a model that knows that one only."""
    attrcheck.dataset("tiny_two")(lambda: tiny.dataset("tiny_two"))
    attrcheck.model("only_two", datasets="tiny_two")(tiny.network)
    return tiny


def ids(*chosen):
    return [case.id for case in table(*chosen)]


def test_cases_of_a_pair_stand_side_by_side_in_a_fixed_order(world):
    assert ids("tiny*", "linear,only_two", "morf,lerf") == [
        "tiny-linear-lerf",
        "tiny-linear-morf",
        "tiny_two-linear-lerf",
        "tiny_two-linear-morf",
        "tiny_two-only_two-lerf",
        "tiny_two-only_two-morf",
    ]


def test_a_model_meets_only_the_datasets_that_it_knows(world):
    assert ids("tiny*", "only_two", "morf") == ["tiny_two-only_two-morf"]


@pytest.mark.parametrize("known", ["tiny,tiny_two", "tiny, tiny_two", "tiny*", "*,!digits"])
def test_a_model_may_list_the_datasets_that_it_knows(world, known):
    attrcheck.model("choosy", datasets=known)(world.network)
    assert ids("tiny*", "choosy", "morf") == ["tiny-choosy-morf", "tiny_two-choosy-morf"]


def test_an_embedded_model_knows_the_datasets_that_it_has_weights_for(world, monkeypatch, tmp_path):
    monkeypatch.setattr("attrcheck.models.WEIGHTS", tmp_path)
    (tmp_path / "tiny_two-shipped").mkdir()
    attrcheck.model("shipped", embedded=True)(world.network)
    assert ids("tiny*", "shipped", "morf") == ["tiny_two-shipped-morf"]


def test_a_selection_without_a_case_is_an_error(world):
    with pytest.raises(RegistryError, match="none of the models selected knows any"):
        table("tiny", "only_two")


@pytest.mark.parametrize(
    ("chosen", "kind"),
    [(("tinny",), "dataset"), (("", "linnear"), "model"), (("", "", "moorf"), "protocol")],
)
def test_an_unknown_name_is_an_error(world, chosen, kind):
    with pytest.raises(RegistryError, match=f"no {kind} is called"):
        table(*chosen)


def test_smoke_takes_one_embedded_model_a_dataset_in_turn_and_all_of_a_users(tiny):
    attrcheck.model("mine", datasets="digits")(tiny.network)
    chosen = table(dataset="digits,shapes", protocol="morf", profile="smoke")
    assert {case.pair for case in chosen} == {"digits-resnet", "digits-mine", "shapes-vit"}
    without = table(dataset="digits,shapes", model="!vit,!mine", protocol="morf", profile="smoke")
    assert {case.pair for case in without} == {"digits-resnet", "shapes-resnet"}
    neither = table(dataset="shapes", model="!vit,!resnet", protocol="morf", profile="smoke")
    assert len({case.pair for case in neither}) == 1
    asked = table(dataset="digits", model="vgg", protocol="morf", profile="smoke")
    assert [case.pair for case in asked] == ["digits-vgg"]


def test_a_costly_dataset_takes_part_when_it_is_asked_for_or_in_full(world):
    def models_of(**chosen):
        cases = table(protocol="morf", **chosen)
        return [case.model for case in cases if case.dataset == "objects"]

    for profile in ("smoke", "default"):
        assert models_of(profile=profile) == []
        assert models_of(profile=profile, model="vit") == []
    assert models_of(profile="smoke", dataset="objects") == ["resnet"]
    assert models_of(profile="default", dataset="objects", model="vit,bcos") == ["bcos", "vit"]
    every = models_of(profile="full")
    assert len(every) == 8
    assert models_of(profile="default", dataset="objects") == every


def test_a_costly_dataset_changes_nobodys_turn():
    every = table(dataset="digits,objects,shapes", protocol="morf")
    assert [case.pair for case in sample(every)] == [
        "digits-resnet",
        "objects-resnet",
        "shapes-vit",
    ]


def test_protocols_of_one_class_or_of_its_heirs_are_a_family(registries):
    class Mine(attrcheck.Protocol):
        higher_is_better = True

        def observe(self, model, batch, maps, shared):
            return {}

        def reduce(self, rows):
            return attrcheck.Reduction(0.0)

    class Heir(Ablation):
        pass

    attrcheck.protocol("mine")(Mine)
    heir = {"most_relevant_first": True, "higher_is_better": False}
    attrcheck.protocol("heir")(lambda: Heir(**heir))
    expected = {
        **dict.fromkeys(("morf", "ids_updated", "morf:blur", "heir"), "ablation"),
        "sds": "single_deletion",
        "pointing_game": "ground_truth",
        "soundness": "soundness",
        "mine": "own",
    }
    assert families([Case("a", "x", name) for name in expected], "smoke") == expected
