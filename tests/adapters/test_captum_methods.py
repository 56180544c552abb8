"""Classes of Captum as methods: by prefix, with settings, one image at a time."""

import random

import captum.attr
import numpy as np
import pytest
import torch
from torch import nn

import attrcheck
from attrcheck.adapters import captum_methods
from attrcheck.engine.attribution import attribute_batch
from attrcheck.engine.pairs import pair_of
from attrcheck.errors import MethodError
from attrcheck.graph.guard import Snapshot
from attrcheck.graph.preparing import NotTraceable, prepare
from attrcheck.registry import RegistryError
from attrcheck.store.encoding import Entry, fingerprint
from attrcheck.store.entries import Store
from attrcheck.store.fingerprints import of_code
from tests import worlds
from tests.worlds import ITEMS, TINY, smooth_images

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.filterwarnings("ignore")  # Captum's own
method = attrcheck.method
COUNT = 3
SEEDS = (21, 22, 23)

WHOLE = {"NoiseTunnel", "LimeBase", "ShapleyValues", "DataLoaderAttribution"}
"""Classes that need more than a name, like the ones whose names start with Neuron or LLM."""
PLAIN = [
    name
    for name in captum_methods.CLASSES
    if name not in WHOLE | {"LRP", "LayerLRP", *captum_methods.PERMUTES}
    and not name.startswith(("Neuron", "LLM", "RemoteLLM"))
]


def test_an_unknown_class_gets_close_matches_or_the_list():
    with pytest.raises(RegistryError, match=r"Captum has no .* 'Lmie'; did you mean Lime"):
        method.get("captum:Lmie")
    with pytest.raises(RegistryError, match=r"'Zzz'; there are: .*IntegratedGradients, .*Lime"):
        method.get("captum:Zzz")
    for no_method in ("Attribution", "visualization", "Max", "attribute"):
        with pytest.raises(RegistryError, match=f"no attribution class '{no_method}'"):
            method.get(f"captum:{no_method}")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("NoiseTunnel", "settings attribution_method"),
        ("NeuronGradient", "settings neuron_selector"),
        ("LimeBase", "interpretable_model, similarity_func"),
        ("ShapleyValues", "settings feature_mask"),
        ("FeaturePermutation", "permutes a batch"),
        ("LayerFeaturePermutation", "permutes a batch"),
    ],
)
def test_a_class_that_needs_more_than_a_name_says_what(name, says):
    with pytest.raises(RegistryError, match=f"captum:{name} .*{says}"):
        method.get(f"captum:{name}")


def test_a_setting_that_the_class_does_not_take_is_refused_at_once():
    with pytest.raises(RegistryError, match=r"no setting n_sample; it takes .*n_samples"):
        attrcheck.captum_method("Lime", n_sample=3)


@pytest.mark.parametrize("name", PLAIN)
def test_every_class_that_explains_an_image_runs_and_leaves_no_trace(subject, name):
    model, images, targets = subject
    chosen = method.get(f"captum:{name}")
    assert (chosen.name, chosen.reference) == (f"captum:{name}", f"captum.attr.{name}")
    assert chosen.not_applicable(model) is None
    kept, before = images.clone(), Snapshot.of(model)
    maps = chosen.attribute(model, images, targets, seeds=SEEDS)
    assert maps.shape == (COUNT, 8, 8)
    assert maps.isfinite().all()
    assert maps.abs().max() > 0
    assert not maps.requires_grad
    assert before.change(model) is None
    assert torch.equal(images, kept)
    assert not images.requires_grad


@pytest.mark.parametrize("name", ["Lime", "KernelShap", "GradientShap", "ShapleyValueSampling"])
def test_random_classes_follow_the_seed_of_each_image_alone(subject, name):
    model, images, targets = subject
    explain = method.get(f"captum:{name}").attribute
    if name == "GradientShap":
        explain = attrcheck.captum_method(name, stdevs=0.5)
    first = explain(model, images, targets, seeds=SEEDS)
    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    order = [2, 0]
    again = explain(model, images[order], targets[order], seeds=(23, 21))
    assert torch.allclose(again, first[order], atol=1e-6 * first.abs().max())
    other = explain(model, images, targets, seeds=(1, 2, 3))
    assert not torch.allclose(first, other, rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("IntegratedGradients", {}),
        ("IntegratedGradients", {"n_steps": 7, "multiply_by_inputs": False}),
        ("Saliency", {"abs": False}),
        ("InputXGradient", {}),
        ("DeepLift", {}),
    ],
)
def test_maps_are_captums_summed_over_channels(subject, name, settings):
    model, images, targets = subject
    built = {key: settings[key] for key in settings if key == "multiply_by_inputs"}
    called = {key: settings[key] for key in settings if key not in built}
    inputs = images.clone().requires_grad_()
    direct = getattr(captum.attr, name)(model, **built).attribute(inputs, target=targets, **called)
    explain = attrcheck.captum_method(name, **settings)
    maps = explain(model, images, targets, seeds=SEEDS)
    assert torch.allclose(maps, direct.detach().sum(1), atol=1e-5)


def test_feature_ablation_removes_patches_and_occlusion_windows(subject):
    _, images, targets = subject
    images = smooth_images(1, 16)
    linear = prepare(nn.Sequential(nn.Flatten(), nn.Linear(3 * 256, 3)))
    weight = linear.get_submodule("1").weight[targets[0]].view(3, 16, 16)
    exact = (weight * images[0]).sum(0)
    patches = exact.view(8, 2, 8, 2).sum((1, 3)).repeat_interleave(2, 0).repeat_interleave(2, 1)
    ablated = method.get("captum:FeatureAblation").attribute(
        linear, images, targets[:1], seeds=(1,)
    )
    # Captum gives every channel of a patch the patch's drop.
    assert torch.allclose(ablated[0] / 3, patches, atol=1e-4)
    occluded = attrcheck.captum_method("Occlusion", strides=(3, 2, 2))
    maps = occluded(linear, images, targets[:1], seeds=(1,))
    assert torch.allclose(maps[0] / 3, patches, atol=1e-4)


def test_a_layer_class_looks_at_the_last_stage_or_the_one_named(subject):
    model, images, targets = subject
    last = attrcheck.captum_method("LayerGradCam", relu_attributions=True)
    wanted = method.get("gradcam").attribute(model, images, targets)
    assert torch.allclose(last(model, images, targets, seeds=SEEDS), wanted, atol=1e-6)
    early = attrcheck.captum_method("LayerGradCam", relu_attributions=True, stage="1")
    wanted = method.get("gradcam").attribute(model, images, targets, stage="1")
    maps = early(model, images, targets, seeds=SEEDS)
    assert torch.allclose(maps, wanted, atol=1e-6)
    assert not torch.allclose(maps, last(model, images, targets, seeds=SEEDS), atol=1e-3)


class NoModule(nn.Module):
    """A last stage that is a function."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        return torch.exp(self.conv(x)).mean((2, 3))


class Branches(nn.Module):
    def forward(self, x):
        return x.mean((2, 3)) if x.sum() > 0 else x.amax((2, 3))


def test_a_layer_class_without_a_layer_says_so():
    chosen = method.get("captum:LayerGradCam")
    assert "no convolution" in chosen.not_applicable(prepare(nn.Sequential(nn.Flatten())))
    assert (
        method.get("captum:Saliency").not_applicable(prepare(nn.Sequential(nn.Flatten()))) is None
    )
    with pytest.raises(ValueError, match="'exp' is not a module, so no hook can be put on it"):
        chosen.attribute(prepare(NoModule()), smooth_images(1, 4), torch.tensor([0]), seeds=(1,))


def test_other_classes_need_no_graph():
    with pytest.warns(NotTraceable):
        model = prepare(Branches())
    explain = method.get("captum:Saliency").attribute
    maps = explain(model, smooth_images(2, 4), torch.tensor([0, 1]), seeds=(1, 2))
    assert maps.shape == (2, 4, 4)


def test_settings_and_class_are_part_of_the_fingerprint():
    prints = [
        of_code(attrcheck.captum_method(name, **settings))
        for name, settings in [
            ("Lime", {}),
            ("Lime", {"n_samples": 100}),
            ("Lime", {"n_samples": 200}),
            ("KernelShap", {"n_samples": 200}),
        ]
    ]
    assert len(set(prints)) == 4
    assert of_code(attrcheck.captum_method("Lime", n_samples=200)) == prints[2]


def test_a_wrapper_registers_like_any_method(registries, subject):
    method("lime_20")(attrcheck.captum_method("Lime", n_samples=20))
    model, images, targets = subject
    one = method.get("lime_20").attribute(model, images, targets, seeds=SEEDS)
    other = method.get("captum:Lime").attribute(model, images, targets, seeds=SEEDS)
    assert one.shape == other.shape
    assert not torch.allclose(one, other)


def test_what_captum_cannot_do_is_the_methods_error(network_of):
    data = worlds.blank(3)
    pair = pair_of(network_of(32), data, "tiny", "cpu")
    with pytest.raises(MethodError, match=r"method 'captum:LRP' .* has no rule defined"):
        attribute_batch(method.get("captum:LRP"), pair, slice(0, 1), 0)


def test_file_names_have_no_colon(tmp_path):
    store = Store(tmp_path)
    key = {"seed": "0"}
    entry = store.obtain("maps/a-b/captum:Lime", key, lambda: Entry({}, {"seconds": 1}))
    assert entry.info == {"seconds": 1}
    assert store.obtain("maps/a-b/captum:Lime", key, lambda: 1 / 0).info == {"seconds": 1}
    names = [path.name for path in tmp_path.rglob("*")]
    assert f"captum+Lime-{fingerprint(key)}.safetensors" in names
    assert not any(":" in name for name in names)


CHECKED = "def test_check(attr_check):\n    attr_check.run()\n"


@pytest.mark.usefixtures("registries")
def test_a_run_by_prefix(pytester):
    pytester.makeconftest(TINY)
    pytester.makepyfile(test_suite=ITEMS + CHECKED)
    chosen = ("--attr-datasets=halves", "--attr-methods=captum:Occlusion,exact,captum:Lmie")
    few = ("--attr-checks=contract", "-k", "linear-morf or contract")
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-rA", *chosen, *few)
    result.stdout.fnmatch_lines_random(
        [
            "PASSED *test_check?contract-captum:Occlusion?",
            "*did you mean Lime*",
            "FAILED *test_check?contract-captum:Lmie?*",
        ]
    )
    stored = [path.name for path in (pytester.path / ".attrcheck").rglob("captum*.safetensors")]
    assert len(stored) == 4  # that it applies, its maps, the record of the case, the check
    assert all(name.startswith("captum+Occlusion-") for name in stored)
