"""Tables of scores: of given rows, and of any that hypothesis can think of."""

import itertools

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from attrcheck.consistency import LEAST_METHODS
from attrcheck.contracts import Case
from attrcheck.table import Table

NAN = np.nan
# Few values, so that ties are common; a fifth of the scores are absent.
scores_of = st.sampled_from([NAN, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])


def table(rows, cases=None, higher=True, methods=None, tolerance=0.0):
    """The table of these rows; cases are one protocol on models of their own unless said."""
    scores = np.array(rows, dtype=float)
    ids = [f"d-m{index}-p" for index in range(len(scores))] if cases is None else cases
    names = [f"x{index}" for index in range(scores.shape[1])] if methods is None else methods
    upward = np.broadcast_to(np.asarray(higher, dtype=bool), len(scores))
    return Table([Case.of(each) for each in ids], names, scores, upward, tolerance)


@st.composite
def tables(draw, least=1):
    """Up to 2 x 2 x 2 cases and 7 methods, of either direction."""
    ids = [f"d{d}-m{m}-p{p}" for d, m, p in itertools.product("12", "12", "12")]
    cases = draw(st.lists(st.sampled_from(ids), min_size=least, unique=True))
    size = draw(st.integers(LEAST_METHODS, 7))
    rows = draw(arrays(float, (len(cases), size), elements=scores_of))
    return table(rows, cases, draw(arrays(bool, len(cases))))


def slow_correlation(one, other):
    """Spearman's correlation of two rows, the plain way; None where there is none."""
    common = [(a, b) for a, b in zip(one, other, strict=True) if not np.isnan(a + b)]
    if len(common) < 4 or any(len(set(side)) == 1 for side in zip(*common, strict=True)):
        return None
    return float(stats.spearmanr(*zip(*common, strict=True)).statistic)
