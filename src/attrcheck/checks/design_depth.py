"""Shallow networks are published to be easier to explain (Hesse et al. 2024)."""

from __future__ import annotations

from attrcheck.checks import check
from attrcheck.checks._design import Design, prefers
from attrcheck.contracts import Lab, Verdict


@check("design_depth", over="suite", default=False)
def design_depth(lab: Lab) -> Verdict:
    """Methods score higher on a network of 4 convolutions than on one of 8."""
    return prefers(Design(), Design(depth=8), lab)
