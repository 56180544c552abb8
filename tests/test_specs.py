"""How specs are spelt: aliases, ids that any file system takes, paths from where they were said."""

from pathlib import Path

import pytest

import attrcheck
from attrcheck.contracts import Case
from attrcheck.models import ModelSpec
from attrcheck.registry import RegistryError
from attrcheck.specs import Spec, anchored, id_of, is_path, parse
from attrcheck.store.entries import Store


@pytest.mark.parametrize(
    ("text", "alias", "spec"),
    [
        ("folder:/data/val", "", Spec("folder", "/data/val")),
        ("imagenet=folder:/data/val", "imagenet", Spec("folder", "/data/val")),
        ("x=folder:/a=b/c", "x", Spec("folder", "/a=b/c")),
        ("folder:/a=b/c", "", Spec("folder", "/a=b/c")),
        ("r=timm:resnet50.a1_in1k", "r", Spec("timm", "resnet50.a1_in1k")),
        ("folder:C:\\data\\val", "", Spec("folder", "C:\\data\\val")),
        ("folder:/with space/val", "", Spec("folder", "/with space/val")),
        ("resnet", "", None),
        ("x=resnet", "x", None),
        ("folder:", "", None),
    ],
)
def test_an_alias_ends_at_the_first_equals_sign_if_it_can_be_a_name(text, alias, spec):
    assert parse(text) == (alias, spec)


IDS = [
    ("folder:/data/val", "val"),
    ("folder:/data/val/", "val"),
    ("folder:/data/Food-101 (small)", "Food_101__small_"),
    ("folder:/data/2012", "folder_2012"),
    ("folder:C:\\data\\val", "val"),
    ("folder:/data/bilder.äöü", "bilder.___"),
    ("timm:resnet50.a1_in1k", "timm:resnet50.a1_in1k"),
    ("timm:hf-hub:org/name", "timm:hf_hub_org.name"),
    ("torchvision:vgg16", "torchvision:vgg16"),
    ("torchvision:vgg16@IMAGENET1K_V1", "torchvision:vgg16.IMAGENET1K_V1"),
    ("torchvision:resnet18@/path/food-101.safetensors", "torchvision:resnet18.food_101"),
    ("torchvision:resnet18@food101.pth.tar", "torchvision:resnet18.food101"),
    ("hf:google/vit-base-patch16-224", "hf:google.vit_base_patch16_224"),
    ("hf:/models/my-vit", "hf:my_vit"),
    ("hf:./my-vit@small", "hf:my_vit.small"),
]


@pytest.mark.parametrize(("text", "name"), IDS)
def test_ids_can_be_read_and_stand_in_case_ids_and_file_names(text, name, tmp_path):
    _, spec = parse(text)
    assert id_of(spec) == name
    case = Case("imagenet", name, "morf")
    assert Case.of(case.id) == case
    path = Store(tmp_path).path(f"maps/{case.pair}/lrp", {})
    assert path.parent.parent == tmp_path / "maps"
    assert not set(path.parent.name) & set('<>:"/\\|?*@ ')


def test_where_a_dataset_lies_is_no_part_of_its_id():
    assert id_of(Spec("torchvision", "Food101@/data/food"), with_place=False) == (
        "torchvision:Food101"
    )
    assert id_of(Spec("hf", "org/name@config"), with_place=False) == "hf:org.name.config"


def test_the_folder_where_one_is_has_its_own_name(tmp_path, monkeypatch):
    (tmp_path / "birds").mkdir()
    monkeypatch.chdir(tmp_path / "birds")
    assert id_of(Spec("folder", ".")) == "birds"


@pytest.mark.parametrize("text", ["/a", "./a", "../a", "~/a", ".", "..", "C:\\a", "\\\\host\\a"])
def test_what_says_that_it_is_a_path(text):
    assert is_path(text)


@pytest.mark.parametrize("text", ["org/name", "a.b", "resnet18", ".hidden"])
def test_what_does_not(text):
    assert not is_path(text)


@pytest.mark.parametrize(
    ("text", "absolute"),
    [
        ("folder:val", "folder:/base/val"),
        ("x=folder:../val", "x=folder:/base/../val"),
        ("folder:/data/val", "folder:/data/val"),
        ("folder:a@b", "folder:/base/a@b"),
        ("torchvision:CIFAR10@data/x", "torchvision:CIFAR10@/base/data/x"),
        ("torchvision:resnet18@w.pth", "torchvision:resnet18@/base/w.pth"),
        ("torchvision:vgg16@IMAGENET1K_V1", "torchvision:vgg16@IMAGENET1K_V1"),
        ("hf:org/name", "hf:org/name"),
        ("hf:./name@config", "hf:/base/name@config"),
        ("!x*,folder:val", "!x*,folder:/base/val"),
        ("!folder:val", "!folder:/base/val"),
        ("", ""),
    ],
)
def test_relative_paths_begin_at_the_base(text, absolute):
    assert anchored(text, Path("/base")) == absolute


def test_home_is_meant_by_a_tilde(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert anchored("folder:~/val", Path("/base")) == "folder:/home/me/val"


def test_public_models_know_what_does_not_ship_with_attrcheck(registries):
    attrcheck.dataset.select("imagenet=folder:/data/val")
    (name,) = attrcheck.model.select("torchvision:resnet18@/path/food101.safetensors")
    public = ModelSpec(name, lambda data: None)
    assert public.knows("imagenet")
    assert not public.knows("digits")
    (alias,) = attrcheck.model.select("r50=timm:resnet50.a1_in1k")
    assert not ModelSpec(alias, lambda data: None).knows("shapes")
    assert ModelSpec("my_own", lambda data: None).knows("digits")
    with pytest.raises(RegistryError, match="already a dataset called 'digits'"):
        attrcheck.dataset.select("folder:/data/digits")
