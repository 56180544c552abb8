"""A pretended CUDA device: tensors of the CPU that say `cuda:0` and must be treated as a GPU's.

What puts a tensor on it is a mark on its storage, which all views share. Within the block

- it does not meet tensors of the CPU, has no `.numpy()`, and takes no generator of the CPU;
- whatever makes a program wait for the device is counted, by kind and line: copies that block,
  `.item()`, `bool()`, `nonzero`, masks as indices, `torch.equal`, synchronising, and their like;
- a copy to the CPU that does not block holds rubbish until something has waited.

Not pretended: how a GPU rounds, its streams, its allocator, its own random numbers.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest import mock

import torch
import torch._dynamo  # imported late, it would stumble over what is patched here
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

HOME = "/src/attrcheck/"
INDEXING = ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index")
FILLING = ("fill", "fill_", "masked_fill", "masked_fill_", "index_fill", "index_fill_")
WAITING = {
    *("_local_scalar_dense", "equal", "nonzero", "masked_select", "bincount", "histc"),
    *("_unique2", "unique_dim", "unique_consecutive", "repeat_interleave"),
    *("_linalg_check_errors", "cholesky_inverse", "linalg_lstsq"),
}
"""What needs an answer of the device: a number, a size, whether it failed."""
FACTORIES = {
    torch: (
        *("tensor", "as_tensor", "zeros", "ones", "full", "empty", "arange", "linspace", "eye"),
        *("rand", "randn", "randint", "randperm"),
        *("zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like"),
    ),
    Tensor: ("new_tensor", "new_zeros", "new_ones", "new_full", "new_empty"),
}
FROM_HOST = ("tensor", "as_tensor", "new_tensor")
"""Those that copy numbers of Python."""


class DeviceError(RuntimeError):
    """What CUDA would refuse."""


def place_of(tensor):
    """The pretended device that a tensor is on, or None."""
    try:
        return getattr(tensor.untyped_storage(), "place", None)
    except (NotImplementedError, RuntimeError):  # sparse, nested
        return None


def put(tensor, device):
    """Mark a tensor as being on a device; None: on the CPU."""
    if tensor.layout is torch.strided:
        tensor.untyped_storage().place = device
    return tensor


class Gpu(TorchDispatchMode):
    """Watches every operation; counts waits and launches."""

    def __init__(self):
        super().__init__()
        self.waits, self.launches = Counter(), 0
        self._late = []

    def __str__(self):
        lines = (f"{count:5} {what}" for what, count in self.waits.most_common())
        return "\n".join([f"{self.waits.total()} waits, {self.launches} launches", *lines])

    def clear(self):
        """Count from zero."""
        self.waits.clear()
        self.launches = 0

    def wait(self, kind):
        """Wait for the device: after that, all copies have arrived."""
        self.waits[f"{kind} at {_line()}"] += 1
        for storage, content in self._late:
            ctypes.memmove(storage.data_ptr(), content, len(content))
        self._late.clear()

    def copy_later(self, tensor):
        """Let the content of a copy arrive with the next wait."""
        storage = tensor.untyped_storage()
        if storage.nbytes():
            content = ctypes.string_at(storage.data_ptr(), storage.nbytes())
            self._late.append((storage, content))
            ctypes.memset(storage.data_ptr(), 0xFF, storage.nbytes())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        parts = tree_leaves((args, kwargs))
        tensors = [part for part in parts if isinstance(part, Tensor)]
        places = [place for place in map(place_of, tensors) if place is not None]
        if not places:
            return func(*args, **kwargs)
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):
            with self:  # whole in inference mode; what it is made of counts
                return func.decompose(*args, **kwargs)
        name = func._schema.name.partition("::")[2]
        self.launches += not func.is_view and name not in ("detach", "alias", "lift_fresh")
        if name == "copy_":
            blocking = not (kwargs.get("non_blocking") or (len(args) > 2 and args[2]))
            if blocking and place_of(args[0]) != place_of(args[1]):
                self.wait("copy")
            return func(*args, **kwargs)
        self._refuse(func, name, args, tensors)
        if any(isinstance(part, torch.Generator) for part in parts):
            raise DeviceError(f"{name} on {places[0]} draws from a generator of the cpu")
        if name in WAITING:
            self.wait(name)
        results = func(*args, **kwargs)
        for result in tree_leaves(results):
            if isinstance(result, Tensor) and place_of(result) is None and not result.is_meta:
                put(result, places[0])
        return results

    def _refuse(self, func, name, args, tensors):
        strange = [tensor for tensor in tensors if place_of(tensor) is None]
        if name in INDEXING and place_of(args[0]) is not None:
            indices = [part for part in args[1] if part is not None]
            for index in indices:
                if place_of(index) is None:
                    self.wait("index of the cpu")
                if index.dtype is torch.bool and not (name != "index" and args[2].dim() == 0):
                    self.wait("mask as index")
            strange = [part for part in strange if all(part is not index for index in indices)]
        scalars = torch.Tag.pointwise in func.tags or name.startswith("_foreach")
        scalars = scalars or name in (*INDEXING, *FILLING)
        if any(tensor.dim() or not scalars for tensor in strange):
            raise DeviceError(f"{func} of tensors on {place_of_any(tensors)} and on the cpu")


def place_of_any(tensors):
    """The pretended device among them."""
    return next(place for place in map(place_of, tensors) if place is not None)


def _line():
    """The innermost line of attrcheck."""
    frame = sys._getframe(1)
    while frame is not None:
        _, home, file = frame.f_code.co_filename.partition(HOME)
        if home:
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


def _methods(gpu):
    """What tensors do in another way where there is a pretended device."""
    original = SimpleNamespace(**{n: getattr(Tensor, n) for n in ("to", "tolist", "__deepcopy__")})
    plain = {name: getattr(Tensor, name) for name in ("device", "is_cuda", "numpy", "__array__")}

    def device(tensor):
        return place_of(tensor) or plain["device"].__get__(tensor)

    def to(tensor, *args, copy=False, **kwargs):
        if args and isinstance(args[0], Tensor):
            args = (args[0].device, args[0].dtype, *args[1:])
        there, dtype, non_blocking, layout = torch._C._nn._parse_to(*args, **kwargs)
        here = place_of(tensor)
        if there is not None and there.type == "meta":
            return original.to(tensor, *args, copy=copy, **kwargs)
        wanted = here if there is None else _full(there)
        kept = {} if layout is None else {"memory_format": layout}
        result = original.to(tensor, dtype or tensor.dtype, copy=copy or wanted != here, **kept)
        if wanted != here:
            put(result, wanted)
            if not non_blocking:
                gpu.wait("copy to the cpu" if wanted is None else "copy to the gpu")
            elif wanted is None:
                gpu.copy_later(result)
        return result

    def refused(name):
        def read(tensor, *args, **kwargs):
            if place := place_of(tensor):
                raise TypeError(f"can't convert {place} device type tensor to numpy")
            return plain[name](tensor, *args, **kwargs)

        return read

    def tolist(tensor):
        if place_of(tensor) is not None:
            gpu.wait("tolist")
        return original.tolist(tensor)

    def deepcopy(tensor, memo):
        with _disable_current_modes():  # storages are copied from one to the other
            return put(original.__deepcopy__(tensor, memo), place_of(tensor))

    return {
        "device": property(device),
        "is_cuda": property(lambda tensor: place_of(tensor) is not None),
        "to": to,
        "cpu": lambda tensor, **kwargs: tensor.to("cpu", **kwargs),
        "cuda": lambda tensor, index="cuda", **kwargs: tensor.to(index, **kwargs),
        "numpy": refused("numpy"),
        "__array__": refused("__array__"),
        "tolist": tolist,
        "__deepcopy__": deepcopy,
    }


def _one_hot(labels, count):
    """As torch's own, which makes its zeros where no mode can see for whom."""
    return (labels[..., None] == torch.arange(count, device=labels.device)).long()


def _full(device):
    """None for the CPU; the first GPU where no index is given."""
    device = torch.device(device)
    return None if device.type == "cpu" else torch.device(device.type, device.index or 0)


def _factory(gpu, name, original):
    @functools.wraps(original)
    def make(*args, device=None, **kwargs):
        if name == "new_tensor" and device is None:
            device = args[0].device
        if not isinstance(device, str | torch.device):
            return original(*args, **kwargs, **({} if device is None else {"device": device}))
        if torch.device(device).type not in ("cpu", "cuda"):
            return original(*args, device=device, **kwargs)
        place = _full(device)
        if place is not None and kwargs.get("generator") is not None:
            raise DeviceError(f"{name} on {place} draws from a generator of the cpu")
        if place is not None and name in FROM_HOST:
            gpu.wait("copy to the gpu")
        return put(original(*args, device="cpu", **kwargs), place)

    return make


@contextmanager
def pretended_gpu(count=1, free=2**34):
    """Within this block there are `count` CUDA devices with `free` bytes each."""
    gpu = Gpu()
    stream = SimpleNamespace(synchronize=lambda: gpu.wait("synchronize"))
    driver = {
        "is_available": lambda: count > 0,
        "device_count": lambda: count,
        "current_device": lambda: 0,
        "current_stream": lambda device=None: stream,
        "synchronize": lambda device=None: gpu.wait("synchronize"),
        "mem_get_info": lambda device=None: (free, free),
        **dict.fromkeys(("memory_reserved", "memory_allocated"), lambda device=None: 0),
        "get_rng_state": lambda device=None: torch.zeros(16, dtype=torch.uint8),
        **dict.fromkeys(("_lazy_init", "empty_cache", "set_rng_state"), lambda *args: None),
        **dict.fromkeys(("manual_seed", "manual_seed_all"), lambda seed: None),
    }
    with ExitStack() as stack:
        for name, fake in driver.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, fake))
        for owner, names in FACTORIES.items():
            for name in names:
                fake = _factory(gpu, name, getattr(owner, name))
                stack.enter_context(mock.patch.object(owner, name, fake))
        stack.enter_context(mock.patch.object(torch.nn.functional, "one_hot", _one_hot))
        for name, fake in _methods(gpu).items():
            stack.enter_context(mock.patch.object(Tensor, name, fake))
        yield stack.enter_context(gpu)
