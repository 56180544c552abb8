"""Compute a task in any process: in a store of its own, whose new entries are the answer."""

from __future__ import annotations

import shutil
import socket
import traceback
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch

from attrcheck.engine.evaluation import Evaluation
from attrcheck.engine.lab import Lab
from attrcheck.engine.results import Outcome
from attrcheck.engine.shards import Shard
from attrcheck.errors import AttrcheckError, MethodError, cut
from attrcheck.executors.planning import Task, keys_of
from attrcheck.store.encoding import Key
from attrcheck.store.inventory import changes
from attrcheck.store.sending import contents, put

TOLD = ("device", "torch")
"""The parts of a key that mean something to people."""


@dataclass(frozen=True)
class Answer:
    """What became of a task.

    entries: the bytes of new files. ended: by case, what became of the method if it has no record.
    failed: by case, why it cannot be computed. warnings: that were given on the way.
    """

    entries: tuple[bytes, ...] = ()
    ended: Mapping[str, Outcome] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def compute(task: Task, lab: Lab, given: Iterable[Answer]) -> Answer:
    """Have the records of a task in the lab's own store, which is empty before and after."""
    torch.set_num_threads(lab.settings.threads)
    settings = replace(lab.settings, methods=(task.method,))
    lab = replace(lab, settings=settings, store=replace(lab.store))  # what it had read is gone
    try:
        known: set[bytes] = set()
        for answer in given:
            known.update(answer.entries)
            if answer.failed:
                return Answer(failed=answer.failed)
        for content in known:
            put(lab.store, content)
        with warnings.catch_warnings(record=True) as told:
            ended, failed = _computed(task, lab)
        kinds = ("records", "shared", "maps") if task.maps else ("records", "shared")
        return Answer(
            tuple(one for one in contents(lab.store, *kinds) if one not in known),
            ended,
            failed,
            tuple(dict.fromkeys(cut(str(one.message)) for one in told)),
        )
    finally:
        shutil.rmtree(lab.store.folder, ignore_errors=True)


def failure(error: BaseException) -> str:
    """What to say of an error that is not a method's own."""
    if isinstance(error, AttrcheckError):
        return str(error)
    return f"on {socket.gethostname()}: " + "".join(traceback.format_exception(error)).strip()


def _computed(task: Task, lab: Lab) -> tuple[dict[str, Outcome], dict[str, str]]:
    """What became of the method in each case, and of the cases that failed."""
    ended: dict[str, Outcome] = {}
    failed: dict[str, str] = {}
    broken: Outcome | None = None
    for case, keys in zip(task.cases, task.keys, strict=True):
        try:
            evaluation = Evaluation(case, lab.settings, lab.store, lab.loader)
            shard = evaluation.shards[task.shard]
            _check(shard, task.method, keys)
            if not task.method:
                shard.intact, shard.shared  # noqa: B018
                continue
            if outcome := broken or _observed(evaluation, shard):
                ended[case.id] = outcome
                if not any(contents(lab.store, "maps")):  # the other cases have no more
                    broken = outcome
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            failed[case.id] = failure(error)
    return ended, failed


def _check(shard: Shard, method: str, keys: list[Key]) -> None:
    """An error unless this process would compute the very same as the one that has planned it."""
    try:
        own = keys_of(shard, method)
    except MethodError as error:
        raise AttrcheckError(f"on {socket.gethostname()}: {error}") from error
    words = [
        f"{part} ({there.get(part)} there, {here.get(part)} here)" if part in TOLD else part
        for there, here in zip(own, keys, strict=True)
        for part in changes(there, here)
    ]
    if words:
        raise AttrcheckError(
            f"{socket.gethostname()} would compute something else than was asked for, as these "
            f"differ: {', '.join(dict.fromkeys(words))}; it needs the same libraries, code, data "
            "and kind of device"
        )


def _observed(evaluation: Evaluation, shard: Shard) -> Outcome | None:
    """What becomes of the method in a case, unless that is on record now."""
    [(_, observed)] = evaluation.observe([shard], lambda text: None)
    return observed if isinstance(observed, Outcome) else None
