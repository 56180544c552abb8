"""timm:NAME: networks, weights and preprocessing are timm's own."""

import pytest
import torch
from safetensors.torch import save_file

from attrcheck.adapters.checkpoints import WeightsError
from attrcheck.adapters.timm_models import preprocessing, resolve
from attrcheck.adapters.vision import huggingface_hub, timm
from attrcheck.errors import ModelError
from attrcheck.models import imagenet
from attrcheck.registry import RegistryError
from tests.adapters.pictures import SIZES, picture, seen, some_pictures

CONFIGS = {
    "center": {"crop_pct": 0.95, "crop_mode": "center"},
    "odd": {"crop_pct": 0.9, "crop_mode": "center", "interpolation": "bilinear"},
    "squash": {"crop_pct": 1.0, "crop_mode": "squash"},
    "squash and crop": {"crop_pct": 0.875, "crop_mode": "squash", "input_size": (3, 160, 160)},
    "squash a rectangle": {"crop_pct": 0.9, "crop_mode": "squash", "input_size": (3, 160, 96)},
}
BASE = {
    "input_size": (3, 224, 224),
    "interpolation": "bicubic",
    "mean": (0.5, 0.4, 0.3),
    "std": (0.2, 0.3, 0.4),
}


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """Empty caches of torch and of the hub."""
    monkeypatch.setattr(torch.hub, "_hub_dir", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def hub_folder(caches, repo):
    """The folder of a repository's only snapshot in the cache."""
    home = caches / "hub" / f"models--{repo.replace('/', '--')}"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text("abc")
    folder = home / "snapshots" / "abc"
    folder.mkdir(parents=True)
    return folder


def build(name, classes=3):
    return resolve(name).build(some_pictures(classes))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_pixels_are_those_of_timms_transform(config, size):
    config, image = {**BASE, **config}, picture(size)
    transform = timm.data.create_transform(**config)
    torch.testing.assert_close(
        seen(image, preprocessing("some", config)), transform(image), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize(
    "config",
    [
        {"crop_pct": 1.0, "crop_mode": "border"},
        {"crop_pct": 1.0, "crop_mode": "center", "input_size": (3, 64, 32)},
    ],
)
def test_what_is_not_resize_and_crop_is_refused(config):
    with pytest.raises(ModelError, match=r"timm:some wants pictures of \d+ x \d+ in crop mode"):
        preprocessing("some", {**BASE, **config})


def test_a_model_brings_its_own_preprocessing():
    model = build("vit_tiny_patch16_224.augreg_in21k_ft_in1k@random")
    assert model.preprocessing.mean == (0.5, 0.5, 0.5)
    assert model.preprocessing.resize == 248
    assert model.preprocessing.interpolation == "bicubic"
    assert build("resnet18.a1_in1k@random").preprocessing.resize == 235


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
def test_weights_come_from_the_cache_of_the_hub(caches, file):
    network = timm.create_model("test_resnet.r160_in1k")
    save = save_file if file.endswith("safetensors") else torch.save
    save(network.state_dict(), hub_folder(caches, "timm/test_resnet.r160_in1k") / file)
    model, images = build("test_resnet.r160_in1k"), torch.randn(2, 3, 64, 64)
    assert torch.equal(model.network(images), network.eval()(images))
    assert not model.network.training
    assert model.class_names == imagenet.synsets()


def test_weights_come_from_the_cache_of_torch(caches):
    network = timm.create_model("resnet18.a1_in1k")
    folder = caches / "torch" / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    url = timm.get_pretrained_cfg("resnet18.a1_in1k").url
    torch.save(network.state_dict(), folder / url.rpartition("/")[2])
    model, images = build("resnet18.a1_in1k"), torch.randn(2, 3, 64, 64)
    assert torch.equal(model.network(images), network.eval()(images))


def test_missing_weights_are_asked_for_in_one_line(caches):
    with pytest.raises(WeightsError) as caught:
        build("test_resnet")
    message = str(caught.value)
    assert f"no weights in {caches / 'hub'}" in message
    assert "`hf download timm/test_resnet.r160_in1k`" in message
    assert "@random" in message
    with pytest.raises(WeightsError, match=f"no weights in {caches}/torch/hub/checkpoints: down"):
        build("gcvit_tiny.in1k")


def test_a_broken_file_in_the_cache_is_named(caches):
    path = hub_folder(caches, "timm/test_resnet.r160_in1k") / "model.safetensors"
    path.write_bytes(b"half of it")
    with pytest.raises(WeightsError, match=f"{path} cannot be read .* again"):
        build("test_resnet")


def test_a_file_says_how_many_classes_there_are(tmp_path):
    network, path = timm.create_model("test_vit", num_classes=7), tmp_path / "mine.safetensors"
    save_file(network.state_dict(), path)
    model, images = build(f"test_vit@{path}", 7), torch.randn(2, 3, 160, 160)
    assert torch.equal(model.network(images), network.eval()(images))
    assert model.class_names == ()


def test_random_weights_are_the_same_each_time_and_fit_the_dataset():
    one, two = build("test_resnet@random"), build("test_resnet@random")
    images = torch.randn(2, 3, 64, 64)
    assert torch.equal(one.network(images), two.network(images))
    assert one.network(images).shape == (2, 3)
    assert one.class_names == ()


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("resnet19", RegistryError, "timm has no model 'resnet19'; did you mean"),
        ("resnet18.a9_in1k", RegistryError, "'resnet18.a9_in1k'; did you mean resnet18.a"),
        ("resnet18@a1_in1k", WeightsError, "part of the name, as in timm:resnet18.a1_in1k"),
    ],
)
def test_names_that_timm_does_not_have(name, error, message):
    with pytest.raises(error, match=message):
        resolve(name)


def test_models_that_cannot_classify(caches):
    with pytest.raises(ModelError, match=r"timm:vit_small_patch14_dinov2.* has no classes"):
        build("vit_small_patch14_dinov2.lvd142m")
    with pytest.raises(WeightsError, match="timm has no weights for convnextv2_small; give a file"):
        build("convnextv2_small")
