"""A ranking must not hang on what removed pixels become."""

from __future__ import annotations

from attrcheck.checks import check
from attrcheck.checks._rankings import alike, both_rankings, copy_with, has_setting
from attrcheck.contracts import Case, Lab, Protocol, Verdict

OTHERS = {"mean": ("blur", "uniform"), "blur": ("mean",), "noisy_linear": ("mean",)}
"""What to put in the place of a removal; any other is compared with the mean."""


def removes(protocol: Protocol) -> bool:
    """Whether there is a removal to change; a model that was trained for one knows no other."""
    return has_setting(protocol, "removal") and not (protocol.tuning or protocol.training_images)


MATTERS = "what removed pixels become matters: mean rank correlation over the sampled cases"


@check(
    "other_removal",
    over="cases",
    fits=removes,
    sampled=True,
    known_failures={
        "deletion": f"{MATTERS} .77",
        "ids": "what removed pixels become matters: .51 with blur on digits-bcos, a case of `full`",
        "lerf": f"{MATTERS} .72",
        "morf": f"{MATTERS} .75",
        "road_lerf": f"{MATTERS} .45",
        "road_morf": f"{MATTERS} .53",
        "soundness": f"{MATTERS} .38",
    },
)
def other_removal(lab: Lab, case: Case) -> Verdict:
    """Another way to take pixels away ranks the methods the same, on a few images."""
    own = lab.evaluation(case).protocol
    rankings = {}
    for name in OTHERS.get(own.removal, ("mean",)):  # type: ignore[attr-defined]
        other = lab.few(case, copy_with(own, removal=name))
        rankings[name] = both_rankings(lab, case, other)
    return alike("when removed pixels become something else", **rankings)
