"""hf:ORG/NAME: networks, weights and preprocessing are those of transformers."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from attrcheck.adapters import processors
from attrcheck.adapters.checkpoints import WeightsError
from attrcheck.adapters.hf_models import resolve
from attrcheck.adapters.vision import huggingface_hub, transformers
from attrcheck.errors import ModelError
from attrcheck.models import imagenet
from tests.adapters.pictures import SIZES, picture, seen, some_pictures

IMAGES = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def vit(labels=3, names=None):
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=32,
        patch_size=8,
        num_labels=labels,
        attn_implementation="eager",
    )
    if names:
        config.id2label = dict(enumerate(names))
    return transformers.ViTForImageClassification(config).eval()


def resnet():
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=3
    )
    return transformers.ResNetForImageClassification(config).eval()


VIT = {"size": {"height": 32, "width": 32}}
RESNET = {"size": {"shortest_edge": 32}, "crop_pct": 0.875}


def saved(folder, network, **settings):
    """A folder as save_pretrained writes it."""
    network.save_pretrained(folder)
    convnext = network.config.model_type == "resnet"
    kind = transformers.ConvNextImageProcessor if convnext else transformers.ViTImageProcessor
    kind(**(settings or (RESNET if convnext else VIT))).save_pretrained(folder)
    return folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of the hub."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def in_cache(cache, repo, revision="main"):
    home = cache / f"models--{repo.replace('/', '--')}"
    (home / "refs").mkdir(parents=True, exist_ok=True)
    (home / "refs" / revision).write_text(f"abc{revision}")
    folder = home / "snapshots" / f"abc{revision}"
    folder.mkdir(parents=True)
    return folder


def build(name, classes=3):
    return resolve(name).build(some_pictures(classes))


PROCESSORS = {
    "vit": ("ViTImageProcessor", {"size": {"height": 224, "width": 224}, "resample": 2}),
    "deit": ("DeiTImageProcessor", {}),
    "beit": ("BeitImageProcessor", {}),
    "bit": ("BitImageProcessor", {}),
    "mobilenet": ("MobileNetV2ImageProcessor", {}),
    "resnet": ("ConvNextImageProcessor", {"size": {"shortest_edge": 224}, "resample": 3}),
    "convnext 384": ("ConvNextImageProcessor", {"size": {"shortest_edge": 384}}),
    "not normalised": ("ViTImageProcessor", {"do_normalize": False}),
    "not rescaled": ("ViTImageProcessor", {"do_rescale": False, "image_mean": [120.0, 110, 100]}),
    "other factor": ("ViTImageProcessor", {"rescale_factor": 1 / 127.5}),
    "not resized": (
        "BitImageProcessor",
        {"do_resize": False, "crop_size": {"height": 32, "width": 24}},
    ),
}


@pytest.mark.parametrize(("kind", "settings"), PROCESSORS.values(), ids=PROCESSORS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_pixels_are_those_of_the_image_processor(kind, settings, size):
    processor = getattr(transformers, f"{kind}Pil")(**settings)
    image = picture(size)
    ours = seen(image, processors.preprocessing("hf:some", processor))
    theirs = torch.tensor(processor(image, return_tensors="np")["pixel_values"][0])
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("kind", "settings", "what"),
    [
        ("MobileViTImageProcessor", {}, "the processor MobileViTImageProcessor"),
        ("ViTImageProcessor", {"size": {"longest_edge": 64}}, "the size"),
        ("BitImageProcessor", {"do_center_crop": False}, "pictures of many sizes"),
        ("ViTImageProcessor", {"do_pad": True}, "do_pad"),
    ],
)
def test_what_is_not_resize_and_crop_is_refused(kind, settings, what):
    processor = getattr(transformers, kind)(**settings)
    with pytest.raises(ModelError, match=f"hf:some wants {what}"):
        processors.preprocessing("hf:some", processor)


@pytest.mark.parametrize("make", [vit, resnet])
def test_a_folder_gives_a_network_that_maps_images_to_logits(tmp_path, make):
    network = make()
    model = build(str(saved(tmp_path, network)))
    assert torch.equal(model.network(IMAGES), network(IMAGES).logits)
    assert not model.network.training
    assert model.network.config.num_labels == 3  # what is inside is reached by name
    assert model.preprocessing.size == (32, 32)
    assert model.preprocessing.resize == (36 if make is resnet else (32, 32))
    assert model.class_names == ()


def test_a_model_comes_from_the_cache_of_the_hub(cache):
    network = vit(names=["ant", "bee", "cat"])
    saved(in_cache(cache, "me/small-vit.v1"), network)
    model = build("me/small-vit.v1")
    assert torch.equal(model.network(IMAGES), network(IMAGES).logits)
    assert model.class_names == ("ant", "bee", "cat")


def test_behind_the_at_may_stand_a_revision(cache):
    one, two = vit(), vit()
    saved(in_cache(cache, "me/vit"), one)
    saved(in_cache(cache, "me/vit", "v2"), two)
    assert torch.equal(build("me/vit@v2").network(IMAGES), two(IMAGES).logits)


def test_weights_in_half_precision_are_used_in_full(tmp_path):
    model = build(str(saved(tmp_path, vit().half())))
    assert model.network(IMAGES).dtype == torch.float32


def test_english_names_of_imagenet_are_known_by_their_synsets(tmp_path):
    names = [name.split(",")[0] for name in imagenet.english().values()]
    model = build(str(saved(tmp_path, vit(1000, names))))
    assert model.class_names == imagenet.synsets()


def test_missing_weights_are_asked_for_in_one_line(cache):
    with pytest.raises(WeightsError) as caught:
        build("google/vit-base-patch16-224")
    message = str(caught.value)
    assert f"no weights in {cache}" in message
    assert "`hf download google/vit-base-patch16-224`" in message
    assert "\n" not in message
    with pytest.raises(WeightsError, match="`hf download me/vit --revision v9`"):
        build("me/vit@v9")


def test_a_config_without_weights_is_said_to_be_one(cache, tmp_path):
    folder = saved(in_cache(cache, "me/vit"), vit())
    (folder / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"`hf download me/vit` .*@random"):
        build("me/vit")
    own = saved(tmp_path / "own", vit())
    (own / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match=f"there are no weights in {own}"):
        build(str(own))
    with pytest.raises(WeightsError, match=r"there is no file nowhere/config.json"):
        build("./nowhere")


def test_random_weights_are_the_same_each_time_and_fit_the_dataset(tmp_path):
    folder = saved(tmp_path, vit(5))
    one, two = build(f"{folder}@random", 4), build(f"{folder}@random", 4)
    assert torch.equal(one.network(IMAGES), two.network(IMAGES))
    assert one.network(IMAGES).shape == (2, 4)
    assert one.class_names == ()


def test_weights_of_a_file_say_how_many_classes_there_are(tmp_path):
    folder = saved(tmp_path / "three", vit(names=["ant", "bee", "cat"]))
    other = vit(5)
    path = saved(tmp_path / "five", other) / "model.safetensors"
    for content in (load_file(path), {f"module.{k}": w for k, w in other.state_dict().items()}):
        mine = tmp_path / "mine.safetensors"
        save_file({name: weight.contiguous() for name, weight in content.items()}, mine)
        model = build(f"{folder}@{mine}")
        torch.testing.assert_close(model.network(IMAGES), other(IMAGES).logits)
        assert model.class_names == ()
    assert build(f"{folder}@{tmp_path / 'five'}").network(IMAGES).shape == (2, 5)


def test_weights_that_do_not_fit_are_named(tmp_path):
    folder = saved(tmp_path / "vit", vit())
    state = vit().state_dict()
    state["head.weight"] = state.pop("classifier.weight")
    path = tmp_path / "mine.pth"
    torch.save(state, path)
    with pytest.raises(WeightsError, match=r"1 missing: classifier.weight; 1 unexp.*head.weight"):
        build(f"{folder}@{path}")


def test_a_network_that_was_not_trained_to_classify_is_refused(tmp_path):
    folder = saved(tmp_path, vit())
    vit().vit.save_pretrained(folder)
    with pytest.raises(WeightsError, match=r"lack classifier.bias, classifier.weight"):
        build(str(folder))


def test_a_model_that_is_no_classifier_of_images_is_refused(tmp_path):
    transformers.BertConfig().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="'bert', which classifies no images"):
        build(str(tmp_path))
    transformers.TimmWrapperConfig(architecture="resnet18").save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="is a model of timm; write timm:"):
        build(f"{tmp_path}@random")


def test_without_a_processor_nothing_tells_the_preprocessing(tmp_path):
    vit().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"preprocessor_config.json does not tell what"):
        build(str(tmp_path))
