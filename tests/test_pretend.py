"""The pretended GPU refuses what CUDA refuses, and counts what CUDA would be waited for."""

import copy

import pytest
import torch
from torch import nn

from tests.pretend import DeviceError, pretended_gpu

HOST = torch.ones(2, 3)


@pytest.fixture
def gpu():
    with pretended_gpu(count=2, free=100) as device:
        yield device


def waits(gpu, work):
    """How often the device is waited for in a piece of work."""
    gpu.clear()
    work()
    return gpu.waits.total()


def test_tensors_say_where_they_are_and_so_do_all_that_are_made_of_them(gpu):
    there = HOST.to("cuda")
    derived = (there, there[0], there.T, there + 1, there.double(), torch.zeros_like(there))
    made = (there.new_zeros(2), torch.arange(3, device="cuda:0"), copy.deepcopy(there))
    assert all(str(tensor.device) == "cuda:0" and tensor.is_cuda for tensor in derived + made)
    assert str(HOST.to("cuda:1").device) == "cuda:1"
    assert not HOST.is_cuda
    assert not there.cpu().is_cuda
    assert not there.new_zeros(2, device="cpu").is_cuda
    assert there.to("cuda") is there


def test_networks_and_gradients_are_there_too(gpu):
    network = nn.Linear(3, 2).to("cuda")
    inputs = HOST.to("cuda").requires_grad_()
    network(inputs).sum().backward()
    assert inputs.grad.is_cuda
    assert network.weight.grad.is_cuda
    with torch.inference_mode():
        assert network(inputs).is_cuda


REFUSED = {
    "a sum": lambda there: there + HOST,
    "a product": lambda there: there @ HOST.T,
    "joined": lambda there: torch.cat([there, HOST]),
    "written elsewhere": lambda there: torch.add(there, there, out=HOST.clone()),
    "an index": lambda there: HOST[there[:, 0].long()],
    "a generator": lambda there: there.normal_(generator=torch.Generator()),
    "a draw": lambda there: torch.rand(2, device="cuda", generator=torch.Generator()),
}


@pytest.mark.parametrize("work", REFUSED.values(), ids=REFUSED)
def test_what_cuda_refuses_is_refused(gpu, work):
    with pytest.raises(DeviceError, match="cpu"):
        work(HOST.to("cuda"))
    with torch.inference_mode(), pytest.raises(DeviceError, match="cpu"):
        work(HOST.to("cuda"))


def test_arrays_are_of_the_cpu(gpu):
    with pytest.raises(TypeError, match="cuda:0"):
        HOST.to("cuda").numpy()


def test_scalars_and_indices_of_the_cpu_are_taken(gpu):
    there = HOST.to("cuda")
    assert (there * torch.tensor(2.0)).is_cuda
    assert waits(gpu, lambda: there[torch.tensor([0, 1])]) == 1


def test_what_waits_is_counted(gpu):
    there, mask = HOST.to("cuda"), HOST.to("cuda") > 0
    ones = {
        "copies": (lambda: HOST.to("cuda"), lambda: there.cpu(), lambda: HOST.clone().copy_(there)),
        "answers": (lambda: there.sum().item(), lambda: bool(mask.any()), lambda: there.tolist()),
        "sizes": (lambda: there.nonzero(), lambda: there[mask], lambda: there[[0, 1]]),
        "made": (lambda: torch.tensor([1.0], device="cuda"), lambda: there.new_tensor([1.0])),
        "checks": (lambda: torch.equal(there, there), lambda: torch.linalg.cholesky(EYE.to(there))),
    }
    assert {kind: [waits(gpu, work) for work in works] for kind, works in ones.items()} == {
        **{kind: [1] * len(works) for kind, works in ones.items()},
        "checks": [1, 2],  # a copy, and the check
    }
    free = (
        lambda: there * 2 + there,
        lambda: there.masked_fill(mask, 0),
        lambda: torch.full((2,), 3.0, device="cuda"),
        lambda: HOST.to("cuda", non_blocking=True),
        lambda: torch.linalg.cholesky_ex(there[:, :2] + torch.eye(2, device="cuda")),
    )
    assert [waits(gpu, work) for work in free] == [0] * len(free)


EYE = torch.eye(2)


def test_a_copy_that_does_not_block_arrives_with_the_next_wait(gpu):
    arrived = HOST.to("cuda").to("cpu", non_blocking=True)
    assert arrived.isnan().all()
    torch.cuda.current_stream("cuda:0").synchronize()
    assert torch.equal(arrived, HOST)


def test_nothing_is_left_behind(gpu):
    assert torch.cuda.device_count() == 2
    assert torch.cuda.mem_get_info("cuda:1")[0] == 100


def test_outside_there_is_no_such_device():
    before = torch.Tensor.to, torch.zeros
    with pretended_gpu() as gpu:
        there = HOST.to("cuda")
        _ = there[0] + 1
        assert gpu.launches == 1
    assert (torch.Tensor.to, torch.zeros) == before
    assert not there.is_cuda
    assert torch.cuda.device_count() == 0
