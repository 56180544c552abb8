"""What the papers' suites are made of, and what becomes of them on a data folder."""

from dataclasses import replace

import pytest
import torch

from attrcheck import papers
from attrcheck.checks import check
from attrcheck.datasets import dataset
from attrcheck.engine.cases import table
from attrcheck.methods import method
from attrcheck.models import model
from attrcheck.papers.arranging import ARCHITECTURES, HERE, arrange
from attrcheck.protocols import protocol
from attrcheck.specs import parse
from attrcheck.store.fingerprints import of_code
from tests.papers.data_folder import CLASSES, empty_caches, pictures, weights

SUITES = ("idsds", "metarank", "reproduction", "soundness")


@pytest.fixture(autouse=True)
def nothing_cached(registries, tmp_path, monkeypatch):
    empty_caches(monkeypatch, tmp_path)


def test_the_suites_are_those_of_the_papers():
    assert papers.names() == [*SUITES]
    with pytest.raises(papers.SuiteError, match=r"'metarnk'.*did you mean metarank"):
        papers.load("metarnk")


def test_metarank_has_its_26_cases():
    suite = papers.load("metarank")
    assert len(suite.cases) == len({*suite.cases}) == 26
    pairs = [(source.name, network.name) for source, network in suite.pairs]
    assert [name for data, name in pairs if data == "places365"] == ["resnet18", "resnet50"]
    assert [data for data, _ in pairs].count("resisc45") == 5
    assert len(suite.methods) == 8


def test_idsds_has_23_methods_and_the_reproduction_all_dummies_and_13_models_of_imagenet():
    assert len(papers.load("idsds").methods) == 23
    suite = papers.load("reproduction")
    dummies = {name for name in method if method.get(name).dummy}
    assert dummies <= {*suite.methods}
    assert [source.name for source, _ in suite.pairs].count("imagenet") == 13
    assert suite.images == 3923
    assert {"measured_output", "attributed_output"} <= {*suite.checks}


@pytest.mark.parametrize("name", SUITES)
def test_all_names_of_a_suite_are_known(name):
    suite = papers.load(name)
    for registry, names in ((method, suite.methods), (protocol, suite.protocols)):
        assert {*names} <= {*registry}
    assert {*suite.checks} <= {*check}
    assert {*suite.tuned} <= {*suite.protocols}
    for network in suite.networks:
        assert {*network.datasets} <= {source.name for source in suite.sources}
        assert network.spec or network.get, network.name
        for text in (network.spec and f"{network.spec}@random", *network.public.values()):
            _, spec = parse(text)
            if spec and spec.prefix == HERE:
                assert spec.rest.partition("@")[0] in ARCHITECTURES
            elif spec:
                assert model.get(str(spec)).name  # an architecture, and weights, that a library has


def test_an_empty_folder_lacks_everything_and_each_line_says_what_to_do(tmp_path):
    there = arrange(papers.load("metarank"), tmp_path)
    assert (there.datasets, there.models) == ((), ())
    gaps = {gap.what: gap for gap in there.gaps}
    assert len(gaps) == 4 + 13
    assert gaps["dataset resisc45"].where == "resisc45/val"
    assert gaps["dataset food101"].where == "food101/val or food-101/images"
    trained = gaps["weights of vgg19 on food101"]
    assert trained.where == "weights/food101/vgg19.safetensors"
    assert trained.do == (
        f"attrcheck train --datasets food101 --models torchvision:vgg19 --data {tmp_path}"
    )
    assert "download https://" in gaps["weights of resnet18 on imagenet"].do
    assert "inception_v4.tf_in1k" in gaps["weights of inception_v4 on imagenet"].do


def test_what_is_there_becomes_cases_with_the_names_of_the_suite(tmp_path):
    suite = papers.load("metarank")
    for name in ("food101", "resisc45"):
        pictures(tmp_path / name / "val")
    weights(tmp_path / "weights/food101/resnet18.safetensors")
    weights(tmp_path / "weights/places365/resnet18.safetensors")
    there = arrange(suite, tmp_path)
    assert there.datasets == ("resisc45", "food101")
    assert there.models == ("resnet18",)
    assert len(there.gaps) == 2 + 11
    chosen = table(",".join(there.datasets), ",".join(there.models), ",".join(suite.protocols))
    assert [case.id for case in chosen] == ["food101-resnet18-lerf", "food101-resnet18-morf"]
    assert {case.id for case in chosen} <= {*suite.cases}
    built = model.get("resnet18").make(replace(dataset.get("food101").load(), name="food101"))
    assert built.class_names == CLASSES
    assert built.preprocessing.size == (224, 224)


def test_a_new_file_of_weights_leaves_the_keys_of_other_datasets_as_they_are(tmp_path):
    pictures(tmp_path / "food101/val")
    weights(tmp_path / "weights/food101/resnet18.safetensors")
    keys = []
    for _ in range(2):
        with model.scratch(), dataset.scratch():
            arrange(papers.load("metarank"), tmp_path)
            keys.append(of_code(model.get("resnet18").build))
        weights(tmp_path / "weights/resisc45/resnet18.safetensors")
    assert keys[0] == keys[1]


def test_names_that_a_project_gives_come_first(tmp_path):
    pictures(tmp_path / "elsewhere")
    dataset.bind("imagenet", f"folder:{tmp_path / 'elsewhere'}")
    model("fixup_resnet50", datasets="imagenet")(lambda data: torch.nn.Identity())
    there = arrange(papers.load("idsds"), tmp_path)
    assert there.datasets == ("imagenet",)
    assert there.models == ("fixup_resnet50",)
    missing = [gap.what for gap in there.gaps]
    assert "dataset imagenet" not in missing
    assert "model x_vgg16" in missing
    assert "model fixup_resnet50" not in missing


def test_a_suite_that_tunes_models_asks_for_training_images(tmp_path):
    suite, train = papers.load("idsds"), "training images of imagenet"
    pictures(tmp_path / "imagenet/val")
    with dataset.scratch(), model.scratch():
        gaps = {gap.what: gap.where for gap in arrange(suite, tmp_path).gaps}
    assert gaps[train] == "imagenet/train"
    pictures(tmp_path / "imagenet/train")
    assert train not in {gap.what for gap in arrange(suite, tmp_path).gaps}
