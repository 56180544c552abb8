"""Methods and protocols on a pretended GPU: no tensor out of place, few waits, the same maps."""

import copy
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import pytest
import torch
from torch import nn

from attrcheck.adapters.vision import torchvision
from attrcheck.contracts import Dataset
from attrcheck.engine.attribution import Reattribution, attribute_batch, not_applicable, unchanged
from attrcheck.engine.loading import Loader
from attrcheck.engine.observing import observe, observe_intact, observe_shared
from attrcheck.engine.pairs import pair_of
from attrcheck.methods import extremal_perturbation, integrated, method, paths, perturbation
from attrcheck.models import model
from attrcheck.models.resnet import Block
from attrcheck.protocols import protocol
from attrcheck.protocols.soundness import Soundness
from attrcheck.training.loop import Recipe, trained
from tests.pretend import pretended_gpu
from tests.worlds import FAMILIES, Tiny, enliven, smooth_images

GPU = "cuda:0"
SIDE, COUNT = 16, 3
WARM, PART = slice(0, 1), slice(1, COUNT)
"""What is made once for a model is made with the first batch; the second is the one that counts."""
MOST = 5
"""Waits of a method per batch."""
BRIEF = {"iba": {"steps": 2, "samples": 2}, "input_iba": {"steps": 2, "samples": 2}}
"""Settings of methods that would take long."""
SAME = ("sds_8", "idsds_2", "idsds_8", "idsds_blur", "idsds_random")
"""Protocols that do nothing that others do not do, more often."""
IMPUTING = ("completeness", "road_lerf", "road_morf", "soundness")


def residual():
    layers = (nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU(), Block(4, 4), Block(4, 8, 2))
    return enliven(
        nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)), SIDE
    )


def tokens():
    sizes = (SIDE, 4, 2, 2, 8, 16)  # image, patch, layers, heads, width, hidden
    network = torchvision.models.VisionTransformer(*sizes, num_classes=4)
    nn.init.normal_(network.heads.head.weight)  # zero as it is built
    return network


def family(name):
    return enliven(model.get(name).build(data()), SIDE)


NETWORKS = {
    "residual": residual,
    "tokens": tokens,
    "bagnet": partial(family, "bagnet"),
    "bcos": partial(family, "bcos"),
}


def data():
    images = (smooth_images(COUNT, SIDE) / 6 + 0.5).clamp(0, 1)
    labels, ids = torch.arange(COUNT), tuple(f"image{place}" for place in range(COUNT))
    mean, std = (0.5,) * 3, (0.25,) * 3
    return Dataset("noise", images, labels, 4, mean, std, ids, masks=images[:, 0] > 0.5)


@pytest.fixture(scope="module")
def gpu():
    """One for all tests here, as what is cached on it stays on it."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(extremal_perturbation, "STEPS", 3))
        stack.enter_context(mock.patch.object(integrated, "STEPS", 3))
        stack.enter_context(mock.patch.object(paths, "STEPS", 3))
        stack.enter_context(mock.patch.object(paths, "BLURS", 3))
        stack.enter_context(mock.patch.object(perturbation, "MASKS", 40))
        yield stack.enter_context(pretended_gpu())


@pytest.fixture(scope="module")
def pairs(gpu):
    """By the name of a network, its pair on the CPU and on the GPU."""
    known = {}

    def both(name):
        if name not in known:
            torch.manual_seed(0)
            network = NETWORKS[name]().eval()
            copied = copy.deepcopy(network).to(GPU)
            known[name] = pair_of(network, data(), name, "cpu"), pair_of(copied, data(), name, GPU)
        return known[name]

    return both


def brief(name):
    chosen = method.get(name)
    return replace(chosen, attribute=partial(chosen.attribute, **BRIEF.get(name, {})))


def networks_of(name):
    special = {"bagnet_evidence": ["bagnet"], "bcos_weights": ["bcos"]}
    return special.get(name, ["residual", "tokens"])


def close(found, wanted, share=1e-3):
    """Within a share of the largest value: sums are rounded in another order."""
    size = np.nanmax(np.abs(wanted.astype(np.float64)), initial=1e-30)
    return np.allclose(found / size, wanted / size, rtol=0, atol=share, equal_nan=True)


@pytest.mark.parametrize("name", [name for name in method if not method.get(name).absolute_of])
def test_a_method_waits_five_times_a_batch_at_most_and_its_maps_are_those_of_the_cpu(
    name, gpu, pairs
):
    chosen, tried = brief(name), 0
    for network in networks_of(name):
        here, there = pairs(network)
        if not_applicable(chosen, here):
            assert not_applicable(chosen, there)
            continue
        attribute_batch(chosen, there, WARM, 0)
        gpu.clear()
        maps = attribute_batch(chosen, there, PART, 0)
        assert gpu.waits.total() <= MOST, gpu
        assert close(maps, attribute_batch(chosen, here, PART, 0)), network
        tried += 1
    assert tried


def observed(name, pair, gpu):
    """Rows, passes and waits of a protocol with maps of gradients, and waits for what is shared."""
    chosen = protocol.get(name).make("smoke")
    again = Reattribution(method.get("gradient"), pair, 0)
    maps = attribute_batch(again.method, pair, slice(0, COUNT), 0)
    intact = observe_intact(pair)
    gpu.clear()
    shared = observe_shared(chosen.shared, pair, COUNT, intact, 0) if chosen.shared else {}
    before = gpu.waits.total()
    gpu.clear()
    if chosen.training_images:
        model = nn.ModuleList([pair.predictor] * len(chosen.at))
        batch = pair.batch(slice(0, COUNT), 0, intact)
        rows, passes = chosen.observe(model, batch, torch.from_numpy(maps).to(pair.device), {}), [0]
        gpu.clear()
    else:
        rows, passes = observe(chosen, pair, COUNT, maps, intact, shared, again)
    return {**rows, **shared}, passes, gpu.waits.total(), before


@pytest.mark.parametrize("name", [name for name in protocol if name not in SAME])
def test_a_protocol_waits_twice_a_batch_at_most_and_its_rows_are_those_of_the_cpu(name, gpu, pairs):
    here, there = pairs("residual")
    rows, passes, waits, shared = observed(name, there, gpu)
    steps = 0
    if name in IMPUTING:
        steps = passes[0]  # one wait for each imputation
    elif name == "ids_updated":
        steps = 2 * passes[1] + 1  # those of the method, which makes a graph of this batch
    assert waits <= 2 + steps, gpu
    assert shared <= 2
    wanted = observed(name, here, gpu)[0]
    assert rows.keys() == wanted.keys()
    for row in rows:
        assert close(rows[row], wanted[row]), row


@pytest.mark.slow
def test_an_imputation_is_asked_once_a_step_whether_it_is_done(gpu, pairs):
    pair = pairs("residual")[1]
    maps = torch.rand(COUNT, SIDE, SIDE, generator=torch.Generator().manual_seed(0)).to(GPU)
    batch = pair.batch(slice(0, COUNT), 0, observe_intact(pair))
    gpu.clear()
    # All 96 steps of the paper, from 98 to 3 per cent missing.
    Soundness().observe(pair.predictor, batch, maps, {})
    # Now and then one takes two cycles more than that of the step before, and is asked again.
    assert gpu.waits.total() <= 1 + 1.05 * 96, gpu


def test_a_whole_shard_is_watched_with_one_wait_before_and_after(gpu, pairs):
    pair = pairs("residual")[1]
    gradient = method.get("gradient")
    gpu.clear()
    with unchanged(gradient, pair):
        pass
    assert gpu.waits.total() == 1, gpu


def test_a_network_learns_there(gpu):
    images = smooth_images(8, SIDE).to(GPU)
    labels = torch.arange(8, device=GPU) % 4
    recipe = Recipe(epochs=1, batch=4)
    network = trained(lambda: residual().to(GPU), images, labels, recipe, seed=0)
    assert all(parameter.device.type == "cuda" for parameter in network.parameters())


def test_a_case_has_the_scores_of_the_cpu(gpu, tiny: Tiny):
    wanted = tiny.run().outcomes
    tiny.loader = Loader(GPU)
    outcomes = tiny.run(device=GPU).outcomes
    assert {name: one.score for name, one in outcomes.items()} == {
        name: pytest.approx(one.score) for name, one in wanted.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FAMILIES, "vit", "bagnet", "bcos"])
def test_all_methods_and_protocols_on_the_embedded_networks(name, gpu):
    pair = Loader(GPU).pair("shapes", name, COUNT)
    for method_name in method:
        chosen = brief(method_name)
        if chosen.absolute_of or not_applicable(chosen, pair):
            continue
        attribute_batch(chosen, pair, WARM, 0)
        gpu.clear()
        attribute_batch(chosen, pair, PART, 0)
        assert gpu.waits.total() <= MOST, (method_name, str(gpu))
    for protocol_name in protocol:
        _, passes, waits, _ = observed(protocol_name, pair, gpu)
        assert waits <= 2 + 2 * sum(passes), (protocol_name, str(gpu))
