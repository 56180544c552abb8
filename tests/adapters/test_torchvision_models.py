"""torchvision:NAME: networks, weights and preprocessing are torchvision's own."""

import pytest
import torch
from PIL import ImageChops
from safetensors.torch import save_file

from attrcheck.adapters.checkpoints import WeightsError
from attrcheck.adapters.torchvision_models import preprocessing, resolve
from attrcheck.adapters.vision import torchvision
from attrcheck.models import imagenet
from attrcheck.registry import RegistryError
from tests.adapters.pictures import SIZES, picture, seen, some_pictures

models = torchvision.models
WEIGHTS = [
    models.ResNet18_Weights.IMAGENET1K_V1,
    models.ResNet50_Weights.IMAGENET1K_V2,
    models.EfficientNet_B0_Weights.IMAGENET1K_V1,
    models.Inception_V3_Weights.IMAGENET1K_V1,
    models.Swin_V2_T_Weights.IMAGENET1K_V1,
    models.EfficientNet_V2_L_Weights.IMAGENET1K_V1,
]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of torch's."""
    monkeypatch.setattr(torch.hub, "_hub_dir", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    return folder


def build(name, classes=3):
    return resolve(name).build(some_pictures(classes))


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_pixels_are_those_of_the_transforms_of_the_weights(weights, size):
    image, transforms = picture(size), weights.transforms()
    torch.testing.assert_close(
        seen(image, preprocessing(transforms)), transforms(image), rtol=0, atol=1e-6
    )


def test_the_comparison_of_pixels_would_see_a_shift_by_one():
    transforms, image = WEIGHTS[0].transforms(), picture((300, 300))
    shifted = ImageChops.offset(image, 1, 0)
    assert (seen(shifted, preprocessing(transforms)) - transforms(image)).abs().max() > 0.1


def test_weights_come_from_the_cache(cache):
    network = models.resnet18(num_classes=1000)
    torch.save(network.state_dict(), cache / "resnet18-f37072fd.pth")
    model = build("resnet18")
    images = torch.randn(2, 3, 64, 64)
    assert torch.equal(model.network(images), network.eval()(images))
    assert not model.network.training
    assert model.class_names == imagenet.synsets()
    assert model.preprocessing == preprocessing(WEIGHTS[0].transforms())


def test_missing_weights_are_asked_for_in_one_line(cache):
    with pytest.raises(WeightsError) as caught:
        build("resnet18@IMAGENET1K_V1")
    message = str(caught.value)
    assert f"no weights IMAGENET1K_V1 in {cache}" in message
    assert models.ResNet18_Weights.DEFAULT.url in message
    assert "@random" in message
    assert "\n" not in message


def test_a_broken_file_in_the_cache_is_named(cache):
    path = cache / "resnet18-f37072fd.pth"
    path.write_bytes(b"half of it")
    with pytest.raises(WeightsError, match=f"{path} cannot be read .* again"):
        build("resnet18")


@pytest.mark.parametrize("name", ["resnet18", "googlenet", "inception_v3"])
def test_random_weights_are_the_same_each_time_and_fit_the_dataset(name):
    state = torch.random.get_rng_state()
    one, two = build(f"{name}@random"), build(f"{name}@random")
    images = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    assert torch.equal(one.network(images), two.network(images))
    assert one.network(images).shape == (2, 3)
    assert one.class_names == ()
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("auxiliary", [True, False])
def test_a_file_of_googlenet_may_have_its_auxiliary_heads(tmp_path, auxiliary):
    network = models.googlenet(
        num_classes=7, aux_logits=auxiliary, transform_input=True, init_weights=False
    )
    path = tmp_path / "mine.safetensors"
    save_file(network.state_dict(), path)
    model, images = build(f"googlenet@{path}", 7), torch.randn(2, 3, 64, 64)
    assert torch.equal(model.network(images), network.eval()(images))
    assert model.class_names == ()


def test_a_file_of_a_network_with_imagenets_classes_has_imagenets_names(tmp_path):
    path = tmp_path / "mine.pth"
    torch.save(models.squeezenet1_1().state_dict(), path)
    spec = resolve(f"squeezenet1_1@{path}")
    assert spec.build(some_pictures()).class_names == imagenet.synsets()
    assert f"file:{path}" in spec.depends


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("resnet19", RegistryError, "no classifier 'resnet19'; did you mean resnet18"),
        ("fasterrcnn_resnet50_fpn", RegistryError, "no classifier"),
        ("resnet18@IMAGENET1K_V9", WeightsError, "'IMAGENET1K_V9'; did you mean IMAGENET1K_V1"),
        ("vgg16@IMAGENET1K_FEATURES", WeightsError, "IMAGENET1K_FEATURES of .*vgg16 classify noth"),
    ],
)
def test_names_that_torchvision_does_not_have(name, error, message):
    with pytest.raises(error, match=message):
        resolve(name)
