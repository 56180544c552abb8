"""Ray: who computes tasks on a cluster. Imports Ray, so nobody imports this unless asked to."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import OutOfMemoryError, WorkerCrashedError

from attrcheck.contracts import Settings
from attrcheck.engine.lab import Lab
from attrcheck.errors import AttrcheckError
from attrcheck.executors.computing import Answer, compute, failure
from attrcheck.executors.planning import Task
from attrcheck.executors.pool import LostError

RETRIES = 3
"""Times that a task is tried again whose worker or node has died."""
PLACE = re.compile(r"(?:ray://)?([^:]+):(\d+)")
PATIENCE = 10.0
"""Seconds for a cluster to answer."""
ALONE = 30.0
"""Seconds without an answer after which it is looked whether anybody is there."""


class ClusterError(AttrcheckError):
    """A cluster that cannot be reached, or cannot do what it is asked to."""


@dataclass(frozen=True)
class Share:
    """What a task gets of a node."""

    cpus: float
    gpus: float

    def slots(self, resources: Mapping[str, float]) -> int:
        """How many tasks a node has room for."""
        wanted = {"CPU": self.cpus, "GPU": self.gpus}
        return min(int(resources.get(kind, 0) / much) for kind, much in wanted.items() if much)

    def __str__(self) -> str:
        return f"{self.cpus:g} CPUs" + (f" and {self.gpus:g} GPUs" if self.gpus else "")


class Cluster:
    """A cluster that computes tasks; see `pool.Backend`.

    load: gives the settings of the run in any process, with whatever its project registers.
    """

    def __init__(self, address: str, share: Share, load: Callable[[], Settings]) -> None:
        self._ours = not ray.is_initialized()
        if self._ours:
            _connect(address)
        self._share = share
        nodes = _nodes()
        self.nodes = len(nodes)
        self.slots = sum(map(share.slots, nodes))
        if not self.slots:
            self.close([])
            there = "; ".join(_told(node) for node in nodes)
            raise ClusterError(f"no node has {share}, as a task needs; there are: {there}")
        self._alive = time.monotonic()
        # A process keeps the GPU that it has begun with: where nodes have several, Ray may give it
        # another one for the next task, which then needs a process of its own.
        alone = share.gpus > 0 and any(node.get("GPU", 0) > 1 for node in nodes)
        remote = ray.remote(
            num_cpus=share.cpus,
            num_gpus=share.gpus,
            max_retries=RETRIES,
            retry_exceptions=False,
            max_calls=int(alone),
        )
        self._work = remote(_work)
        sharers = int(1 / share.gpus) if share.gpus else max(map(share.slots, nodes))
        self._load = ray.put(partial(_lab, load, max(1, sharers)))
        self._given: tuple[tuple[Path, ...], Any] = ((), ray.put(Answer()))

    def submit(self, task: Task, after: Any) -> Any:
        """Begin with a task; after: the handle of the one that it needs, or None."""
        if task.given != self._given[0]:
            entries = tuple(path.read_bytes() for path in task.given)
            self._given = task.given, ray.put(Answer(entries))
        given = [self._given[1], *([] if after is None else [after])]
        return self._work.remote(self._load, replace(task, given=(), after=None), *given)

    def done(self, handles: Sequence[Any], seconds: float) -> Sequence[Any]:
        """Those of the handles, in their order, that are done within some seconds."""
        ready, _ = ray.wait(list(handles), timeout=seconds)
        if not ready:
            self._check()
            return []
        self._alive = time.monotonic()
        ready, _ = ray.wait(list(handles), num_returns=len(handles), timeout=0)
        return list(ready)

    def _check(self) -> None:
        """An error if there is no node left: Ray would wait for another one for ever."""
        now = time.monotonic()
        if now - self._alive > ALONE:
            if not any(map(self._share.slots, _nodes())):
                raise ClusterError(f"the Ray cluster has lost every node with {self._share}")
            self._alive = now

    def answer(self, handle: Any) -> Answer:
        """What became of a task that is done; LostError if nobody knows."""
        try:
            answer: Answer = ray.get(handle)
        except (WorkerCrashedError, OutOfMemoryError) as error:
            why = str(error).partition("\n")[0]
            raise LostError(f"its Ray worker died {RETRIES + 1} times: {why}") from error
        return answer

    def close(self, handles: Iterable[Any]) -> None:
        """End whatever is still at work."""
        for handle in handles:
            ray.cancel(handle)
        if self._ours:
            ray.shutdown()


_LABS: list[Lab] = []
"""The lab of this process, if it is a worker of Ray: pairs stay loaded for the next task."""


def _work(load: Callable[[], Lab], task: Task, *given: Answer) -> Answer:
    """Compute a task in a worker of Ray."""
    try:
        if not _LABS:
            _LABS.append(load())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        why = failure(error)
        return Answer(failed={case.id: why for case in task.cases})
    return compute(task, _LABS[0], given)


def _lab(load: Callable[[], Settings], sharers: int) -> Lab:
    """A lab with a store that lives as long as a task; sharers: of a node, or of a GPU."""
    settings = load()
    folder = Path(tempfile.gettempdir(), f"attrcheck-{settings.run}", f"ray-{os.getpid()}")
    settings = replace(settings, store=folder, fresh=False, verify=0.0)
    return Lab.of(replace(settings, keep_maps=None, sharers=sharers))


def _connect(address: str) -> None:
    """Join the cluster at an address, or any that is running here, or start one."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        if match := PLACE.fullmatch(address):  # Ray would try for minutes
            socket.create_connection((match[1], int(match[2])), PATIENCE).close()
        ray.init(address=address or None, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError, AssertionError) as error:
        where = f"at {address}" if address else "here"
        why = str(error).strip().partition("\n")[0]
        raise ClusterError(f"there is no Ray cluster {where} ({why})") from error
    finally:
        signal.signal(signal.SIGTERM, before)  # Ray would end the process without a report


def _nodes() -> list[dict[str, float]]:
    """What each node has that is alive."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _told(resources: Mapping[str, float]) -> str:
    return f"{resources.get('CPU', 0):g} CPUs, {resources.get('GPU', 0):g} GPUs"
