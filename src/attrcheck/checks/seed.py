"""A ranking must not hang on the seed."""

from __future__ import annotations

from attrcheck.cases import Case
from attrcheck.checks import Verdict, check
from attrcheck.checks._stability import alike
from attrcheck.lab import Lab, is_quick


@check("seed", over="cases", fits=is_quick, sampled=True)
def seed(lab: Lab, case: Case) -> Verdict:
    """Another seed, of methods, ties and noise, ranks the methods the same on a few images."""
    other = lab.few(case, seed=lab.settings.seed + 1)
    return alike("under another seed", rank_correlation=lab.rankings(case, other))
