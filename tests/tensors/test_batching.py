"""Inner batches: quick, within the budget, and halved when memory runs out all the same."""

import copy
import json
import subprocess
import sys

import pytest
import torch
from torch import nn

from attrcheck.methods import method
from attrcheck.tensors import batching as memory
from attrcheck.tensors.batching import bytes_per_sample, in_batches, limited_to, samples_at_once
from tests.pretend import pretended_gpu

IMAGES = torch.zeros(2, 3, 16, 16)
QUICK = 64 * 3 * 32 * 32 // (3 * 16 * 16)
CPU_SAYS = (
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
    "you tried to allocate 4503599627370496 bytes. Error code 12 (Cannot allocate memory)"
)


@pytest.fixture
def network():
    """Keeps its image (3 KiB), its only activation (8 KiB) and five logits."""
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(2048, 5)]
    return nn.Sequential(*layers).eval().requires_grad_(False)


COST = 2 * (3 * 1024 + 8 * 1024 + 20)


def test_a_sample_costs_twice_what_it_keeps(network):
    assert bytes_per_sample(network, IMAGES) == COST
    # Four times the pixels; the weights of the linear layer, which it keeps too, do not count.
    network[3] = nn.Linear(8192, 5).requires_grad_(False)
    assert bytes_per_sample(network, torch.zeros(1, 3, 32, 32)) == 2 * (44 * 1024 + 20)


def test_trainable_weights_and_buffers_do_not_count():
    layers = [nn.Flatten(), nn.Linear(768, 1000), nn.BatchNorm1d(1000), nn.Linear(1000, 5)]
    network = nn.Sequential(*layers).eval()
    assert bytes_per_sample(network, IMAGES) < 2 * 4 * (768 + 4 * 1000 + 5)


def test_a_cost_is_measured_once_per_shape_and_type(network):
    sizes = []
    network.register_forward_pre_hook(lambda module, inputs: sizes.append(len(inputs[0])))
    for _ in range(2):
        bytes_per_sample(network, IMAGES)
    assert sizes == [1]
    assert bytes_per_sample(network.double(), IMAGES.double()) == 2 * COST
    assert sizes == [1, 1]


@pytest.mark.parametrize(
    ("budget", "size"),
    [(1, 1), (COST - 1, 1), (2 * COST - 1, 1), (2 * COST, 2), (7 * COST, 7), (10**12, QUICK)],
)
def test_the_budget_bounds_a_batch(budget, size, network):
    with limited_to(budget):
        assert samples_at_once(network, IMAGES) == size


def test_without_a_budget_half_of_what_is_free_is_taken(network, monkeypatch):
    monkeypatch.setattr(memory, "free", lambda device: 10 * COST)
    assert samples_at_once(network, IMAGES) == 5
    with limited_to(3 * COST):
        assert samples_at_once(network, IMAGES) == 3
        with limited_to(None):
            assert samples_at_once(network, IMAGES) == 5
        assert samples_at_once(network, IMAGES) == 3
    assert samples_at_once(network, IMAGES) == 5


def test_the_budget_ends_with_its_block(network):
    with pytest.raises(ZeroDivisionError), limited_to(1):
        raise ZeroDivisionError
    assert samples_at_once(network, IMAGES) > 1


def test_what_is_free(monkeypatch):
    device = torch.device("cpu")
    assert 2**20 < memory.free(device) < 2**50

    def unknown(name):
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr("os.sysconf", unknown)
    assert memory.free(device) == memory.ASSUMED


def test_batches_cover_all_samples_in_order(network):
    with limited_to(4 * COST):
        parts = list(in_batches(lambda p: torch.arange(p.start, p.stop), 10, network, IMAGES))
    assert [len(part) for part in parts] == [4, 4, 2]
    assert torch.equal(torch.cat(parts), torch.arange(10))


def failing(limit, error, sizes):
    """Work that raises on more than `limit` samples."""

    def work(part):
        sizes.append(part.stop - part.start)
        if part.stop - part.start > limit:
            raise error
        return torch.arange(part.start, part.stop)

    return work


ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory."),
    RuntimeError(CPU_SAYS),
    RuntimeError("MPS backend out of memory (MPS allocated: 18 GB)"),
    MemoryError(),
]


@pytest.mark.parametrize("error", ERRORS)
def test_batches_are_halved_when_memory_runs_out(error, network):
    sizes = []
    with limited_to(8 * COST):
        parts = list(in_batches(failing(3, error, sizes), 9, network, IMAGES))
    assert sizes == [8, 4, 2, 2, 2, 2, 1]
    assert torch.equal(torch.cat(parts), torch.arange(9))


@pytest.mark.parametrize("error", ERRORS)
def test_one_sample_that_does_not_fit_is_an_error(error, network):
    sizes = []
    with limited_to(2 * COST), pytest.raises(type(error)):
        list(in_batches(failing(0, error, sizes), 9, network, IMAGES))
    assert sizes == [2, 1]


def test_other_errors_are_not_swallowed(network):
    sizes = []
    error = RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    with limited_to(8 * COST), pytest.raises(RuntimeError, match="mat1"):
        list(in_batches(failing(3, error, sizes), 9, network, IMAGES))
    assert sizes == [8]


def test_what_the_cpu_raises_is_recognised():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**50)
    assert memory.exhausted(caught.value)


class Scarce(nn.Module):
    """A network on a device with room for two images."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        if len(x) > 2:
            raise torch.OutOfMemoryError("out of memory")
        return self.network(x)


@pytest.mark.parametrize("name", ["integrated_gradients", "smoothgrad", "smoothgrad_ig"])
def test_methods_go_on_when_memory_runs_out(name, network):
    images = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    targets = torch.tensor([1, 4])
    seeds = {} if name == "integrated_gradients" else {"seeds": (1, 2)}
    attribute = method.get(name).attribute
    wanted = attribute(network, images, targets, **seeds)
    found = attribute(Scarce(network), images, targets, **seeds)
    assert torch.allclose(found, wanted, atol=1e-3 * wanted.abs().max())


SCRIPT = """
import json, re, sys, torch
from attrcheck.tensors import batching as memory
from attrcheck.methods import integrated
from attrcheck.methods.noise import Noise, noisy
from attrcheck.graph.preparing import prepare
from attrcheck.adapters.vision import torchvision

torch.set_num_threads(1)
budget = int(sys.argv[1])
# Without this a CPU would take images of this size one by one, and the budget would never bite.
memory.QUICK_ELEMENTS["cpu"] = 10**9
integrated.STEPS = 13
model = prepare(torchvision.models.resnet50())
images = torch.randn(1, 3, 224, 224)
model(images)
# Not ru_maxrss: a process inherits that from the one that started it.
peak = lambda: 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = peak()
with memory.limited_to(budget):
    size = memory.samples_at_once(model, images)
    noise = Noise(samples=2)
    target = torch.tensor([7])
    maps = noisy(integrated.integrated_gradients, model, images, target, (1,), noise)
print(json.dumps({"size": size, "bytes": peak() - before, "finite": bool(maps.isfinite().all())}))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_smoothgrad_of_integrated_gradients_keeps_to_two_gigabytes():
    budget = 2 * 10**9
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(budget)], capture_output=True, text=True, check=True
    )
    found = json.loads(run.stdout)
    assert found["finite"]
    assert 12 <= found["size"] <= 40
    assert budget / 4 < found["bytes"] < budget


def test_later_batches_start_with_the_size_that_fitted(network):
    sizes = []
    with limited_to(8 * COST):
        list(in_batches(failing(3, ERRORS[0], sizes), 9, network, IMAGES))
        assert samples_at_once(network, IMAGES) == 2
        sizes.clear()
        list(in_batches(failing(3, ERRORS[0], sizes), 4, network, IMAGES))
        assert sizes == [2, 2]
        assert samples_at_once(copy.deepcopy(network), IMAGES) == 8


def test_processes_share_what_is_free(network, monkeypatch):
    monkeypatch.setattr(memory, "free", lambda device: 24 * COST)
    sizes = {}
    for sharers in (1, 2, 3, 100):
        with limited_to(None, sharers):
            sizes[sharers] = samples_at_once(network, IMAGES)
    assert sizes == {1: 12, 2: 6, 3: 4, 100: 1}


def test_what_torch_keeps_for_this_process_is_free(monkeypatch):
    with pretended_gpu(free=1000):
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 500)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 200)
        assert memory.free(torch.device("cuda:0")) == 1300
