"""The device that a worker computes on, and how many workers share it; needs torch."""

from __future__ import annotations

import pytest
import torch


def check(name: str, precision: str) -> None:
    """A usage error for a device that is not here, or that does not have the precision."""
    gpus = torch.cuda.device_count()
    if name.startswith("cuda") and int(name.partition(":")[2] or 0) >= gpus:
        raise pytest.UsageError(f"--attr-device {name}: there are {gpus} CUDA devices here")
    if name == "mps" and not torch.backends.mps.is_available():
        raise pytest.UsageError("--attr-device mps: there is no MPS device here")
    device = deal(name, 0, 1)[0]
    if precision == "tf32" and not device.startswith("cuda"):
        raise pytest.UsageError(
            f"--attr-precision tf32: that is a format of CUDA devices, and this run is on {device}"
        )


def deal(name: str, index: int, workers: int) -> tuple[str, int]:
    """The device of a worker, and how many workers are on it.

    `auto` deals the GPUs of CUDA out in turn; without one all are on the CPU.
    """
    gpus = torch.cuda.device_count()
    if name != "auto" or not gpus:
        return ("cpu" if name == "auto" else name), workers
    gpu = index % gpus
    return f"cuda:{gpu}", max(1, len(range(gpu, workers, gpus)))


def remark(name: str, workers: int) -> str:
    """What is to be said if several workers share a GPU."""
    gpus = torch.cuda.device_count() if name == "auto" else int(name.startswith("cuda"))
    if not 0 < gpus < workers:
        return ""
    if gpus == 1:
        return f"{workers} workers on one GPU share its memory"
    least, more = divmod(workers, gpus)
    each = f"{least} or {least + 1}" if more else f"{least}"
    return f"{workers} workers on {gpus} GPUs, {each} on each, share its memory"
