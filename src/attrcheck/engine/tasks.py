"""One of several tasks: the shards of a case that are its own, and which records are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from attrcheck.engine.evaluation import Evaluation, Progress
from attrcheck.engine.finding import find
from attrcheck.engine.results import Delivery, Outcome
from attrcheck.engine.shards import Shard
from attrcheck.errors import AttrcheckError, cut
from attrcheck.store.inventory import gaps
from attrcheck.store.seeds import derive


def own_shards(evaluation: Evaluation) -> list[Shard]:
    """The shards of the task that the settings say: every N-th; all of them if they say nothing.

    Pairs begin with different tasks, so that many small ones are spread as well. What counts is the
    position and the name: all protocols of a pair have the same shards, and share their maps.
    """
    if evaluation.settings.task is None:
        return evaluation.shards
    which, tasks = evaluation.settings.task
    first = derive(0, evaluation.case.pair, "tasks")
    return [shard for shard in evaluation.shards if (first + shard.number) % tasks == which - 1]


def run_task(
    evaluation: Evaluation, progress: Progress, tell: Progress = lambda text: None
) -> Delivery:
    """Have the records of the task's own shards in the store; nothing is reduced."""
    torch.set_num_threads(evaluation.settings.threads)
    case, shards = evaluation.case, own_shards(evaluation)
    if not shards:
        return Delivery(case.id, 0, len(evaluation.shards))
    evaluation.store.open()
    correct = np.concatenate([shard.intact["correct"][: shard.images] for shard in shards])
    tell(f"{case.pair}: accuracy {correct.mean():.1%} of {len(correct)} images of this task")
    records, stored, errors = 0, 0, []
    for _, observed in evaluation.observe(shards, progress):
        if isinstance(observed, Outcome):
            if observed.status == "error":
                errors.append(f"{case.id}: {observed.reason}")
        else:
            records += 1
            stored += observed.origin is not None and observed.origin.stored
    errors += evaluation.store.take_problems()
    return Delivery(case.id, len(shards), len(evaluation.shards), records, stored, errors)


def missing(evaluation: Evaluation) -> str:
    """Which records of a case that is there in part are missing, in words; or nothing.

    A method without any record is new, fails, or does not apply: nothing is known of it here.
    """
    shards = evaluation.shards
    if len(shards) == 1 or evaluation.settings.fresh:
        return ""
    lacks = {
        name: numbers for name, numbers in _lacks(evaluation, shards) if len(numbers) < len(shards)
    }
    if not (words := gaps(lacks)):
        return ""
    count = len(set().union(*lacks.values()))
    return cut(
        f"{evaluation.case.id}: computing {count} of {len(shards)} shards that the store has not, "
        f"or not all of: {words}"
    )


def _lacks(evaluation: Evaluation, shards: Sequence[Shard]) -> Iterator[tuple[str, list[int]]]:
    """The numbers of the shards of which the store has no record, for each method."""
    for name in evaluation.settings.methods:
        try:
            method = find(name)
            yield name, [shard.number for shard in shards if not shard.has(method)]
        except AttrcheckError:  # its outcome says so
            continue
