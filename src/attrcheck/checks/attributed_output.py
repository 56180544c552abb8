"""A ranking must not hang on whether methods explain the logit or its softmax."""

from __future__ import annotations

import copy
import functools

from torch import fx, nn

from attrcheck.checks import check
from attrcheck.checks._rankings import alike, both_rankings, is_quick
from attrcheck.contracts import Case, Lab, Pair, Verdict


@check(
    "attributed_output",
    over="cases",
    fits=is_quick,
    sampled=True,
    known_failures={"soundness": "10 images are too few for it: one sampled case of two fails"},
)
def attributed_output(lab: Lab, case: Case) -> Verdict:
    """Explaining probabilities ranks the methods as explaining logits does, on a few images.

    What is measured stays what it was. Methods that do not apply to a softmax are left out.
    """
    other = lab.few(case, alter=softened)
    reason = "when methods explain the softmax instead of the logit"
    return alike(reason, rank_correlation=both_rankings(lab, case, other))


@functools.lru_cache(maxsize=2)
def softened(pair: Pair) -> Pair:
    """The pair with a softmax behind the network that methods explain."""
    network = _softened(copy.deepcopy(pair.network))
    return pair.altered("softmax", network=network)


def _softened(model: nn.Module) -> nn.Module:
    if not isinstance(model, fx.GraphModule):
        return nn.Sequential(model, nn.Softmax(1))
    model.add_module("attributed_softmax", nn.Softmax(1))
    (output,) = (node for node in model.graph.nodes if node.op == "output")
    with model.graph.inserting_before(output):
        soft = model.graph.call_module("attributed_softmax", (output.args[0],))
    output.args = (soft,)
    model.recompile()
    return model
