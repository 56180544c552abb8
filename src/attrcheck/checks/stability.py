"""A ranking must not depend on what does not matter: seed, images, output, removal, grid, epoch.

Each check changes one such choice and compares the two rankings of the methods.
"""

from __future__ import annotations

import copy
import functools

from torch import Tensor, fx, nn

from attrcheck.checks import check
from attrcheck.checks._checkpoints import turned_back
from attrcheck.checks._rankings import (
    Rankings,
    alike,
    both_rankings,
    copy_with,
    first,
    has_setting,
    is_quick,
    scores,
)
from attrcheck.contracts import Case, Lab, Later, Pair, Protocol, Verdict
from attrcheck.models import model as models
from attrcheck.protocols.ablation import TENTHS, Ablation
from attrcheck.training.weights import CHECKPOINTS

OTHER_REMOVALS = {"mean": ("blur", "uniform"), "blur": ("mean",), "noisy_linear": ("mean",)}
"""What a removal is compared with; one that is not listed, with the mean."""
GRIDS = (2, 4, 8)
"""Cells per side."""


def removes(protocol: Protocol) -> bool:
    """Whether there is a removal to change; a model that was trained for one knows no other."""
    return has_setting(protocol, "removal") and not (protocol.tuning or protocol.training_images)


def cuts(protocol: Protocol) -> bool:
    """Whether there is a grid to change; a fine-tuned model knows no other than its own."""
    return has_setting(protocol, "grid") and protocol.tuning is None


def published(protocol: Protocol) -> bool:
    """Whether it is one of the two that the paper looked at along the training of a model."""
    if not isinstance(protocol, Ablation):
        return False
    return (protocol.removal, protocol.at, protocol.measure) == ("mean", TENTHS, "correct")


@check("seed", over="cases", fits=is_quick, sampled=True)
def seed(lab: Lab, case: Case) -> Verdict:
    """Another seed, of methods, ties and noise, ranks the methods the same on a few images."""
    other = lab.few(case, seed=lab.settings.seed + 1)
    return alike("under another seed", rank_correlation=both_rankings(lab, case, other))


@check("half_images", over="cases")
def half_images(lab: Lab, case: Case) -> Verdict:
    """Both halves of the images rank the methods alike; no pass of the model."""
    evaluation = lab.evaluation(case)
    rows = evaluation.rows()
    halves = [first(rows, slice(start, evaluation.images, 2)) for start in (0, 1)]
    if evaluation.images < 2:
        return Verdict(None, {}, "one image has no halves")
    one, other = (scores(evaluation.protocol, half) for half in halves)
    return alike("with the other half of the images", rank_correlation=Rankings(one, other))


@check("measured_output", over="cases", fits=lambda protocol: has_setting(protocol, "measure"))
def measured_output(lab: Lab, case: Case) -> Verdict:
    """Measuring logits ranks the methods as measuring probabilities does; no pass of the model."""
    evaluation = lab.evaluation(case)
    rows = evaluation.rows()
    one, other = (
        scores(copy_with(evaluation.protocol, measure=measure), rows)
        for measure in ("logit", "probability")
    )
    reason = "when the softmax is measured instead of the logit"
    return alike(reason, rank_correlation=Rankings(one, other))


@check("attributed_output", over="cases", fits=is_quick, sampled=True)
def attributed_output(lab: Lab, case: Case) -> Verdict:
    """Explaining probabilities ranks the methods as explaining logits does, on a few images.

    What is measured stays what it was. Methods that do not apply to a softmax are left out.
    """
    other = lab.few(case, alter=softened)
    reason = "when methods explain the softmax instead of the logit"
    return alike(reason, rank_correlation=both_rankings(lab, case, other))


@check("other_removal", over="cases", fits=removes, sampled=True)
def other_removal(lab: Lab, case: Case) -> Verdict:
    """Another way to take pixels away ranks the methods the same, on a few images."""
    protocol = lab.evaluation(case).protocol
    rankings = {}
    for name in OTHER_REMOVALS.get(protocol.removal, ("mean",)):  # type: ignore[attr-defined]
        other = lab.few(case, copy_with(protocol, removal=name))
        rankings[name] = both_rankings(lab, case, other)
    return alike("when removed pixels become something else", **rankings)


@check("other_grid", over="cases", fits=cuts)
def other_grid(lab: Lab, case: Case) -> Verdict:
    """Grids of 2, 4 and 8 cells per side rank the methods the same, on a few images."""
    evaluation = lab.evaluation(case)
    protocol, sides = evaluation.protocol, evaluation.pair.dataset.images.shape[2:]
    rankings = {}
    for grid in GRIDS:
        divides = not any(side % grid for side in sides)
        if divides and grid != protocol.grid:  # type: ignore[attr-defined]
            other = lab.few(case, copy_with(protocol, grid=grid))
            rankings[f"grid_{grid}"] = both_rankings(lab, case, other)
    if not rankings:
        return Verdict(None, {}, f"no other grid divides images of {' x '.join(map(str, sides))}")
    return alike("on another grid", **rankings)


@check("checkpoints", over="cases", fits=published, sampled=True)
def checkpoints(lab: Lab, case: Case) -> Verdict:
    """Models after a quarter, half and three quarters of training rank the methods as the last.

    On a few images; for embedded models only, whose checkpoints ship with the package.
    """
    if not models.get(case.model).embedded:
        return Verdict(None, {}, "the model has no checkpoints on record")
    rankings = {}
    for percent in CHECKPOINTS[:-1]:
        other = lab.few(case, alter=functools.partial(turned_back, checkpoint=percent))
        rankings[f"at_{percent}"] = both_rankings(lab, case, other)
    return alike("earlier in training", **rankings)


@functools.lru_cache(maxsize=2)
def softened(pair: Pair) -> Pair:
    """The pair with a softmax at the end of the network that methods explain."""

    def original() -> nn.Module:
        network = copy.deepcopy(pair.original)
        network.register_forward_hook(_soft)
        return network

    return pair.altered(
        "softmax",
        network=Later(lambda: _softened(copy.deepcopy(pair.network))),
        original=Later(original),
    )


def _soft(model: nn.Module, images: object, logits: Tensor) -> Tensor:
    return logits.softmax(1)


def _softened(model: nn.Module) -> nn.Module:
    if not isinstance(model, fx.GraphModule):
        return nn.Sequential(model, nn.Softmax(1)).eval()
    model.add_module("attributed_softmax", nn.Softmax(1).eval())
    (output,) = (node for node in model.graph.nodes if node.op == "output")
    with model.graph.inserting_before(output):
        soft = model.graph.call_module("attributed_softmax", (output.args[0],))
    output.args = (soft,)
    model.recompile()
    return model
