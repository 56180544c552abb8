"""Random fields: the same alone as in a batch, of the right law, and drawn once."""

import numpy as np
import pytest
import torch
from scipy import stats

from attrcheck.tensors import draws
from attrcheck.tensors.draws import normal_draws, shuffles, uniform_draws

SEEDS = (3, 2**62, 5)


@pytest.mark.parametrize("draw", [uniform_draws, normal_draws])
def test_a_field_depends_on_its_own_seed_alone(draw):
    together = draw(SEEDS, (2, 4, 4))
    assert together.shape == (3, 2, 4, 4)
    for field, seed in zip(together, SEEDS, strict=True):
        assert torch.equal(field, draw((seed,), (2, 4, 4))[0])
    assert torch.equal(together[[2, 0]], draw((5, 3), (2, 4, 4)))
    assert not torch.equal(together[0], together[1])


def test_the_laws_are_as_named():
    uniform = uniform_draws((1,), (10_000,))[0]
    assert ((uniform >= 0) & (uniform < 1)).all()
    assert stats.kstest(uniform.numpy(), "uniform").pvalue > 0.01
    assert stats.kstest(normal_draws((1,), (10_000,))[0].numpy(), "norm").pvalue > 0.01


def test_the_global_generator_is_left_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = uniform_draws((99,), (3,))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    draws.uniform_draws.cache_clear()
    assert torch.equal(uniform_draws((99,), (3,)), first)


def test_shuffles_are_permutations_one_a_seed():
    together = shuffles(SEEDS, 10)
    for places, seed in zip(together, SEEDS, strict=True):
        assert sorted(places.tolist()) == list(range(10))
        assert places.tolist() == np.random.default_rng(seed).permutation(10).tolist()


def test_what_was_just_drawn_is_not_drawn_again():
    assert uniform_draws(SEEDS, (2, 2)) is uniform_draws(SEEDS, (2, 2))
    assert shuffles(SEEDS, 4) is shuffles(SEEDS, 4)
