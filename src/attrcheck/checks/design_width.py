"""Narrow networks are published to be easier to explain (Hesse et al. 2024)."""

from __future__ import annotations

from attrcheck.checks import check
from attrcheck.checks._design import Design, prefers
from attrcheck.contracts import Lab, Verdict


@check("design_width", over="suite", default=False)
def design_width(lab: Lab) -> Verdict:
    """Methods score higher on a network of 16 channels than on one of 32."""
    return prefers(Design(), Design(width=32), lab)
