"""Hypothesis' strategies for the scenes that laws are tried in, the simplest first."""

from __future__ import annotations

from hypothesis import strategies as st

from attrcheck.laws.fusion import Scores
from attrcheck.laws.networks import Kind, Network
from attrcheck.laws.removals import KEEPS, Cut
from attrcheck.laws.scenes import KINDS, Scene

NETWORKS = 5
"""Seeds of random networks of each make: those of one law serve the next."""


def scenes() -> st.SearchStrategy[Scene]:
    """The small worlds that laws of protocols are tried in."""
    return st.builds(
        Scene,
        seed=st.integers(0, 2**16),
        count=st.integers(1, 5),
        maps=st.sampled_from(KINDS),
    )


def cuts() -> st.SearchStrategy[Cut]:
    """Images to take pixels from."""
    side = st.integers(2, 12)
    return st.builds(
        Cut,
        seed=st.integers(0, 2**16),
        count=st.integers(1, 4),
        channels=st.sampled_from((1, 3)),
        height=side,
        width=side,
        keep=st.sampled_from(KEEPS),
    )


def networks(kinds: list[Kind]) -> st.SearchStrategy[Network]:
    """Random networks of these kinds, with images."""
    return st.builds(
        Network,
        kind=st.sampled_from(kinds),
        depth=st.integers(1, 2),
        seed=st.integers(0, NETWORKS - 1),
        count=st.integers(1, 3),
    )


@st.composite
def tables(draw: st.DrawFn) -> Scores:
    """Scores of two to six methods in up to five cases; ties are common."""
    methods, cases = draw(st.integers(2, 6)), draw(st.integers(1, 5))
    row = st.tuples(*[st.integers(-4, 4)] * methods)
    rows, higher = st.tuples(*[row] * cases), st.tuples(*[st.booleans()] * cases)
    return Scores(draw(rows), draw(higher))
