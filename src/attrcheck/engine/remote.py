"""Run methods in processes of their own: what one does there costs itself alone.

Each method has one process, which is kept for its next batch. One that crashes or hangs is ended
with all that it started, and the request is made once more of a fresh one; then it is an error of
the method. What a process answers is JSON and bytes, never anything that could run here.
"""

from __future__ import annotations

import json
import math
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attrcheck import contracts
from attrcheck.contracts import Dataset, Later, Method, Settings
from attrcheck.engine.attribution import attribute, attribute_batch, not_applicable, unchanged
from attrcheck.engine.finding import find
from attrcheck.engine.loading import Loader
from attrcheck.engine.pairs import Pair, Source
from attrcheck.engine.settings import BLOCK
from attrcheck.errors import AttrcheckError, MethodError, text_of
from attrcheck.isolation.zygote import AVAILABLE, Copy, Zygote, ZygoteLostError, limit_memory
from attrcheck.methods import method as methods
from attrcheck.store.encoding import Key
from attrcheck.store.entries import Store
from attrcheck.tensors.batching import free, limited_to
from attrcheck.tensors.precision import be_exact

KEPT = 3
"""Processes that stay; a method that is asked again after so many others starts anew."""
START = 60.0
"""Seconds for a process to be ready: it waits for ever where torch had used threads before."""
TRIES = 2
MOST_HEAD = 2**20
"""Bytes of a message without its maps."""
PARALLEL = 2**18
"""Elements of a sum that torch spreads over threads."""
SILENT = "it does not answer"
WORKING, DONE, ERROR, UNKNOWN = "working", "done", "error", "unknown"
"""The kinds of messages; `unknown`: the pair cannot be had there."""


class IsolationWarning(UserWarning):
    """A method that should have run in a process of its own runs in this one."""


class CrashError(Exception):
    """The process of a method is gone, or does not answer; the text says how."""


@dataclass(frozen=True)
class Request:
    """What to run: a method by name, on a pair by name, which is altered if that was pickled."""

    what: str
    method: str
    source: Source
    key: Key
    changes: bytes
    seed: int = 0
    part: tuple[int, int] = (0, 0)
    images: NDArray[np.generic] | None = None


@dataclass
class Isolation:
    """The processes of methods; see `contracts.Remote`."""

    settings: Settings
    methods: dict[str, Method]
    zygote: Zygote
    copies: OrderedDict[str, Copy] = field(default_factory=OrderedDict)
    lost: dict[tuple[str, str], str] = field(default_factory=dict)
    """Why a method is not tried again, on a pair or anywhere."""

    def attribute(
        self, method: Method, pair: contracts.Pair, seed: int
    ) -> tuple[NDArray[np.float32], dict[str, Any]] | None:
        """The checked maps of all images, and facts about them."""
        answer = self._ask("attribute", method, pair, seed=seed)
        return None if answer is None else (answer[1], answer[0]["info"])

    def attribute_batch(
        self,
        method: Method,
        pair: contracts.Pair,
        part: slice,
        seed: int,
        images: Tensor | None,
    ) -> NDArray[np.float32] | None:
        """The checked maps of some images, or of others in their place."""
        start, stop, _ = part.indices(len(pair.images))
        given = None if images is None else images.detach().cpu().numpy()
        answer = self._ask(
            "attribute_batch", method, pair, seed=seed, part=(start, stop), images=given
        )
        return None if answer is None else answer[1]

    def not_applicable(self, method: Method, pair: contracts.Pair) -> tuple[str | None] | None:
        """Why the method cannot be right on the pair's model, or None; in a tuple of one."""
        answer = self._ask("not_applicable", method, pair)
        return None if answer is None else (answer[0]["reason"],)

    def _takes(self, method: Method) -> bool:
        known = self.methods.get(method.name)
        # One with a prefix is made anew whenever it is asked for.
        return known is method or (known is not None and ":" in method.name)

    def _ask(
        self, what: str, method: Method, pair: contracts.Pair, **arguments: Any
    ) -> tuple[dict[str, Any], NDArray[np.float32]] | None:
        """What the method's process answers; None if it cannot be asked."""
        if not self._takes(method) or not isinstance(pair, Pair) or pair.source is None:
            return None
        for place in (pair.name, ""):
            if why := self.lost.get((method.name, place)):
                raise MethodError(f"method {method.name!r} on {pair.name} {why}")
        changes = _pickled(pair)
        if changes is None:
            return None
        key = {name: value for name, value in pair.key.items() if name != "altered"}
        request = Request(what, method.name, pair.source, key, changes, **arguments)
        try:
            head, body = self._tried(request, pair)
        except ZygoteLostError:
            head, body = {"kind": UNKNOWN, "text": "no others can be started any more"}, b""
        if head["kind"] == ERROR:
            self._end(method.name)  # whatever it did there goes with it
            raise MethodError(head["text"])
        if head["kind"] == UNKNOWN:
            why = f"method {method.name!r} runs in this process: {head['text']}"
            warnings.warn(IsolationWarning(why), stacklevel=4)
            return None
        maps = np.frombuffer(body, np.float32).reshape(head["shape"] or 0)
        return head, maps.copy()

    def _tried(self, request: Request, pair: Pair) -> tuple[dict[str, Any], bytes]:
        """The answer, if need be of a second process."""
        name, ends = request.method, []
        for _ in range(TRIES):
            try:
                return self._answer(request)
            except CrashError as crash:
                ends.append(str(crash))
            except ZygoteLostError:
                if not ends:
                    raise
                ends.append("the process that it was started from is gone too")
        if set(ends) == {SILENT}:
            why = f"did not answer within {self.settings.timeout:g} s, twice; see --attr-timeout"
            self.lost[name, ""] = f"{why} (on {pair.name}; not tried again in this run)"
        else:
            why = f"crashed its process twice: {'; '.join(dict.fromkeys(ends))}"
            self.lost[name, pair.name] = why
        raise MethodError(f"method {name!r} on {pair.name} {why}")

    def _answer(self, request: Request) -> tuple[dict[str, Any], bytes]:
        """The answer of the method's process, which is started if there is none."""
        name = request.method
        try:
            copy = self._copy(name)
            copy.connection.send_bytes(pickle.dumps(request))
            while True:
                head, body = _received(copy, self.settings.timeout)
                if head["kind"] != WORKING:
                    return head, body
        except (EOFError, OSError, ValueError, KeyError, TypeError) as error:
            # It is gone, or somebody else wrote where it answers.
            raise CrashError(self._end(name, at_once=False)) from error
        except BaseException:  # it does not answer, or a person pressed Ctrl-C
            self._end(name)
            raise

    def _copy(self, name: str) -> Copy:
        """The process of a method; the one that was not asked for longest makes room for it."""
        if name not in self.copies:
            self.copies[name] = copy = self.zygote.spawn()
            _received(copy, START)
            while len(self.copies) > KEPT:
                self._end(next(iter(self.copies)))
        self.copies.move_to_end(name)
        return self.copies[name]

    def _end(self, name: str, at_once: bool = True) -> str:
        """End the process of a method; how it ended."""
        copy = self.copies.pop(name, None)
        try:
            return self.zygote.end(copy, at_once) if copy else "it could not be started"
        except ZygoteLostError:
            return "it is gone"


def start(settings: Settings) -> Isolation | None:
    """Make the zygote, if the settings ask for it; before anything is computed in this process."""
    if settings.isolate == "off":
        return None
    if not AVAILABLE:
        if settings.isolate == "on":
            raise AttrcheckError("--attr-isolate on: this works on Linux only; say auto or off")
        return None
    chosen: dict[str, Method] = {}
    for name in settings.methods:
        if settings.isolate == "on" or methods.is_own(name):
            with suppress(MethodError):  # one that cannot be loaded: its cases say so
                chosen[name] = find(name)
    if not chosen:
        return None
    zygote = Zygote(lambda connection: _serve(connection, settings, chosen))
    isolation = Isolation(settings, chosen, zygote)
    try:
        isolation._copy(next(iter(chosen)))
    except (CrashError, ZygoteLostError, EOFError, OSError, ValueError):
        zygote.close()
        warnings.warn(
            "methods run in this process: copies of it do not work, as torch had used threads "
            "here before the first item began",
            IsolationWarning,
            stacklevel=2,
        )
        return None
    return isolation


def _received(copy: Copy, timeout: float | None) -> tuple[dict[str, Any], bytes]:
    """The next message of a process: its head, and the bytes that it announces."""
    if not copy.connection.poll(timeout):
        raise CrashError(SILENT)
    head = json.loads(copy.connection.recv_bytes(MOST_HEAD))
    if not head.get("shape"):
        return head, b""
    if not copy.connection.poll(timeout):
        raise CrashError(SILENT)
    return head, copy.connection.recv_bytes(4 * math.prod(head["shape"]))


def _pickled(pair: Pair) -> bytes | None:
    """How a pair differs from the one that its names say; None where that cannot be sent."""
    if not pair.changes:
        return b""
    changes = {name: value for name, value in pair.changes.items() if name != "predictor"}
    try:
        for name, value in changes.items():
            if isinstance(value, Dataset):
                changes[name] = replace(value, training=None)
            elif isinstance(value, Later):
                changes[name] = value.value
        return pickle.dumps((changes, getattr(pair.network, "code", None)))
    except Exception:  # as for a network that holds a function without a name
        return None


def _serve(connection: Connection, settings: Settings, chosen: Mapping[str, Method]) -> None:
    """Answer requests until nobody makes any more; this runs in the process of a method."""
    torch.set_num_threads(settings.threads)
    torch.zeros(PARALLEL).add_(1)  # waits for ever where torch had used threads before the fork
    if torch.device(settings.device).type == "cpu":
        limit_memory(free(torch.device("cpu")))
    store = Store(settings.store, settings.run, settings.fresh)
    be_exact()
    shard = settings.shard or BLOCK
    loader = Loader(settings.device, store, shard=shard, precision=settings.precision)

    def send(head: Mapping[str, Any], maps: NDArray[np.float32] | None = None) -> None:
        shape = None if maps is None else maps.shape
        connection.send_bytes(json.dumps({**head, "shape": shape}).encode())
        if maps is not None:
            connection.send_bytes(np.ascontiguousarray(maps).tobytes())

    def working() -> None:
        send({"kind": WORKING})

    working()
    while True:
        try:
            request = pickle.loads(connection.recv_bytes())
        except EOFError:
            return
        try:
            pair = _pair(loader, request)
        except Exception as error:
            send({"kind": UNKNOWN, "text": text_of(error)})
            continue
        try:
            with limited_to(settings.memory, settings.sharers):
                send(*_run(request, chosen[request.method], pair, working))
        except MethodError as error:
            send({"kind": ERROR, "text": str(error)})
        except KeyboardInterrupt:  # its own doing: no terminal is connected to it
            text = f"method {request.method!r} on {pair.name} raised KeyboardInterrupt"
            send({"kind": ERROR, "text": text})


def _run(
    request: Request, method: Method, pair: Pair, working: Callable[[], None]
) -> tuple[dict[str, Any], NDArray[np.float32] | None]:
    """The answer to a request."""
    working()
    if request.what == "not_applicable":
        return {"kind": DONE, "reason": not_applicable(method, pair)}, None
    if request.what == "attribute":
        entry = attribute(method, pair, request.seed, working)
        return {"kind": DONE, "info": entry.info}, entry.arrays["maps"].astype(np.float32)
    images = None
    if request.images is not None:
        images = torch.from_numpy(request.images).to(pair.images.device)
    with unchanged(method, pair):
        maps = attribute_batch(method, pair, slice(*request.part), request.seed, images)
    return {"kind": DONE}, maps


def _pair(loader: Loader, request: Request) -> Pair:
    """The pair of a request; an error unless it is the very one that the request is about."""
    pair = loader.pair(*request.source)
    if dict(pair.key) != dict(request.key):
        raise AttrcheckError(f"{pair.name} is not the same when it is loaded again")
    if not request.changes:
        return pair
    changes, code = pickle.loads(request.changes)
    for name, value in changes.items():
        if isinstance(value, Dataset):
            changes[name] = replace(value, training=pair.dataset.training)
    altered = pair.changed(changes)
    if getattr(altered.network, "code", None) != code:
        raise AttrcheckError(f"an altered network of {pair.name} does not survive being sent")
    return altered
