"""Networks without biases are published to be easier to explain (Hesse et al. 2024)."""

from __future__ import annotations

from attrcheck.checks import check
from attrcheck.checks._design import Design, prefers
from attrcheck.contracts import Lab, Verdict


@check("design_bias", over="suite", default=False)
def design_bias(lab: Lab) -> Verdict:
    """Methods score higher on a network without biases; neither has a batch norm."""
    return prefers(Design(norm=False, bias=False), Design(norm=False), lab)
