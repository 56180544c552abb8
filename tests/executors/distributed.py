"""A small run whose tasks are computed elsewhere: in this process, with a store of their own."""

from dataclasses import replace

import attrcheck
from attrcheck.contracts import Case
from attrcheck.engine.lab import Lab
from attrcheck.executors.computing import Answer, compute
from tests.worlds import tiny_dataset

IMAGES = 600
"""Three shards, the last one smaller."""


def cases(*protocols):
    """Cases of the tiny model on a dataset of three shards; to be asked for once in a test."""
    attrcheck.dataset("many")(lambda: tiny_dataset("many", IMAGES))
    return [Case("many", "linear", protocol) for protocol in protocols]


class Elsewhere:
    """Computes tasks when their answers are asked for; see `pool.Backend`. `log`: which ones."""

    def __init__(self, settings, folder, order=list):
        self.lab = Lab.of(replace(settings, store=folder))
        self.order = order
        self.log = []
        self.tasks = []
        self.closed = None

    def submit(self, task, after):
        self.tasks.append((task, after))
        return len(self.tasks) - 1

    def done(self, handles, seconds):
        return self.order(handles)[:1]

    def answer(self, handle):
        task, after = self.tasks[handle]
        self.log.append((task.method, task.shard))
        given = [Answer(tuple(path.read_bytes() for path in task.given))]
        if after is not None:
            given.append(self.answer(after))
            self.log.pop()
        sent = replace(task, given=(), after=None)
        return compute(sent, self.lab, given)

    def close(self, handles):
        self.closed = list(handles)
