"""Methods that cost hundreds of passes, as they are, on the networks that are not convolutional."""

import inspect

import pytest
import torch

from attrcheck.datasets import dataset
from attrcheck.graph.preparing import prepare
from attrcheck.methods import method
from tests.worlds import trained_family

pytestmark = pytest.mark.slow

FAMILIES = ["vit", "bcos", "bagnet"]
SLOW = [
    name
    for name in method.select("*")
    if method.get(name).cost >= 200 and not method.get(name).dummy
]
DECLINED = {"vit": {"iba", "input_iba"}, "bcos": {"iba", "input_iba"}, "bagnet": set()}
COUNT, SEEDS = 2, (3, 4)


def subject(family):
    network, images, targets = trained_family(family, COUNT)
    return prepare(network), images, targets


def attribute(name, model, images, targets, seeds=SEEDS):
    offers = {"seeds": seeds, "dataset": dataset.get("shapes").load()}
    found = method.get(name).attribute
    asked = inspect.signature(found).parameters
    return found(model, images, targets, **{k: v for k, v in offers.items() if k in asked})


def test_the_slow_ones_are_among_them():
    assert {"rise", "smoothgrad_ig", "kernel_shap", "lime", "extremal_perturbation"} < set(SLOW)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", SLOW)
def test_as_they_are(name, family):
    model, images, targets = subject(family)
    reason = method.get(name).not_applicable(model)
    if name in DECLINED[family]:
        assert reason
        return
    assert reason is None
    maps = attribute(name, model, images, targets)
    assert maps.shape == (COUNT, 32, 32)
    assert maps.isfinite().all()
    assert (maps.amax((1, 2)) > maps.amin((1, 2))).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["rise", "kernel_shap", "lime"])
def test_seeds_decide(name, family):
    model, images, targets = subject(family)
    maps = attribute(name, model, images, targets)
    assert torch.equal(attribute(name, model, images, targets), maps)
    assert not torch.allclose(attribute(name, model, images, targets, (5, 6)), maps, rtol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_shapley_values_sum_to_the_change(family):
    model, images, targets = subject(family)
    with torch.no_grad():
        change = model(images) - model(torch.zeros_like(images))
    total = attribute("kernel_shap", model, images, targets).sum((1, 2))
    assert torch.allclose(total, change.gather(1, targets[:, None])[:, 0], rtol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_extremal_region_has_its_area_and_keeps_the_class(family):
    model, images, targets = subject(family)
    masks = attribute("extremal_perturbation", model, images, targets)
    assert masks.mean((1, 2)).tolist() == pytest.approx([0.3] * COUNT, abs=0.06)
    with torch.no_grad():
        kept, rest = (model(images * m[:, None]) for m in (masks, 1 - masks))
    assert (kept - rest).gather(1, targets[:, None]).mean() > 0
