"""Responses of a model: read from one pass, stacked by steps, joined by batches."""

import numpy as np
import pytest
import torch

from attrcheck.protocols.responses import joined, responses, stacked
from tests.worlds import linear_model

STEPS = [
    {"correct": np.array([True, False]), "logit": np.array([1.0, 2.0], dtype=np.float32)},
    {"correct": np.array([False, False]), "logit": np.array([3.0, 4.0], dtype=np.float32)},
    {"correct": np.array([True, True]), "logit": np.array([5.0, 6.0], dtype=np.float32)},
]


def test_probability_and_logit_come_from_the_same_pass():
    model = linear_model(torch.ones(1, 2))
    rows = responses(model, torch.tensor([[[[1.0, 0.5]]]]), torch.tensor([1]))
    assert rows["logit"].tolist() == [1.5]
    assert rows["probability"] == pytest.approx(1 / (1 + np.exp(-1.5)))


def test_steps_are_stacked_along_a_second_axis():
    rows = stacked(iter(STEPS))
    assert list(rows) == ["correct", "logit"]
    assert rows["logit"].tolist() == [[1, 3, 5], [2, 4, 6]]
    assert rows["correct"].tolist() == [[True, False, True], [False, False, True]]
    assert (rows["logit"].dtype, rows["correct"].dtype) == (np.float32, bool)


def test_batches_are_joined_along_the_images():
    rows = joined(STEPS[:2])
    assert rows["logit"].tolist() == [1, 2, 3, 4]
    assert rows["correct"].tolist() == [True, False, False, False]
