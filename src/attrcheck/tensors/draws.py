"""Random numbers from the seeds of images: the same alone as in a batch, and drawn once."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from attrcheck.tensors.transfers import sent

KEPT = 8
"""Fields that are remembered: all methods and all steps of a batch ask for the same."""


@functools.lru_cache(maxsize=KEPT)
def uniform_draws(seeds: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """U(0, 1) of a shape for each seed."""
    return torch.stack([torch.rand(shape, generator=_generator(seed)) for seed in seeds])


@functools.lru_cache(maxsize=KEPT)
def normal_draws(seeds: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """N(0, 1) of a shape for each seed."""
    return torch.stack([torch.randn(shape, generator=_generator(seed)) for seed in seeds])


@functools.lru_cache(maxsize=1)
def normal_draws_on(
    device: torch.device, dtype: torch.dtype, seeds: tuple[int, ...], shape: tuple[int, ...]
) -> Tensor:
    """As `normal_draws`, sent to a device once for all steps of a batch."""
    return sent(normal_draws(seeds, shape).to(dtype), device)


@functools.lru_cache(maxsize=KEPT)
def shuffles(seeds: tuple[int, ...], size: int) -> Tensor:
    """A permutation of `size` places for each seed."""
    orders = [np.random.default_rng(seed).permutation(size) for seed in seeds]
    return torch.from_numpy(np.stack(orders))


@contextmanager
def seeded(seed: int, devices: list[torch.device]) -> Iterator[None]:
    """Seed the global generators of torch, numpy and Python, with gradients on; undo it after.

    Torch's default type and number of threads are put back too.
    """
    states = np.random.get_state(), random.getstate()
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    try:
        with torch.random.fork_rng(devices), torch.enable_grad():
            torch.manual_seed(seed)
            np.random.seed(seed % 2**32)
            random.seed(seed)
            yield
    finally:
        np.random.set_state(states[0])
        random.setstate(states[1])
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
