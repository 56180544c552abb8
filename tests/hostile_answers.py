"""Methods that answer, raise or hold something odd."""

import array
import logging
import os
import socket
import threading

import pytest
import torch
from PIL import Image
from torch import nn

from tests.zoo import HARMLESS, HERE, Hostile, does, holds, maps, raises, returns

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
