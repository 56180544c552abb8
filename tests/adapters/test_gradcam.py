"""CAM classes of pytorch-grad-cam as methods: on a stand-in, and the real library if installed."""

import sys
import types

import pytest
import torch
from torch import nn

import attrcheck
import attrcheck.adapters.vision  # before pytorch-grad-cam, which imports torchvision
from attrcheck.adapters import libraries
from attrcheck.contracts import Method
from attrcheck.graph.guard import Snapshot
from attrcheck.graph.preparing import prepare
from attrcheck.registry import RegistryError
from attrcheck.store.fingerprints import of_code

pytestmark = pytest.mark.filterwarnings("ignore")  # of coarse grids
method = attrcheck.method
COUNT = 3
SEEDS = (21, 22, 23)


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
    chosen = method.get("gradcam:GradCAM")
    assert (chosen.name, chosen.reference) == ("gradcam:GradCAM", "pytorch_grad_cam.GradCAM")
    before = Snapshot.of(model)
    with torch.no_grad():
        maps = chosen.attribute(model, images, targets, seeds=SEEDS)
    wanted = method.get("gradcam").attribute(model, images, targets)
    assert torch.allclose(maps, wanted, atol=1e-6)
    assert before.change(model) is None
    assert FakeCAM.open == 0
    with pytest.raises(ArithmeticError):
        method.get("gradcam:BrokenCAM").attribute(model, images, targets, seeds=SEEDS)
    assert before.change(model) is None
    assert FakeCAM.open == 0
    assert "no convolution" in chosen.not_applicable(prepare(nn.Sequential(nn.Flatten())))


@pytest.mark.usefixtures("library")
def test_a_cam_class_with_settings(subject):
    model, images, targets = subject
    plain = attrcheck.gradcam_method("GradCAM")(model, images, targets, seeds=SEEDS)
    larger = attrcheck.gradcam_method("GradCAM", factor=3.0, reshape_transform=None)
    assert torch.allclose(larger(model, images, targets, seeds=SEEDS), 3 * plain)
    early = attrcheck.gradcam_method("GradCAM", stage="1")(model, images, targets, seeds=SEEDS)
    wanted = method.get("gradcam").attribute(model, images, targets, stage="1")
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
        monkeypatch.setattr(libraries, "version", lambda package, is_at=version: is_at)
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
def test_the_real_library_where_it_is_installed(subject, name):
    pytest.importorskip("pytorch_grad_cam")
    model, images, targets = subject
    before = Snapshot.of(model)
    chosen = method.get(f"gradcam:{name}")
    assert isinstance(chosen, Method)
    maps = chosen.attribute(model, images, targets, seeds=SEEDS)
    assert maps.shape == (COUNT, 8, 8)
    assert before.change(model) is None
    if name in ("GradCAM", "XGradCAM", "LayerCAM"):
        ours = method.get(name.lower()).attribute(model, images, targets)
        pairs = torch.stack([maps.flatten(1), ours.flatten(1)], 1)
        assert all(torch.corrcoef(pair)[0, 1] > 0.999 for pair in pairs if pair[1].max() > 0)
