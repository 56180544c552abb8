"""To a GPU nothing is waited for; from it all comes at once."""

import numpy as np
import torch

from attrcheck.tensors.transfers import fetched, sent, which_equal
from tests.pretend import pretended_gpu

HOST = torch.arange(6.0).view(2, 3)


def test_what_is_sent_has_the_place_of_another_and_its_type():
    with pretended_gpu() as gpu:
        there = sent(HOST, torch.zeros(1, dtype=torch.float64, device="cuda"))
        kinds = there.dtype, str(there.device), str(sent(HOST, torch.device("cuda:0")).device)
        assert kinds == (torch.float64, "cuda:0", "cuda:0")
        assert not gpu.waits
    assert sent(HOST, HOST) is HOST


def test_what_is_fetched_is_waited_for_once():
    with pretended_gpu() as gpu:
        there = HOST.to("cuda")
        gpu.clear()
        arrays = fetched({"one": there, "two": there > 2, "here": HOST})
        assert gpu.waits.total() == 1
    assert np.array_equal(arrays["one"], HOST.numpy())
    assert arrays["two"].tolist() == [[False, False, False], [True, True, True]]
    assert np.array_equal(arrays["here"], HOST.numpy())
    assert fetched({}) == {}


def test_pairs_are_compared_by_type_shape_and_value():
    others = (HOST.clone(), HOST + 1, HOST.double(), HOST[:1], HOST.to("meta"))
    wanted = [True, False, False, False, False]
    assert which_equal((HOST, other) for other in others) == wanted
    with pretended_gpu() as gpu:
        there = [(HOST.to("cuda"), other.to("cuda")) for other in others[:4]]
        pairs = [*there, (HOST.to("cuda"), HOST), (HOST, HOST)]
        gpu.clear()
        assert which_equal(pairs) == [*wanted[:4], False, True]
        assert gpu.waits.total() == 1
    assert which_equal([]) == []
