"""What the store lacks of a run, as tasks: one method on one shard of cases that share its maps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from attrcheck.contracts import Case, Method
from attrcheck.engine.applying import refusal
from attrcheck.engine.evaluation import Evaluation
from attrcheck.engine.finding import find
from attrcheck.engine.lab import Lab
from attrcheck.engine.shards import Shard
from attrcheck.engine.tuned import name_of
from attrcheck.store.encoding import Key, fingerprint
from attrcheck.store.sending import named


@dataclass(frozen=True, eq=False)
class Task:
    """One method on one shard; without a method, what all methods share there.

    cases: of one pair; they share their maps. keys: of what is to be computed for each case, so
    that whoever computes it can tell whether it would be the same. maps: whether maps are wanted
    too. given: files of entries that are needed. after: the task whose entries are needed.
    """

    cases: tuple[Case, ...]
    shard: int
    method: str
    keys: tuple[list[Key], ...]
    maps: bool = False
    given: tuple[Path, ...] = ()
    after: Task | None = None

    @property
    def pair(self) -> str:
        """The name of the pair."""
        return self.cases[0].pair


def plan(lab: Lab, cases: Sequence[Case]) -> Iterator[Task]:
    """What is missing, pair by pair and shard by shard.

    What methods share comes before them, a shard ahead, so that none has to wait for it. What
    cannot be planned, as it fails or does not apply, is left to the item, which says why.
    """
    pairs: dict[str, list[Case]] = {}
    for case in cases:
        pairs.setdefault(case.pair, []).append(case)
    for some in pairs.values():
        for group in _sharing(lab, some):
            try:
                yield from _of_group(group, lab.settings.methods)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException:  # of a picture, say; the item meets it again
                continue


def _of_group(evaluations: Sequence[Evaluation], names: Iterable[str]) -> Iterator[Task]:
    """The tasks of cases that share their maps."""
    methods = list(_applicable(evaluations[0].shards[0], names))
    ready: list[Task] = []
    for number in range(max(len(one.shards) for one in evaluations)):
        there = [one for one in evaluations if number < len(one.shards)]
        shared, tasks = _of_shard(there, number, methods)
        yield from shared
        yield from ready
        ready = tasks
    yield from ready


def keys_of(shard: Shard, method: str) -> list[Key]:
    """The keys of what a task computes for one of its cases."""
    if not method:
        return [key for _, key in shard.common]
    parts = [replace(shard, protocol=part) for part in shard.protocol.parts.values()]
    return [one.key(find(method)) for one in parts or [shard]]


def _sharing(lab: Lab, cases: Iterable[Case]) -> list[list[Evaluation]]:
    """Cases of a pair by what they share: the network and the images that have maps."""
    groups: dict[str, list[Evaluation]] = {}
    for case in cases:
        # Not the lab's own, which waits for what is planned here.
        evaluation = Evaluation(case, lab.settings, lab.store, lab.loader)
        try:
            shared = fingerprint(evaluation.shards[0].pair.key)
        except KeyboardInterrupt:
            raise
        except BaseException:  # of a dataset or model; the item meets it again
            continue
        groups.setdefault(shared, []).append(evaluation)
    return list(groups.values())


def _applicable(shard: Shard, names: Iterable[str]) -> Iterator[Method]:
    """The methods that can be tried."""
    for name in names:
        try:
            method = find(name)
            if refusal(method, shard.pair, shard.store) is None and keys_of(shard, name):
                yield method
        except KeyboardInterrupt:
            raise
        except BaseException:  # the item meets it again
            continue


def _of_shard(
    evaluations: Sequence[Evaluation], number: int, methods: Iterable[Method]
) -> tuple[list[Task], list[Task]]:
    """The tasks of one shard: of what all methods share, if some of it is missing; of methods."""
    first = evaluations[0]
    fresh, tuning, store = first.settings.fresh, first.protocol.tuning, first.store
    given = (
        tuple(named(store, name_of(first.case.dataset, first.case.model, tuning))) if tuning else ()
    )
    shards = [evaluation.shards[number] for evaluation in evaluations]
    common = dict.fromkeys(store.path(*entry) for shard in shards for entry in shard.common)
    before: Task | None = None
    if not fresh and all(path.is_file() for path in common):
        given += tuple(common)
    else:
        before = _task(shards, number, "", given=given)
    # The report shows some images of the first shard with their maps.
    shown = number == 0 and tuning is None and not first.protocol.arranges
    maps = shown and first.settings.keep_maps != 0
    tasks = [
        _task(missing, number, method.name, maps, given, before)
        for method in methods
        if (missing := [shard for shard in shards if fresh or not shard.has(method)])
    ]
    return [before] if before else [], tasks


def _task(
    shards: Sequence[Shard],
    number: int,
    method: str,
    maps: bool = False,
    given: tuple[Path, ...] = (),
    after: Task | None = None,
) -> Task:
    return Task(
        cases=tuple(shard.case for shard in shards),
        shard=number,
        method=method,
        keys=tuple(keys_of(shard, method) for shard in shards),
        maps=maps,
        given=given,
        after=after,
    )
