"""Batches of one size, smaller only if memory demands it."""

import pytest
import torch
from torch import nn

from attrcheck.contracts import Dataset
from attrcheck.graph.preparing import prepare
from attrcheck.methods import bottleneck
from attrcheck.methods import extremal_perturbation as extremal
from attrcheck.methods._equal import in_equal_batches
from attrcheck.tensors.batching import limited_to
from tests.worlds import random_family, smooth_images


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


class Scarce(nn.Module):
    """A network for which memory runs out beyond four images."""

    def __init__(self, network):
        super().__init__()
        self.network, self.most = network, 0

    def forward(self, x):
        if len(x) > 4:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        self.most = max(self.most, len(x))
        return self.network(x)


def test_extremal_perturbation_goes_on_when_memory_runs_out():
    network, images, targets = random_family("vgg"), smooth_images(6), torch.arange(6)
    model = prepare(network)
    wanted = extremal.extremal_masks(model, images, targets, 5)
    scarce = Scarce(model)
    found = extremal.extremal_masks(scarce, images, targets, 5)
    assert scarce.most == 4
    assert torch.allclose(found, wanted, atol=1e-4)


def test_input_iba_goes_on_when_memory_runs_out(monkeypatch):
    model, images, targets = prepare(random_family("vgg")), smooth_images(6), torch.arange(6)
    known = smooth_images(9, seed=7)
    ids = tuple(map(str, range(9)))
    data = Dataset("toy", known, torch.zeros(9, dtype=torch.int64), 10, (0.0,) * 3, (1.0,) * 3, ids)
    arguments = (images, targets, tuple(range(6)), data, 3, 2)
    wanted = bottleneck.input_gates(model, *arguments)
    sizes, whole = [], bottleneck.class_slope

    def scarce(network, noise, *rest):
        sizes.append(len(noise))
        if len(noise) > 4:
            raise torch.OutOfMemoryError("out of memory")
        return whole(network, noise, *rest)

    monkeypatch.setattr(bottleneck, "class_slope", scarce)
    found = bottleneck.input_gates(model, *arguments)
    assert sorted(set(sizes)) == [4, 8, 16]
    assert torch.allclose(found, wanted, atol=1e-4)
