"""Batches of one size, smaller only if memory demands it."""

import pytest
import torch
from torch import nn

from attrcheck.tensors.batching import in_equal_batches, limited_to


def batches(count, most=1000, budget=None):
    """The rows of every batch that succeeded, and how many failed."""
    images = torch.arange(float(count)).view(-1, 1, 1, 1).repeat(1, 3, 32, 32)
    seen, failed = [], []

    def work(rows):
        if len(rows) > most:
            failed.append(len(rows))
            raise torch.OutOfMemoryError("out of memory")
        seen.append(rows.tolist())
        return images[rows, 0]

    with limited_to(budget):
        found = in_equal_batches(work, nn.Flatten(), images)
    assert torch.equal(found, images[:, 0])
    return seen, failed


@pytest.mark.parametrize("count", [1, 15, 16, 17, 40, 64, 70])
def test_all_are_of_sixteen(count):
    seen, failed = batches(count)
    assert {len(rows) for rows in seen} == {16}
    assert len(seen) == -(-count // 16)
    assert not failed


def test_the_last_is_filled_up_with_the_last_image():
    assert batches(18)[0] == [list(range(16)), [16] + [17] * 15]


@pytest.mark.parametrize(("most", "left"), [(15, 8), (8, 8), (5, 4), (1, 1)])
def test_halved_when_memory_runs_out(most, left):
    seen, failed = batches(20, most)
    assert {len(rows) for rows in seen} == {left}
    assert len(seen) == -(-20 // left)
    assert set(failed) == {size for size in (16, 8, 4, 2) if size > most}


def test_what_does_not_fit_at_all_is_an_error():
    with pytest.raises(torch.OutOfMemoryError):
        batches(3, most=0)


def test_the_budget_sets_the_size():
    # A sample keeps its output only; that is counted twice.
    seen, _ = batches(10, budget=3 * 2 * 3 * 32 * 32 * 4)
    assert {len(rows) for rows in seen} == {3}
