"""The options of large runs: what is computed here, on which device, and what may be kept."""

from __future__ import annotations

import importlib.util
import re
from math import inf
from typing import TYPE_CHECKING

import pytest

from attrcheck.engine.settings import BLOCK
from attrcheck.plugin import options

if TYPE_CHECKING:
    from attrcheck.contracts import Precision

SIZE = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>[KMGT]?)i?B?", re.IGNORECASE)
TASK = re.compile(r"(\d+)/(\d+)")
DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
PRECISIONS: tuple[Precision, ...] = ("float32", "tf32", "bfloat16")
EXECUTORS = ("local", "ray")


def task(config: pytest.Config) -> tuple[int, int] | None:
    """Which of how many tasks this run is, from 1; None: it is all of them."""
    text = options.value(config, "shard")
    if not text:
        return None
    if match := TASK.fullmatch(text):
        which, tasks = int(match[1]), int(match[2])
        if 1 <= which <= tasks:
            return which, tasks
    raise pytest.UsageError(f"--attr-shard takes I/N with I from 1 to N, such as 3/16, not {text}")


def shard_size(config: pytest.Config) -> int:
    """Images of a shard."""
    size: int = options.value(config, "shard_size")
    if size < BLOCK or size % BLOCK:
        raise pytest.UsageError(f"--attr-shard-size takes a multiple of {BLOCK}, not {size}")
    return size


def keep_maps(config: pytest.Config) -> int | None:
    """Bytes of maps that stay in the store; None: all of them."""
    text = options.value(config, "keep_maps")
    known = {"all": None, "none": 0}
    if text in known:
        return known[text]
    if (size := bytes_of(text)) is None:
        raise pytest.UsageError(
            f"--attr-keep-maps takes all, none or a size such as 10GB, not {text}"
        )
    return size


def precision(config: pytest.Config) -> Precision:
    """With how many digits predictors compute."""
    name = options.value(config, "precision")
    for known in PRECISIONS:
        if name == known:
            return known
    raise pytest.UsageError(f"--attr-precision takes {', '.join(PRECISIONS)}, not {name}")


def check_device(config: pytest.Config) -> None:
    """A usage error for a device that is no device, or not here, or without the precision."""
    name, digits = options.value(config, "device"), precision(config)
    if not DEVICE.fullmatch(name):
        raise pytest.UsageError(f"--attr-device takes auto, cpu, cuda, cuda:K or mps, not {name}")
    if name not in ("auto", "cpu") or digits == "tf32":
        from attrcheck.plugin import devices  # with torch

        devices.check(name, digits)


def memory(config: pytest.Config) -> int | None:
    """Bytes for inner batches, or None where no size is given."""
    text = options.value(config, "memory")
    if text is None:
        return None
    if (size := bytes_of(text)) is None:
        raise pytest.UsageError(f"--attr-memory takes a size such as 2GB or 512MB, not {text}")
    return size


def bytes_of(text: str) -> int | None:
    """A size such as 2GB in bytes; None if it is not one."""
    if not (size := SIZE.fullmatch(text)):
        return None
    return int(float(size["number"]) * 1024 ** " KMGT".index(size["unit"].upper() or " "))


def executor(config: pytest.Config) -> str:
    """Who computes shards."""
    who: str = options.value(config, "executor")
    if who not in EXECUTORS:
        raise pytest.UsageError(f"--attr-executor takes {' or '.join(EXECUTORS)}, not {who}")
    return who


def ray_share(config: pytest.Config) -> tuple[float, float]:
    """CPUs and GPUs of a Ray task."""
    cpus, gpus = _amount(config, "ray_cpus"), _amount(config, "ray_gpus")
    if not cpus:
        raise pytest.UsageError("--attr-ray-cpus must be more than 0")
    return cpus, gpus


def _amount(config: pytest.Config, name: str) -> float:
    """A whole number, or a part of 1, as Ray deals things out."""
    text = str(options.value(config, name))
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < inf or (number > 1 and number % 1):
        flag = f"--attr-{name.replace('_', '-')}"
        raise pytest.UsageError(f"{flag} takes a whole number or a part of 1, not {text}")
    return number


def _check_ray(config: pytest.Config) -> None:
    """A usage error if Ray cannot be had, or for what would compute at the same time."""
    if importlib.util.find_spec("ray") is None:
        raise pytest.UsageError("--attr-executor ray needs Ray: pip install 'attrcheck[ray]'")
    if config.getoption("tx", None):
        raise pytest.UsageError("--attr-executor ray with -n: Ray has the workers; leave out -n")
    if task(config) is not None:
        raise pytest.UsageError(
            "--attr-executor ray with --attr-shard: Ray deals out all shards; take one of them"
        )
    ray_share(config)
    options.number(config, "ray_tasks", 1)


def check(config: pytest.Config) -> None:
    """A usage error for any value that is wrong, and for gates that a task cannot decide."""
    check_device(config)
    memory(config)
    shard_size(config)
    keep_maps(config)
    if executor(config) == "ray":
        _check_ray(config)
    if task(config) is None:
        return
    if options.value(config, "gate") and options.gates_from(config).startswith("command line"):
        raise pytest.UsageError(
            "--attr-gate with --attr-shard: one task has no board to decide a gate on; give gates "
            "to the run after `attrcheck merge`"
        )
