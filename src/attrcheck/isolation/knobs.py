"""Settings of a process that a method may turn, and that are turned back after it.

Each is read before a method runs and written if it is another value after: torch's modes and
flags, the working folder, the environment, warnings, logging, signals, limits, printing. Not where
modules are looked for: a library that is imported late needs what it added there.
"""

from __future__ import annotations

import gc
import locale
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import _tensor_str


@dataclass(frozen=True)
class Knob:
    """One setting: how it is read, and how it is set to what was read."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]


def read() -> list[Any]:
    """All settings as they are; one that cannot be read is left alone."""
    return [_value(knob) for knob in KNOBS]


def turn_back(before: list[Any]) -> list[str]:
    """Set what has changed to what it was; the names of all that had changed."""
    changed = []
    for knob, value in zip(KNOBS, before, strict=True):
        if _value(knob) != value:
            changed.append(knob.name)
            with suppress(Exception):  # as a folder that is gone
                knob.write(value)
    return changed


def _value(knob: Knob) -> Any:
    try:
        return knob.read()
    except Exception:  # whatever a method has patched or broken, as a working folder that is gone
        return None


def _contents(name: str, values: list[Any]) -> Knob:
    """A list that is shared by all: its contents count."""

    def write(before: list[Any]) -> None:
        values[:] = before

    return Knob(name, lambda: list(values), write)


def _attribute(owner: Any, name: str) -> Knob:
    label = f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"
    return Knob(label, lambda: getattr(owner, name), lambda value: setattr(owner, name, value))


def _set_environment(before: dict[str, str]) -> None:
    for name in set(os.environ) - set(before):
        del os.environ[name]
    os.environ.update(before)


def _set_warnings(before: list[Any]) -> None:
    warnings.filters[:] = before  # type: ignore[index]
    # Modules remember what was shown under the filters of a version.
    getattr(warnings, "_filters_mutated", lambda: None)()


def _signals() -> dict[int, Any]:
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.getsignal(number) for number in SIGNALS}


def _set_signals(before: dict[int, Any]) -> None:
    for number, handler in before.items():
        if handler is not None and signal.getsignal(number) != handler:
            signal.signal(number, handler)


def _is_ticking() -> bool:
    return bool(hasattr(signal, "getitimer") and signal.getitimer(signal.ITIMER_REAL)[0])


def _set_ticking(before: bool) -> None:
    if not before:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _limits() -> dict[int, Any]:
    return {kind: resource.getrlimit(kind) for kind in LIMITS}


def _set_limits(before: dict[int, Any]) -> None:
    for kind, limit in before.items():
        resource.setrlimit(kind, limit)


def _deterministic() -> tuple[bool, bool]:
    enabled = torch.are_deterministic_algorithms_enabled()
    return enabled, torch.is_deterministic_algorithms_warn_only_enabled()


def _set_deterministic(before: tuple[bool, bool]) -> None:
    torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def _device() -> Any:
    """The context that a default device is; None where there is no default."""
    return getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)


def _set_device(before: Any) -> None:
    torch.set_default_device(None if before is None else before.device)


def _flushes_denormals() -> bool:
    return bool(torch.tensor(1e-310, dtype=torch.float64).mul(1).item() == 0)


def _autocast() -> list[Any]:
    kinds = ("cpu", "cuda")
    enabled = [(torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds]
    return [enabled, torch.is_autocast_cache_enabled()]


def _set_autocast(before: list[Any]) -> None:
    for kind, (enabled, dtype) in zip(("cpu", "cuda"), before[0], strict=True):
        torch.set_autocast_enabled(kind, enabled)
        torch.set_autocast_dtype(kind, dtype)
    torch.set_autocast_cache_enabled(before[1])


def _garbage() -> tuple[bool, tuple[int, int, int]]:
    return gc.isenabled(), gc.get_threshold()


def _set_garbage(before: tuple[bool, tuple[int, int, int]]) -> None:
    (gc.enable if before[0] else gc.disable)()
    gc.set_threshold(*before[1])


def _set_locale(before: str) -> None:
    locale.setlocale(locale.LC_ALL, before)


def _set_printing(before: dict[str, Any]) -> None:
    np.set_printoptions(**before)


try:
    import resource
except ImportError:  # not on Windows
    LIMITS: tuple[int, ...] = ()
else:
    LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)
NAMES = ("SIGINT", "SIGTERM", "SIGALRM", "SIGCHLD", "SIGPIPE", "SIGUSR1", "SIGUSR2", "SIGHUP")
SIGNALS = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
BACKENDS = (
    (torch.backends.cudnn, ("enabled", "benchmark", "deterministic", "allow_tf32")),
    (torch.backends.cuda.matmul, ("allow_tf32", "allow_fp16_reduced_precision_reduction")),
    (torch.backends.mkldnn, ("enabled",)),
)
STREAMS = ("stdin", "stdout", "stderr", "excepthook", "displayhook")

KNOBS = (
    Knob("the default device", _device, _set_device),
    Knob("the default type", torch.get_default_dtype, torch.set_default_dtype),
    Knob("the number of threads", torch.get_num_threads, torch.set_num_threads),
    Knob("grad mode", torch.is_grad_enabled, torch.set_grad_enabled),
    Knob("deterministic algorithms", _deterministic, _set_deterministic),
    Knob("anomaly detection", torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    Knob("autocast", _autocast, _set_autocast),
    Knob("denormals", _flushes_denormals, torch.set_flush_denormal),
    Knob(
        "the precision of products",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    *(_attribute(backend, name) for backend, names in BACKENDS for name in names),
    Knob(
        "torch's printing",
        lambda: dict(vars(_tensor_str.PRINT_OPTS)),
        lambda before: vars(_tensor_str.PRINT_OPTS).update(before),
    ),
    Knob("numpy's printing", np.get_printoptions, _set_printing),
    Knob("numpy's errors", np.geterr, lambda before: np.seterr(**before)),
    Knob("numpy's handler of errors", np.geterrcall, np.seterrcall),
    Knob("the working folder", os.getcwd, os.chdir),
    Knob("the environment", lambda: dict(os.environ), _set_environment),
    Knob("the mask of new files", _umask, os.umask),
    Knob("limits", _limits, _set_limits),
    Knob("filters of warnings", lambda: list(warnings.filters), _set_warnings),
    _attribute(warnings, "showwarning"),
    _attribute(logging.root, "level"),
    _attribute(logging.root, "disabled"),
    _attribute(logging.root.manager, "disable"),
    _contents("handlers of the log", logging.root.handlers),
    _contents("filters of the log", logging.root.filters),
    Knob("signal handlers", _signals, _set_signals),
    Knob("the timer", _is_ticking, _set_ticking),
    Knob("the locale", lambda: locale.setlocale(locale.LC_ALL), _set_locale),
    Knob("the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    Knob("the switch interval", sys.getswitchinterval, sys.setswitchinterval),
    Knob("the tracer", sys.gettrace, sys.settrace),
    Knob("the profiler", sys.getprofile, sys.setprofile),
    Knob("garbage collection", _garbage, _set_garbage),
    Knob("the timeout of sockets", socket.getdefaulttimeout, socket.setdefaulttimeout),
    *(_attribute(sys, name) for name in STREAMS),
    _attribute(tempfile, "tempdir"),
)
