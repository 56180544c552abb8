"""A zoo of hostile methods: what each does to others, and what must become of it.

`HERE` are those that a process survives; `ELSEWHERE` those that need a process of their own.
"""

import array
import ctypes
import faulthandler
import gc
import locale
import logging
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

HARMLESS = ""
KEPT = []
"""What must not be collected while the zoo is open."""


@dataclass(frozen=True)
class Hostile:
    """A method, and a pattern of its error; none if it is harmless to others and may compete."""

    attribute: object
    error: str = HARMLESS
    name: str = "mischief"
    settings: dict = field(default_factory=dict)


HERE: dict[str, Hostile] = {}
ELSEWHERE: dict[str, Hostile] = {}


def maps(images):
    """Maps that keep the contract."""
    return images.abs().sum(1)


def does(title, error=HARMLESS, zoo=HERE, **settings):
    """A method that does something, and then returns maps."""

    def register(function):
        def attribute(model, images, targets, dataset, seeds):
            answer = function(model=model, images=images, dataset=dataset, seeds=seeds)
            return maps(images) if answer is None else answer

        zoo[title] = Hostile(attribute, error, settings=settings)
        return function

    return register


def returns(title, error, answer):
    """A method that returns something odd."""
    HERE[title] = Hostile(lambda model, images, targets: answer(maps(images)), error)


def raises(title, error, exception):
    """A method that raises something odd."""

    def attribute(model, images, targets):
        raise exception()

    HERE[title] = Hostile(attribute, error)


def holds(title, thing):
    """A method that holds something odd, and is otherwise as it should be."""

    class Callable:
        def __init__(self):
            self.thing = thing

        def __call__(self, model, images, targets):
            return maps(images)

    HERE[f"holds {title}"] = Hostile(Callable())


EDITED = "changed the dataset that it was handed"


@does("edits images through a view", EDITED)
def edits_view(dataset, **_):
    part = dataset.images[:500]
    part -= 0.5


@does("edits images through numpy", EDITED)
def edits_numpy(dataset, **_):
    dataset.images.numpy()[:] = 0


@does("edits images through .data", EDITED)
def edits_data(dataset, **_):
    dataset.images.data.zero_()


@does("edits labels", EDITED)
def edits_labels(dataset, **_):
    dataset.labels.add_(1).remainder_(3)


@does("edits masks", EDITED)
def edits_masks(dataset, **_):
    dataset.masks.logical_not_()


@does("exchanges a part of the dataset", EDITED)
def exchanges_mean(dataset, **_):
    object.__setattr__(dataset, "mean", (0.0, 0.0))


@does("edits the dataset, then raises", "raised ValueError in the batch .*: after")
def edits_and_raises(dataset, **_):
    dataset.images.zero_()
    raise ValueError("after")


@does("edits the training split")
def edits_training(dataset, **_):
    dataset.training()[0].zero_()


@does("edits the input", "changed its input")
def edits_input(images, **_):
    images.add_(1)


@does("changes weights", "changed the weights")
def changes_weights(model, **_):
    next(model.parameters()).data.add_(1)


@does("leaves the model in training mode", "changed the mode")
def trains(model, **_):
    model.train()


@does("leaves a hook on the model", "left hooks on the model")
def hooks(model, **_):
    model.register_forward_hook(lambda *_: None)


@does("leaves a global forward hook", "left hooks on all modules")
def hooks_all(**_):
    nn.modules.module.register_module_forward_hook(lambda module, given, output: output * 0)


@does("leaves a global backward hook", "left hooks on all modules")
def hooks_backward(**_):
    nn.modules.module.register_module_full_backward_hook(lambda *_: None)


@does("patches Tensor.argmax", r"exchanged torch\.Tensor\.argmax")
def patches_argmax(**_):
    torch.Tensor.argmax = lambda self, *_, **__: torch.zeros(len(self), dtype=torch.int64)


@does("patches Tensor.sum", r"exchanged torch\.Tensor\.sum")
def patches_sum(**_):
    torch.Tensor.sum = lambda self, *_, **__: self * 0


@does("patches F.relu", r"exchanged torch\.nn\.functional\.relu")
def patches_relu(**_):
    nn.functional.relu = nn.functional.softmax


@does("patches torch.rand", r"exchanged torch\.rand")
def patches_rand(**_):
    torch.rand = torch.zeros


@does("patches Linear.forward", r"exchanged torch\.nn.*Linear\.forward")
def patches_forward(**_):
    nn.Linear.forward = lambda self, inputs: inputs


@does("patches numpy", r"exchanged numpy\.argsort")
def patches_numpy(**_):
    np.argsort = lambda values, *_, **__: np.arange(len(values))


@does("patches a builtin", r"exchanged builtins\.sorted")
def patches_builtin(**_):
    __builtins__["sorted"] = list


@does("patches the engine", r"exchanged attrcheck\.engine\.observing\.observe")
def patches_engine(**_):
    sys.modules["attrcheck.engine.observing"].observe = lambda *_: ({}, [0, 0])


@does("leaves inference mode on", "left inference mode on")
def infers(**_):
    KEPT.append(mode := torch.inference_mode())
    mode.__enter__()


class Sees(torch.overrides.TorchFunctionMode):
    """Sees every call, and lies."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@does("leaves a function mode on", "left a mode on")
def enters(**_):
    KEPT.append(mode := Sees())
    mode.__enter__()


@does("turns torch's settings")
def turns_torch(images, **_):
    answer = maps(images)
    torch.set_default_device("meta")
    torch.set_default_dtype(torch.float64)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.enabled = False
    torch.backends.mkldnn.enabled = False
    torch.set_flush_denormal(True)
    torch.set_float32_matmul_precision("medium")
    torch.set_printoptions(precision=1)
    torch.set_num_threads(3)
    torch.autograd.set_detect_anomaly(True)
    torch.set_autocast_enabled("cpu", True)
    torch.set_grad_enabled(False)
    torch.manual_seed(7)
    return answer


@does("turns Python's settings")
def turns_python(**_):
    os.chdir("/")
    os.environ["HOME"] = "/nowhere"
    os.environ["MISCHIEF"] = "1"
    os.umask(0o777)
    warnings.simplefilter("error")
    warnings.showwarning = None
    logging.disable(logging.CRITICAL)
    logging.root.setLevel(1)
    logging.root.addHandler(logging.NullHandler())
    sys.setrecursionlimit(300)
    sys.stdout = None
    gc.disable()
    socket.setdefaulttimeout(0.001)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(3))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    locale.setlocale(locale.LC_ALL, "C")
    np.seterr(all="raise")
    np.set_printoptions(precision=1)
    np.random.seed(1)
    random.seed(1)


@does(
    "is not applicable, badly",
    "raised ZeroDivisionError in `not_applicable`",
    not_applicable=lambda model: 1 / 0,
)
def inapplicable(**_):
    pass


@does(
    "skips where it is asked whether it applies",
    "raised Skipped in `not_applicable`",
    not_applicable=lambda model: pytest.skip("no"),
)
def skips_early(**_):
    pass


returns("a sparse tensor", "a sparse tensor", lambda m: m.to_sparse())
returns("a sparse CSR tensor", "a sparse tensor", lambda m: m[0].to_sparse_csr())
returns("a meta tensor", "device meta", lambda m: m.to("meta"))
returns("a nested tensor", "a nested tensor", lambda m: torch.nested.nested_tensor(list(m)))
returns(
    "a quantized tensor",
    "a quantized tensor",
    lambda m: torch.quantize_per_tensor(m, 0.1, 0, torch.quint8),
)
returns("complex numbers", "complex numbers", lambda m: torch.complex(m, m))
returns("half precision", HARMLESS, lambda m: m.half())
returns("whole numbers", HARMLESS, lambda m: (m * 100).int())
returns("truth values", HARMLESS, lambda m: m > m.mean((1, 2), keepdim=True))
returns("not contiguous", HARMLESS, lambda m: m.mT)
returns("expanded", HARMLESS, lambda m: m[:1].expand(len(m), -1, -1))
returns("with a graph", HARMLESS, lambda m: m.requires_grad_() * 2)
returns("a parameter", HARMLESS, lambda m: nn.Parameter(m))
returns("too large", "returned a tensor of shape", lambda m: m[..., None].expand(*m.shape, 10**6))
returns("nothing", "returned NoneType", lambda m: None)
returns("not finite", "not finite", lambda m: m / 0)
returns("constant maps", "constant map", lambda m: m * 0)


class Liar(torch.Tensor):
    """A subclass that raises whatever is asked of it."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("not for you")


returns("a lying subclass", HARMLESS, lambda m: m.as_subclass(Liar))


class MuteError(Exception):
    """Its text cannot be read."""

    def __str__(self):
        raise RuntimeError("no text")


def deep():
    """Recurse for ever."""
    return deep()


raises("exits", "raised SystemExit in the batch .*: 0", lambda: SystemExit(0))
raises("fails the test", "raised Failed in the batch .*: no", lambda: pytest.fail.Exception("no"))
raises("skips the test", "raised Skipped in the batch .*: no", lambda: pytest.skip.Exception("no"))
raises("ends the session", "raised Exit in the batch .*: no", lambda: pytest.exit.Exception("no"))
raises("closes a generator", "raised GeneratorExit", GeneratorExit)
raises("stops an iteration", "raised StopIteration", StopIteration)
raises("recurses", "raised RecursionError", deep)
raises("runs out of memory", "raised MemoryError", MemoryError)
raises("has no text", r"raised MuteError .*: \(its text cannot be read\)", MuteError)
raises("says 5 MB", r"\.\.\. \(499\d{4} more characters\)", lambda: ValueError("x" * 5_000_000))
raises("asserts", "raised AssertionError", AssertionError)


@does("imports or skips", "raised Skipped")
def imports_or_skips(**_):
    pytest.importorskip("no_such_module_anywhere")


def numbers():
    """A generator."""
    yield 1


holds("a logger", logging.getLogger("mischief"))
holds("a file", open(os.devnull))  # noqa: SIM115
holds("a PIL image", Image.new("RGB", (2, 2)))
holds("an array", array.array("d", [1.0]))
holds("a sparse tensor", torch.eye(2).to_sparse())
holds("a lock", threading.Lock())
holds("a generator", numbers())
holds("a socket", socket.socket())
holds("itself", holds)
HERE["has a name of 100 characters"] = Hostile(
    lambda model, images, targets: maps(images), name="m" * 100
)


class Unreadable:
    """What it is cannot be told."""

    def __repr__(self):
        raise RuntimeError("no repr")


HERE["holds what cannot be told"] = Hostile(
    (lambda thing: lambda model, images, targets: (thing, maps(images))[1])(Unreadable()),
    "what it holds cannot be told",
)


def elsewhere(title, error=HARMLESS, **settings):
    """A method that nobody would want in the same process."""
    return does(title, error, ELSEWHERE, **settings)


@elsewhere("ends its process with 0", "crashed its process twice: exit code 0")
def exits(**_):
    os._exit(0)


@elsewhere("ends its process with 3", "crashed its process twice: exit code 3")
def exits_3(**_):
    os._exit(3)


@elsewhere("is killed", "crashed its process twice: signal SIGKILL")
def kills(**_):
    os.kill(os.getpid(), signal.SIGKILL)


@elsewhere("reads where nothing is", "crashed its process twice: signal SIGSEGV")
def crashes(**_):
    faulthandler.disable()  # its words are for those who do not expect this
    ctypes.string_at(0)


@elsewhere("aborts", "crashed its process twice: signal SIGABRT")
def aborts(**_):
    faulthandler.disable()
    os.abort()


@elsewhere("kills its group", "crashed its process twice: signal SIGTERM")
def kills_group(**_):
    os.killpg(0, signal.SIGTERM)


@elsewhere("never ends", "did not answer within 2 s, twice")
def loops(**_):
    while True:
        pass


@elsewhere("stops itself", "did not answer within 2 s, twice")
def stops(**_):
    os.kill(os.getpid(), signal.SIGSTOP)


@elsewhere("takes all memory", "raised (MemoryError|RuntimeError)")
def hoards(**_):
    KEPT.append([torch.empty(2**30, dtype=torch.uint8) for _ in range(10_000)])


@elsewhere("comes back twice")
def forks(**_):
    os.fork()


@elsewhere("leaves a process behind", "crashed its process twice: exit code 5")
def spawns(**_):
    subprocess.Popen(["sleep", "4321"])
    os._exit(5)


@elsewhere("leaves a thread behind")
def threads(dataset, **_):
    def spoil():
        time.sleep(2)  # until the batch is long done
        while True:
            time.sleep(0.001)
            torch.Tensor.argsort = None

    threading.Thread(target=spoil, daemon=True).start()


@elsewhere("closes all files", "crashed its process twice")
def closes(**_):
    os.closerange(3, 10_000)


@elsewhere("writes where it should answer", "crashed its process twice")
def babbles(**_):
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.write(number, b"\0\0\0\4junk" * 100)


@elsewhere("interrupts itself", "raised KeyboardInterrupt")
def interrupts(**_):
    raise KeyboardInterrupt


@elsewhere("leaks what no guard watches")
def leaks(**_):
    sys.modules["attrcheck.engine.results"].LEAKED = True
