"""Methods that meddle with what others use: data, networks, torch, Python."""

import gc
import locale
import logging
import os
import random
import signal
import socket
import sys
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from tests.zoo import KEPT, does, maps

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
