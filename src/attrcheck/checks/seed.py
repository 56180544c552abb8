"""A ranking must not hang on the seed."""

from __future__ import annotations

from attrcheck.checks import check
from attrcheck.checks._rankings import alike, both_rankings, is_quick
from attrcheck.contracts import Case, Lab, Verdict


@check("seed", over="cases", fits=is_quick, sampled=True)
def seed(lab: Lab, case: Case) -> Verdict:
    """Another seed, of methods, ties and noise, ranks the methods the same on a few images."""
    other = lab.few(case, seed=lab.settings.seed + 1)
    return alike("under another seed", rank_correlation=both_rankings(lab, case, other))
