"""Networks without batch norm are published to be easier to explain (Hesse et al. 2024)."""

from __future__ import annotations

from attrcheck.checks import check
from attrcheck.checks._design import Design, prefers
from attrcheck.contracts import Lab, Verdict


@check("design_batch_norm", over="suite", default=False)
def design_batch_norm(lab: Lab) -> Verdict:
    """Methods score higher on a network without batch norm than on one with it."""
    return prefers(Design(norm=False), Design(), lab)
