"""F-Fidelity: random, bounded removal inside and outside of what a map explains."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from attrcheck.contracts import Batch, Tuning
from attrcheck.datasets.digits import digits
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.f_fidelity import FineTunedFidelity
from attrcheck.protocols.order import ranks_of
from attrcheck.protocols.responses import responses
from attrcheck.training.finetuning import MASKS, Deletion

SEEDS = (3, 8)


class Left(nn.Module):
    """The first logit is the sum of the left half, the other is zero."""

    def forward(self, images):
        seen = images[..., : images.shape[3] // 2].sum((1, 2, 3))
        return torch.stack([seen, torch.zeros_like(seen)], 1)


def scored(protocol, maps):
    images, labels = torch.ones(len(maps), 1, *maps.shape[1:]), torch.zeros(len(maps)).long()
    seeds = SEEDS[: len(maps)]
    batch = Batch(images, labels, seeds, responses(Left(), images, labels))
    rows = protocol.observe(Left(), batch, maps, {})
    return protocol.reduce(rows), rows


def halves(side=8):
    """A map that is high on the left, in an order of its own."""
    values = torch.arange(float(side * side)).view(1, side, side)
    values[..., side // 2 :] -= 100
    return values


def test_the_score_is_what_the_explained_part_costs_more_than_the_rest():
    protocol = FineTunedFidelity(at=(1, 2), of=4, samples=3, measure="logit")
    right, rows = scored(protocol, halves())
    wrong, _ = scored(protocol, -halves())
    # Of the upper quarter, 16 pixels, 8 may go, and of the rest 24; but no more than 6 of the 64.
    # On the left each costs one; of the rest of a quarter, a third lies there.
    assert rows["logit"].shape == (1, 3 * 2 * 2)
    left = rows["logit"].reshape(3, 2, 2)
    assert (left[:, :, 0] == 32 - 6).all()
    assert (left[:, 1, 1] == 32).all()  # half of the pixels explained: the rest is what is not seen
    assert ((left[:, 0, 1] > 26) & (left[:, 0, 1] < 32)).all()
    expected = np.mean([left[:, 0, 1].mean() - 26, 6])
    assert right.score == pytest.approx(expected)
    assert wrong.score < 0 < right.score
    assert right.curve[0] == [0.25, 0.5]


@settings(max_examples=25, deadline=None)
@given(
    side=st.integers(3, 9),
    alpha=st.sampled_from([0.1, 0.5, 1.0]),
    beta=st.sampled_from([0.05, 0.1, 0.4]),
    seed=st.integers(0, 99),
)
def test_no_more_than_the_bound_is_removed_and_only_where_it_should(side, alpha, beta, seed):
    protocol = FineTunedFidelity(at=(1, 5, 9), samples=2, alpha=alpha, beta=beta)
    maps = torch.rand(2, side, side, generator=torch.Generator().manual_seed(seed))
    ranks, pixels = ranks_of(maps, SEEDS), side * side
    masks = list(protocol.removed(ranks, SEEDS))
    assert len(masks) == 2 * 3 * 2
    for at, gone in enumerate(masks):
        size = (2 * pixels * protocol.at[at // 2 % 3] + 10) // 20
        explained = ranks >= pixels - size
        part, count = (explained, size) if at % 2 == 0 else (~explained, pixels - size)
        assert not (gone & ~part).any()
        assert (gone.sum((1, 2)) == min(int(alpha * count), int(beta * pixels))).all()
    alone = list(protocol.removed(ranks[1:], SEEDS[1:]))
    assert all(torch.equal(one[1:], other) for one, other in zip(masks, alone, strict=True))


def test_samples_differ_and_the_seed_decides_them():
    protocol = FineTunedFidelity(at=(5,), samples=2)
    ranks = ranks_of(halves(), SEEDS[:1])
    first, again, other = (
        list(protocol.removed(ranks, seeds)) for seeds in (SEEDS[:1], SEEDS[:1], SEEDS[1:])
    )
    assert all(map(torch.equal, first, again))
    assert not any(map(torch.equal, first, other))
    assert not torch.equal(first[0], first[2])


def test_the_model_learns_to_lose_what_is_removed():
    protocol = protocols.get("f_fidelity").make("default")
    assert protocol.tuning == Tuning(removal="mean", share=0.1)
    assert protocol.tuning.key == "tuned.mean_share_0.1"
    assert Tuning().key == "tuned.mean_4"
    assert protocol.most_images == 20


def test_models_lose_sets_of_pixels_up_to_the_share():
    delete = Deletion.of(digits().head(1), Tuning(share=0.1), torch.device("cpu"))
    lost = (~delete.keep).flatten(1).double().mean(1)
    assert len(lost) == MASKS
    assert 0 < lost.min() < 0.01
    assert 0.09 < lost.max() <= 0.1
    assert lost.mean() == pytest.approx(0.05, abs=0.01)
