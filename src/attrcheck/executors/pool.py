"""Tasks at work elsewhere: so many at once, and each answer goes into the store as it arrives."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from attrcheck.contracts import Case
from attrcheck.engine.results import Outcome
from attrcheck.errors import AttrcheckError, cut
from attrcheck.executors.computing import Answer, failure
from attrcheck.executors.planning import Task
from attrcheck.store.entries import Store
from attrcheck.store.sending import put

PAUSE = 0.2
"""Seconds after which it is looked whether there is something new to do."""


class LostError(Exception):
    """Whoever worked at a task is gone, however often it was tried; the text says how."""


class Backend(Protocol):
    """Who computes tasks; a handle stands for one at work."""

    def submit(self, task: Task, after: Any) -> Any:
        """Begin with a task; after: the handle of the one that it needs, or None."""

    def done(self, handles: Sequence[Any], seconds: float) -> Sequence[Any]:
        """Those of the handles, in their order, that are done within some seconds."""

    def answer(self, handle: Any) -> Answer:
        """What became of a task that is done; LostError if nobody knows."""

    def close(self, handles: Sequence[Any]) -> None:
        """End whatever is still at work."""


class Pool:
    """The tasks of a run.

    most: tasks in flight. A thread of its own submits tasks and writes what comes back.
    """

    def __init__(self, backend: Backend, store: Store, most: int) -> None:
        self._backend = backend
        self._store = store
        self._most = most
        self._waiting: deque[Task] = deque()
        self._flying: dict[Any, Task] = {}
        self._needed: WeakKeyDictionary[Task, Any] = WeakKeyDictionary()
        self._left: Counter[str] = Counter()
        self._ended: dict[str, dict[str, tuple[int, Outcome]]] = {}
        self._failed: dict[str, str] = {}
        self._warnings: dict[str, dict[str, None]] = {}
        self._count = self._done = 0
        self._broken: BaseException | None = None
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="attrcheck-pool", daemon=True)
        self._thread.start()

    def add(self, tasks: Iterable[Task]) -> int:
        """Have tasks computed, in this order; how many there are."""
        count = 0
        for count, task in enumerate(tasks, start=1):  # noqa: B007
            with self._changed:
                self._waiting.append(task)
                self._left.update(case.id for case in task.cases)
                self._count += 1
                self._changed.notify_all()
        return count

    def wait(self, case: Case, say: Callable[[str], None]) -> dict[str, Outcome]:
        """Wait for all tasks of a case; the methods that ended there.

        A method that ended on several shards did so on the first of them, as it would have in one
        process.
        """
        with self._changed:
            while self._left[case.id] and self._broken is None and case.id not in self._failed:
                left, done, count = self._left[case.id], self._done, self._count
                say(f"{case.id} waits for {left} tasks; {done} of {count} tasks are done in all")
                self._changed.wait(PAUSE)
            if self._broken is not None:
                raise AttrcheckError(failure(self._broken)) from self._broken
            if case.id in self._failed:
                raise AttrcheckError(self._failed[case.id])
            return {name: one for name, (_, one) in self._ended.get(case.id, {}).items()}

    def warnings(self, case: Case) -> list[str]:
        """What was warned of while the tasks of a case were computed, each once."""
        with self._changed:
            return list(self._warnings.pop(case.id, {}))

    def close(self) -> None:
        """Submit no more, and end what is at work."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        self._backend.close(list(self._flying))

    def _run(self) -> None:
        try:
            while not self._closing:
                self._submit()
                if not self._flying:
                    with self._changed:
                        self._changed.wait_for(lambda: self._waiting or self._closing)
                    continue
                for handle in self._backend.done(list(self._flying), PAUSE):
                    self._arrived(handle)
        except BaseException as error:
            with self._changed:
                self._broken = error
                self._changed.notify_all()

    def _submit(self) -> None:
        while len(self._flying) < self._most and not self._closing:
            with self._changed:
                if not self._waiting:
                    return
                task = self._waiting.popleft()
                if self._is_idle(task):
                    self._finish(task, Answer())
                    continue
            after = self._needed.get(task.after) if task.after else None
            handle = self._backend.submit(task, after)
            self._flying[handle] = task
            if not task.method:
                self._needed[task] = handle

    def _is_idle(self, task: Task) -> bool:
        """Whether there is no point in a task, as its cases failed or its method has ended."""
        return all(
            case.id in self._failed
            or self._ended.get(case.id, {}).get(task.method, (task.shard,))[0] < task.shard
            for case in task.cases
        )

    def _arrived(self, handle: Any) -> None:
        task = self._flying[handle]
        try:
            answer = self._backend.answer(handle)
            for content in answer.entries:
                put(self._store, content)
        except LostError as error:
            answer = _lost(task, str(error))
        except OSError as error:
            why = f"what was computed could not be written to {self._store.folder}"
            answer = _failed(task, f"{why} ({error.strerror}): make room, and start again")
        except Exception as error:
            answer = _failed(task, failure(error))
        with self._changed:
            del self._flying[handle]
            self._finish(task, answer)

    def _finish(self, task: Task, answer: Answer) -> None:
        """Note what became of a task."""
        for name, why in answer.failed.items():
            self._failed.setdefault(name, why)
        for name, outcome in answer.ended.items():
            ended = self._ended.setdefault(name, {})
            ended[task.method] = min(
                (task.shard, outcome), ended.get(task.method, (task.shard, outcome)), key=_number
            )
        for case in task.cases:
            self._warnings.setdefault(case.id, {}).update(dict.fromkeys(answer.warnings))
        self._left.subtract(case.id for case in task.cases)
        self._done += 1
        self._changed.notify_all()


def _number(ended: tuple[int, Outcome]) -> int:
    return ended[0]


def _failed(task: Task, why: str) -> Answer:
    return Answer(failed={case.id: why for case in task.cases})


def _lost(task: Task, how: str) -> Answer:
    """A task that ends its processes counts against its method, if it has one."""
    if not task.method:
        return _failed(task, f"what all methods share could not be computed: {how}")
    outcome = Outcome("error", cut(f"method {task.method!r} on {task.pair}: {how}"))
    return Answer(ended={case.id: outcome for case in task.cases})
