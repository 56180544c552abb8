"""What is remembered of a model, and when it is forgotten."""

import gc
import weakref

from torch import nn

from attrcheck.tensors.memo import PerModel


def test_each_key_of_each_model_is_made_once():
    memo, made = PerModel(), []

    def make(value):
        return lambda: made.append(value) or value

    one, other = nn.Linear(1, 1), nn.Linear(1, 1)
    for _ in range(2):
        assert memo.get(one, "a", make(1)) == 1
        assert memo.get(one, "b", make(2)) == 2
        assert memo.get(other, "a", make(3)) == 3
    assert made == [1, 2, 3]


def test_nothing_is_a_value_too():
    memo, made = PerModel(), []
    model = nn.Identity()
    for _ in range(2):
        assert memo.get(model, (), lambda: made.append(1)) is None
    assert made == [1]


def test_a_model_is_forgotten_with_all_that_was_made_of_it():
    memo, model = PerModel(), nn.Sequential(nn.Linear(1, 1))
    part, gone = weakref.ref(memo.get(model, (), nn.ReLU)), weakref.ref(model)
    assert len(memo) == 1
    del model
    gc.collect()
    assert gone() is None
    assert part() is None
    assert len(memo) == 0
