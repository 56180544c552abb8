"""A ranking must not hang on the size of the patches."""

from __future__ import annotations

from attrcheck.checks import check
from attrcheck.checks._rankings import alike, both_rankings, copy_with, has_setting
from attrcheck.contracts import Case, Lab, Protocol, Verdict

GRIDS = (2, 4, 8)


def cuts(protocol: Protocol) -> bool:
    """Whether there is a grid to change; a fine-tuned model knows no other than its own."""
    return has_setting(protocol, "grid") and protocol.tuning is None


@check(
    "other_grid",
    over="cases",
    fits=cuts,
    known_failures={
        "sds": "two embedded cases of 16 fail, both of vit: .47 with 2 cells a side, .50 with 8"
    },
)
def other_grid(lab: Lab, case: Case) -> Verdict:
    """Grids of 2, 4 and 8 cells a side rank the methods the same, on a few images."""
    own = lab.evaluation(case)
    rankings = {}
    sides = own.pair.images.shape[2:]
    for grid in GRIDS:
        divides = not any(side % grid for side in sides)
        if divides and grid != own.protocol.grid:  # type: ignore[attr-defined]
            other = lab.few(case, copy_with(own.protocol, grid=grid))
            rankings[f"grid_{grid}"] = both_rankings(lab, case, other)
    if not rankings:
        return Verdict(None, {}, f"no other grid divides images of {' x '.join(map(str, sides))}")
    return alike("on another grid", **rankings)
