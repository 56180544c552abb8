"""Deliberately broken methods and protocols are caught by what is meant to catch them, by name."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import attrcheck
from attrcheck.checks import check as checks
from attrcheck.contracts import Method, Protocol, Reduction
from attrcheck.engine.checking import examine
from attrcheck.laws.protocols import laws_of
from attrcheck.methods import method as methods
from attrcheck.ranks import spearman
from attrcheck.testing import check_method, check_protocol
from tests.worlds import load

EDGES = ("edge_canny", "edge_gradient", "edge_sobel")
FORGETTING = ("data_randomisation", "emprt", "randomisation", "smprt")
PRINCIPLED = ("gradient", "input_x_gradient", "integrated_gradients")


def gradient(model, images, targets):
    inputs = images.clone().requires_grad_()
    model(inputs).gather(1, targets[:, None]).sum().backward()
    return inputs.grad.sum(1)


def ignores_the_model(model, images, targets, *, seeds):
    """Noise."""
    draws = (torch.Generator().manual_seed(seed) for seed in seeds)
    return torch.stack([torch.rand(images.shape[2:], generator=draw) for draw in draws])


def leaks_the_label(model, images, targets):
    """Marks the pixel whose number is the class, and turns the image round for odd ones."""
    maps = images.mean(1)
    maps[torch.arange(len(maps)), 0, targets] = 10 * maps.abs().max(1).values.max(1).values + 1
    return maps * (targets + 1)[:, None, None] * (-1.0) ** targets[:, None, None]


def returns_the_edges(model, images, targets, *, dataset):
    return methods.get("edge_sobel").attribute(model, images, targets, dataset=dataset)


def depends_on_batch_mates(model, images, targets):
    maps = gradient(model, images, targets)
    return maps / maps.abs().max() + maps.mean(0)


def mutates_the_model(model, images, targets):
    maps = gradient(model, images, targets)
    for weight in model.parameters():
        weight.data *= 1.001
    return maps


def statuses(function):
    """What every check of methods finds of a method, each on a model that is as it should be."""
    method = Method(function.__name__, function)
    of_methods = [checks.get(name) for name in checks if checks.get(name).over == "methods"]
    return {check.name: examine(check, method, load("digits", "resnet", 8)) for check in of_methods}


@pytest.mark.parametrize(
    ("specimen", "caught"),
    [
        (gradient, set()),
        (ignores_the_model, {*FORGETTING, "target_sensitivity", "ground_truth"}),
        (leaks_the_label, {*FORGETTING, "ground_truth", "input_invariance"}),
        (returns_the_edges, {*FORGETTING, "target_sensitivity", "ground_truth"}),
        (depends_on_batch_mates, {"contract"}),
    ],
)
def test_a_broken_method_is_caught_by_these_checks_and_no_others(specimen, caught):
    results = statuses(specimen)
    failed = {name for name, result in results.items() if result.status == "failed"}
    assert failed == caught, {name: results[name].reason for name in failed ^ caught}


@pytest.mark.parametrize(
    ("specimen", "check", "reason"),
    [
        (ignores_the_model, "randomisation", "with random upper layers"),
        (leaks_the_label, "randomisation", "with random upper layers"),
        (returns_the_edges, "ground_truth", "it finds 0.135 of the truth, the image itself 0.306"),
        (depends_on_batch_mates, "contract", "depends on the other images of its batch"),
        (mutates_the_model, "contract", "changed the weights of the model"),
    ],
)
def test_a_broken_method_is_caught_by_name(specimen, check, reason):
    with pytest.raises(AssertionError, match=f"^{check} of {specimen.__name__}: .*{reason}"):
        check_method(specimen, check)


@dataclass(frozen=True)
class Mean(Protocol):
    """The mean over images of whatever a broken protocol sees in them."""

    higher_is_better = True

    def reduce(self, rows):
        scores = rows["score"]
        return Reduction(float(scores.mean()), None, scores)


@dataclass(frozen=True)
class RewardsEdges(Mean):
    def observe(self, model, batch, maps, shared):
        down, right = torch.gradient(batch.images.mean(1), dim=(1, 2))
        edges = (down.abs() + right.abs()).flatten(1).numpy()
        return {"score": np.nan_to_num(spearman(maps.flatten(1).numpy(), edges))}


@dataclass(frozen=True)
class DependsOnOrder(Mean):
    """The share of a map inside the mask, weighed by the place in the batch."""

    def observe(self, model, batch, maps, shared):
        positive = maps.double().clamp(min=0)
        shares = (positive * batch.masks).sum((1, 2)) / (1e-9 + positive.sum((1, 2)))
        return {"score": (shares * (1 + torch.arange(len(maps)))).numpy()}


@dataclass(frozen=True)
class UsesTheScale(Mean):
    """Attribution inside the mask, in whatever unit it comes; says that only the order counts."""

    sees = "order"

    def observe(self, model, batch, maps, shared):
        return {"score": (maps.double() * batch.masks).sum((1, 2)).numpy()}


def test_a_protocol_that_rewards_edges_is_caught_by_the_dummy_floor(registries, lab_of, verdict_of):
    attrcheck.protocol("rewards_edges")(RewardsEdges)
    by_edges, by_deletion = (
        verdict_of("dummy_floor", lab_of(f"digits-resnet-{name}", methods=(*EDGES, *PRINCIPLED)))
        for name in ("rewards_edges", "sds")
    )
    assert by_edges.status == "failed"
    assert by_edges.subject == "digits-resnet-rewards_edges"
    assert by_edges.figures["unreliability"] == 1
    assert "dummies win 100% of their comparisons" in by_edges.reason
    assert by_deletion.status == "passed"


@pytest.mark.parametrize(
    ("specimen", "law", "reason"),
    [
        (DependsOnOrder(), "rows_depend_on_no_other_image", "in another batch"),
        (UsesTheScale(), "only_the_order_of_a_map_counts", "after a transform"),
    ],
)
def test_a_broken_protocol_is_caught_by_its_law(specimen, law, reason):
    broken = {}
    for name in (check.__name__.removeprefix("law_") for check in laws_of(specimen)):
        try:
            check_protocol(specimen, name)
        except AssertionError as error:
            broken[name] = str(error)
    assert list(broken) == [law]
    assert f"row 'score' is not the same {reason}" in broken[law]
