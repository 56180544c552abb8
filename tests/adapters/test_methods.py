"""Classes of other libraries as methods: by prefix, with settings, one image at a time."""

import random
import subprocess
import sys
import types
import warnings

import captum.attr
import numpy as np
import pytest
import torch
from torch import nn

import attrcheck
from attrcheck.adapters import captum as _captum
from attrcheck.adapters import gradcam as _gradcam
from attrcheck.contracts import Method
from attrcheck.engine.attribution import attribute_batch
from attrcheck.engine.pairs import Pair
from attrcheck.errors import MethodError
from attrcheck.graph.guard import Snapshot
from attrcheck.graph.predictor import predictor_of
from attrcheck.graph.preparing import NotTraceable, prepare
from attrcheck.registry import Registry, RegistryError
from attrcheck.store.entries import Entry, Store
from attrcheck.store.fingerprints import of_code
from tests import worlds
from tests.worlds import ITEMS, TINY, smooth_images

pytest_plugins = ["pytester"]
method = attrcheck.method
COUNT = 3
SEEDS = (21, 22, 23)

WHOLE = {"NoiseTunnel", "LimeBase", "ShapleyValues", "DataLoaderAttribution"}
"""Classes that need more than a name, like the ones whose names start with Neuron or LLM."""
PLAIN = [
    name
    for name in _captum.CLASSES
    if name not in WHOLE | {"LRP", "LayerLRP", *_captum.PERMUTES}
    and not name.startswith(("Neuron", "LLM", "RemoteLLM"))
]


def small_network(side=8):
    """Two convolutions, the second on a grid of half the side."""
    torch.manual_seed(4)
    layers = [nn.Conv2d(3, 4, 3, 1, 1), nn.ReLU(), nn.Conv2d(4, 6, 3, 2, 1), nn.ReLU()]
    network = nn.Sequential(*layers, nn.AvgPool2d(side // 2), nn.Flatten(), nn.Linear(6, 3))
    network[6].weight.data *= 30  # Lime's Lasso takes small drops for none
    return network.eval()


@pytest.fixture(scope="module")
def subject():
    model, images = prepare(small_network()), smooth_images(COUNT, 8)
    return model, images, model(images).argmax(1)


@pytest.fixture
def things():
    """A registry with one built-in and one prefix."""
    home = types.ModuleType("things_of_lib")
    home.resolve = lambda name: f"made from {name}"
    sys.modules["things_of_lib"] = home
    registry = Registry("thing", lambda name, function: name, "nowhere", {"lib": "things_of_lib"})
    registry.__dict__["_declared"] = {}
    registry("alpha")(len)
    registry("beta")(len)
    yield registry
    del sys.modules["things_of_lib"]


def quietly(function, *arguments, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **keywords)


def test_a_prefixed_name_is_made_when_it_is_asked_for(things):
    assert things.get("lib:Class_2") == "made from Class_2"
    assert "lib:Class_2" in things
    assert list(things) == ["alpha", "beta"]


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ("lib:Class", ["lib:Class"]),
        ("lib:B,beta,lib:A,lib:B", ["beta", "lib:B", "lib:A"]),
        ("*,lib:A", ["alpha", "beta", "lib:A"]),
        ("*", ["alpha", "beta"]),
        ("lib:A,!alpha", ["lib:A"]),
        ("a*,lib:A,!lib:A", ["alpha"]),
    ],
)
def test_select_passes_a_prefixed_name_through_only_if_it_is_asked_for(things, patterns, chosen):
    assert things.select(patterns) == chosen


@pytest.mark.parametrize("name", ["lib:*", "lib:A*", "lib:", "lib:a-b", "lib:a/../b", "lib:A:B"])
def test_behind_a_prefix_stands_one_name(things, name):
    assert name not in things
    for ask in (things.get, things.select):
        with pytest.raises(RegistryError, match="write one whole name after lib:"):
            ask(name)


def test_an_unknown_prefix_is_named_with_those_there_are(things):
    assert "lob:A" not in things
    for ask in (things.get, things.select):
        with pytest.raises(RegistryError, match="no thing is called 'lob:A'; prefixes are: lib:"):
            ask("lob:A")
    with pytest.raises(RegistryError, match="prefixes are: none"):
        attrcheck.removal.get("captum:Lime")


def test_the_colon_stays_out_of_registered_names(things):
    with pytest.raises(RegistryError, match="must match"):
        things("lib:A")


def test_selecting_imports_nothing():
    code = (
        "import sys, attrcheck\n"
        "print(attrcheck.method.select('captum:Lime,gradcam:GradCAM,saliency'))\n"
        "print('gradcam:X' in attrcheck.method, sorted({'torch', 'captum'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "['saliency', 'captum:Lime', 'gradcam:GradCAM']\nTrue []\n"


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
    found = method.get(f"captum:{name}")
    assert (found.name, found.reference) == (f"captum:{name}", f"captum.attr.{name}")
    assert found.not_applicable(model) is None
    kept, before = images.clone(), Snapshot.of(model)
    maps = quietly(found.attribute, model, images, targets, seeds=SEEDS)
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
    first = quietly(explain, model, images, targets, seeds=SEEDS)
    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    order = [2, 0]
    again = quietly(explain, model, images[order], targets[order], seeds=(23, 21))
    assert torch.allclose(again, first[order], atol=1e-6 * first.abs().max())
    other = quietly(explain, model, images, targets, seeds=(1, 2, 3))
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
    direct = quietly(
        getattr(captum.attr, name)(model, **built).attribute, inputs, target=targets, **called
    )
    explain = attrcheck.captum_method(name, **settings)
    found = quietly(explain, model, images, targets, seeds=SEEDS)
    assert torch.allclose(found, direct.detach().sum(1), atol=1e-5)


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
    found = occluded(linear, images, targets[:1], seeds=(1,))
    assert torch.allclose(found[0] / 3, patches, atol=1e-4)


def test_a_layer_class_looks_at_the_last_stage_or_the_one_named(subject):
    model, images, targets = subject
    last = attrcheck.captum_method("LayerGradCam", relu_attributions=True)
    wanted = quietly(method.get("gradcam").attribute, model, images, targets)
    assert torch.allclose(last(model, images, targets, seeds=SEEDS), wanted, atol=1e-6)
    early = attrcheck.captum_method("LayerGradCam", relu_attributions=True, stage="1")
    wanted = quietly(method.get("gradcam").attribute, model, images, targets, stage="1")
    found = early(model, images, targets, seeds=SEEDS)
    assert torch.allclose(found, wanted, atol=1e-6)
    assert not torch.allclose(found, last(model, images, targets, seeds=SEEDS), atol=1e-3)


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
    found = method.get("captum:LayerGradCam")
    assert "no convolution" in found.not_applicable(prepare(nn.Sequential(nn.Flatten())))
    assert (
        method.get("captum:Saliency").not_applicable(prepare(nn.Sequential(nn.Flatten()))) is None
    )
    with pytest.raises(ValueError, match="'exp' is no module that hooks could be put on"):
        found.attribute(prepare(NoModule()), smooth_images(1, 4), torch.tensor([0]), seeds=(1,))


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
    found = quietly(method.get("lime_20").attribute, model, images, targets, seeds=SEEDS)
    other = quietly(method.get("captum:Lime").attribute, model, images, targets, seeds=SEEDS)
    assert found.shape == other.shape
    assert not torch.allclose(found, other)


def test_what_captum_cannot_do_is_the_methods_error():
    data = worlds.blank(3)
    image = torch.zeros(1, 3, 32, 32)
    network = small_network(32)
    pair = Pair(data, "tiny", prepare(network), predictor_of(network), image, data.labels, "x")
    with pytest.raises(MethodError, match=r"method 'captum:LRP' .* has no rule defined"):
        attribute_batch(method.get("captum:LRP"), pair, slice(0, 1), 0)


def test_file_names_have_no_colon(tmp_path):
    store = Store(tmp_path)
    entry = store.obtain("maps/a-b/captum:Lime", "0", lambda: Entry({}, {"seconds": 1}))
    assert entry.info == {"seconds": 1}
    assert store.obtain("maps/a-b/captum:Lime", "0", lambda: 1 / 0).info == {"seconds": 1}
    names = [path.name for path in tmp_path.rglob("*")]
    assert "captum+Lime-0.safetensors" in names
    assert not any(":" in name for name in names)


CHECKED = "def test_check(attr_check):\n    attr_check.run()\n"


@pytest.mark.usefixtures("registries", "loaded")
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
    assert len(stored) == 3  # the maps, the record of the case, the check
    assert all(name.startswith("captum+Occlusion-") for name in stored)


class FakeCAM:
    """What pytorch-grad-cam's classes look like from outside; the map is the gradient's mean."""

    open = 0

    def __init__(self, model, target_layers, reshape_transform=None):
        self.model, (self.layer,) = model, target_layers
        self.kept = []

    def __enter__(self):
        FakeCAM.open += 1
        self.handle = self.layer.register_forward_hook(lambda *call: self.kept.append(call[2]))
        return self

    def __exit__(self, *error):
        FakeCAM.open -= 1
        self.handle.remove()

    def __call__(self, input_tensor, targets, eigen_smooth=False, factor=1.0):
        (target,) = targets
        logits = self.model(input_tensor)
        gradient = torch.autograd.grad(target(logits[0]), self.kept[-1])[0]
        cam = (gradient.mean((2, 3), keepdim=True) * self.kept[-1]).sum(1).relu()
        large = nn.functional.interpolate(cam[:, None], input_tensor.shape[2:], mode="bilinear")
        return factor * large[:, 0].detach().numpy()


@pytest.fixture
def library(monkeypatch):
    """A stand-in for pytorch-grad-cam."""
    fake = types.ModuleType("pytorch_grad_cam")
    fake.GradCAM, fake.BrokenCAM = FakeCAM, type("BrokenCAM", (FakeCAM,), {"__call__": _raise})
    fake.ActivationsAndGradients = type("Hooks", (), {"__init__": lambda self, model: None})
    monkeypatch.setitem(sys.modules, "pytorch_grad_cam", fake)


def _raise(self, input_tensor, targets):
    raise ArithmeticError("no map")


@pytest.mark.usefixtures("library")
def test_a_cam_class_by_name(subject):
    model, images, targets = subject
    found = method.get("gradcam:GradCAM")
    assert (found.name, found.reference) == ("gradcam:GradCAM", "pytorch_grad_cam.GradCAM")
    before = Snapshot.of(model)
    with torch.no_grad():
        maps = found.attribute(model, images, targets, seeds=SEEDS)
    wanted = quietly(method.get("gradcam").attribute, model, images, targets)
    assert torch.allclose(maps, wanted, atol=1e-6)
    assert before.change(model) is None
    assert FakeCAM.open == 0
    with pytest.raises(ArithmeticError):
        method.get("gradcam:BrokenCAM").attribute(model, images, targets, seeds=SEEDS)
    assert before.change(model) is None
    assert FakeCAM.open == 0
    assert "no convolution" in found.not_applicable(prepare(nn.Sequential(nn.Flatten())))


@pytest.mark.usefixtures("library")
def test_a_cam_class_with_settings(subject):
    model, images, targets = subject
    plain = attrcheck.gradcam_method("GradCAM")(model, images, targets, seeds=SEEDS)
    larger = attrcheck.gradcam_method("GradCAM", factor=3.0, reshape_transform=None)
    assert torch.allclose(larger(model, images, targets, seeds=SEEDS), 3 * plain)
    early = attrcheck.gradcam_method("GradCAM", stage="1")(model, images, targets, seeds=SEEDS)
    wanted = quietly(method.get("gradcam").attribute, model, images, targets, stage="1")
    assert torch.allclose(early, wanted, atol=1e-6)
    with pytest.raises(RegistryError, match="gradcam:GradCAM takes no setting steps; it takes"):
        attrcheck.gradcam_method("GradCAM", steps=3)
    with pytest.raises(RegistryError, match="'GradCam'; did you mean GradCAM"):
        method.get("gradcam:GradCam")
    with pytest.raises(RegistryError, match="has no attribution class 'ActivationsAndGradients'"):
        method.get("gradcam:ActivationsAndGradients")


@pytest.mark.usefixtures("library")
def test_the_version_of_the_library_is_part_of_the_fingerprint(monkeypatch):
    prints = set()
    for version in ("1.0", "2.0"):
        monkeypatch.setattr(_gradcam, "version", lambda package, found=version: found)
        prints.add(of_code(attrcheck.gradcam_method("GradCAM")))
    assert len(prints) == 2


def test_a_library_that_is_not_installed_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytorch_grad_cam", None)
    for ask in (method.get, lambda name: attrcheck.gradcam_method("GradCAM")):
        with pytest.raises(RegistryError, match="run `pip install grad-cam`"):
            ask("gradcam:GradCAM")


REAL = [
    *("GradCAM", "HiResCAM", "XGradCAM", "LayerCAM", "GradCAMPlusPlus"),
    *("EigenCAM", "ScoreCAM", "AblationCAM"),
]


@pytest.mark.parametrize("name", REAL)
def test_the_true_library_where_it_is_installed(subject, name):
    pytest.importorskip("attrcheck.adapters.vision")
    pytest.importorskip("pytorch_grad_cam")
    model, images, targets = subject
    before = Snapshot.of(model)
    found = method.get(f"gradcam:{name}")
    assert isinstance(found, Method)
    maps = quietly(found.attribute, model, images, targets, seeds=SEEDS)
    assert maps.shape == (COUNT, 8, 8)
    assert before.change(model) is None
    if name in ("GradCAM", "XGradCAM", "LayerCAM"):
        ours = quietly(method.get(name.lower()).attribute, model, images, targets)
        pairs = torch.stack([maps.flatten(1), ours.flatten(1)], 1)
        assert all(torch.corrcoef(pair)[0, 1] > 0.999 for pair in pairs if pair[1].max() > 0)
