"""What the suites' items do when they run; imported only then, since it needs torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, cast

import pytest
import torch

from attrcheck.checks import check as checks
from attrcheck.contracts import Case, Settings, Weights
from attrcheck.engine.cases import families
from attrcheck.engine.checking import run_check
from attrcheck.engine.exhibits import exhibit
from attrcheck.engine.facts import facts
from attrcheck.engine.finding import find
from attrcheck.engine.lab import Lab
from attrcheck.engine.results import (
    CaseResult,
    CheckResult,
    Delivery,
    Envelope,
    Exhibit,
    LawResult,
    RunSettings,
)
from attrcheck.engine.scoring import score_case
from attrcheck.engine.settings import cores
from attrcheck.engine.shards import key_of
from attrcheck.engine.tasks import missing, run_task
from attrcheck.engine.wire import dumps
from attrcheck.errors import AttrcheckError, MethodError, cut
from attrcheck.methods import method as registered
from attrcheck.plugin import (
    controller,
    devices,
    notes,
    options,
    properties,
    scaling,
    selection,
    suites,
)
from attrcheck.plugin.collecting import CheckRequest
from attrcheck.plugin.outcomes import outcomes
from attrcheck.plugin.progress import Live
from attrcheck.plugin.properties import Properties
from attrcheck.report.details import MAPS
from attrcheck.report.text import for_terminal

LAB = pytest.StashKey[Lab]()
Sent: TypeAlias = tuple[Envelope, Properties, list[str]]
"""What an item sends, beside its outcome too, and why it fails, if it does."""
RUN = pytest.StashKey[tuple[RunSettings, str]]()
"""The same for all items of this process."""
EXHIBITED = pytest.StashKey[set[str]]()
"""The pairs whose images and maps this process has sent."""


@dataclass(frozen=True)
class Worker:
    """Where an item runs: one process, alone or among others.

    live: the folder of live files, empty if nobody watches. folder: of notes and other files for
    the controller. show: prints notes, where the controller is in this process.
    """

    index: int
    count: int
    run: str
    live: str
    folder: str
    show: Callable[[], None] = lambda: None

    def note(self, about: str, text: str) -> None:
        """Have a text printed, once, while the run goes on."""
        notes.leave(self.folder, about, for_terminal(text))
        self.show()


@dataclass(frozen=True)
class CaseItem:
    """One case, ready to run: ranks all methods, sends the result, fails on broken promises."""

    case: Case
    config: pytest.Config
    worker: Worker
    send: Callable[[str, Properties], None]

    def run(self) -> None:
        """Run the case; its result is sent before the item fails."""
        with told(self.worker, self.case.id) as say:
            lab = lab_of(self.config, self.worker)
            lab.loader.progress = say
            work = self._score if lab.settings.task is None else self._deliver
            sent, facts, problems = work(lab, say)
        self.send(dumps(sent), facts)
        if problems:
            pytest.fail(for_terminal("\n".join(problems)), pytrace=False)

    def _score(self, lab: Lab, say: Callable[[str], None]) -> Sent:
        """The result of the case, and what is wrong in it."""
        tell = partial(self.worker.note, self.case.pair)
        result = score_case(lab, self.case, say, tell, partial(self._tell_gaps, lab))
        shown = self._exhibit(lab, result)
        sent = envelope(self.case.id, self.config, lab, case=result, exhibit=shown)
        return sent, properties.of_case(result), broken(result)

    def _tell_gaps(self, lab: Lab) -> None:
        """Note which shards of a case that is there in part have to be computed."""
        here = scaling.executor(self.config) == "local"
        if here and (gaps := missing(lab.evaluation(self.case))):
            self.worker.note(f"{self.case.id} gaps", gaps)

    def _deliver(self, lab: Lab, say: Callable[[str], None]) -> Sent:
        """What was done of the shards that are this task's, and what is wrong there."""
        tell = partial(self.worker.note, self.case.pair)
        delivery = run_task(lab.evaluation(self.case), say, tell)
        return envelope(self.case.id, self.config, lab, delivery=delivery), [], delivery.errors

    def _exhibit(self, lab: Lab, result: CaseResult) -> Exhibit | None:
        """What the report shows of the pair, once per process; maps come from the store."""
        exhibited = self.config.stash.setdefault(EXHIBITED, set())
        evaluation = lab.evaluation(self.case)
        protocol = evaluation.protocol
        if protocol.tuning or protocol.arranges or self.case.pair in exhibited:
            return None
        exhibited.add(self.case.pair)
        outcomes = result.outcomes.items()
        made = [name for name, outcome in outcomes if outcome.status in ("ok", "undefined")]
        try:
            return exhibit(evaluation, made, Path(self.worker.folder, MAPS))
        except Exception as error:  # the scores are there, and worth more than pictures
            why = f"no images of {self.case.pair} in the report: {type(error).__name__}: {error}"
            warnings.warn(for_terminal(cut(why)), stacklevel=1)
            return None


@dataclass(frozen=True)
class CheckItem:
    """One check of what it ranges over: a method, a case, a protocol, a model, or everything."""

    request: CheckRequest
    config: pytest.Config
    worker: Worker
    send: Callable[[str, Properties], None]

    def run(self) -> None:
        """Run the check and send its result; skip where not applicable, xfail where expected."""
        check, subject, cases = self.request.check, self.request.subject, self.request.cases
        what = f"{check} of {subject.name}"
        with told(self.worker, what) as say:
            lab = replace(lab_of(self.config, self.worker), cases=cases, progress=say)
            lab.loader.progress = say
            result = run_check(checks.get(check), subject, lab)
        sent = envelope(self.request.id, self.config, lab, check=result)
        self.send(dumps(sent), properties.of_check(result))
        where = f" on {result.on}" if result.on else ""
        message = for_terminal(f"{what}{where}: {result.reason}")
        if result.status == "not_applicable":
            pytest.skip(message)
        if result.status == "known_failure":
            raise pytest.xfail.Exception(message, pytrace=False)  # no source is read to show it
        if result.status == "failed":
            pytest.fail(message, pytrace=False)


@contextmanager
def told(worker: Worker, what: str) -> Iterator[Callable[[str], None]]:
    """Say what is being done, and whose failure it is; gives what says more."""
    live = Live(worker.live)
    try:
        live.say(what)
        yield live.say
    except AttrcheckError as error:
        raise failure(f"{what}: {error}") from None
    except outcomes() as error:
        pytest.fail(for_terminal(cut(f"{what}: {from_inside(error)}")))
    finally:
        live.say("")


def failure(text: str) -> BaseException:
    """A failure of the item that shows this text alone."""
    return pytest.fail.Exception(for_terminal(cut(text)), pytrace=False)


def from_inside(error: BaseException) -> str:
    """What to say of code under test that decides a test, as `pytest.skip` does."""
    return (
        f"the code under test raised {type(error).__name__} ({error}), as pytest.skip, fail and "
        "exit do; that is not for it to decide, and the item counts as missing"
    )


def broken(result: CaseResult) -> list[str]:
    """One line for each method that failed, and for each write that failed."""
    errors = [f"{result.case}: {o.reason}" for o in result.outcomes.values() if o.status == "error"]
    return errors + result.problems


def worker_of(config: pytest.Config) -> Worker:
    """The process that this is: an xdist worker, or the only one."""
    if (given := getattr(config, "workerinput", None)) is not None:
        index = int(given["workerid"].removeprefix("gw"))
        folder, live = given["attr_folder"], given["attr_live"]
        return Worker(index, given["workercount"], given["attr_run"], live, folder)
    gathering = controller.of(config)
    assert gathering is not None, "whoever is not a worker is the controller"
    session, show = gathering.session, gathering.show_notes
    return Worker(0, 1, session.run, gathering.live, gathering.folder, show)


def lab_of(config: pytest.Config, worker: Worker) -> Lab:
    """The lab of this process: made by its first item, so that pairs stay loaded for the next."""
    if LAB not in config.stash:
        config.stash[LAB] = Lab.of(resolve(config, worker))
        if remark := devices.remark(options.value(config, "device"), worker.count):
            worker.note("devices", remark)
    return config.stash[LAB]


def resolve(config: pytest.Config, worker: Worker) -> Settings:
    """The settings of this process."""
    device, sharers = devices.deal(options.value(config, "device"), worker.index, worker.count)
    return Settings(
        profile=options.value(config, "profile"),
        images=options.images(config),
        seed=options.number(config, "seed", 0) or 0,
        methods=tuple(selection.methods(config)),
        store=options.folder(config, "store"),
        fresh=bool(options.value(config, "fresh")),
        run=worker.run,
        device=device,
        threads=options.number(config, "threads", 1) or max(1, cores() // worker.count),
        memory=scaling.memory(config),
        sharers=sharers,
        precision=scaling.precision(config),
        verify=options.share(config, "verify"),
        images_given=options.value(config, "images") is not None,
        isolate=options.isolate(config),
        timeout=options.number(config, "timeout", 0) or None,
        accept_accuracy=bool(options.value(config, "accept_accuracy")),
        shard=scaling.shard_size(config),
        task=scaling.task(config),
        keep_maps=scaling.keep_maps(config),
    )


def envelope(
    item: str,
    config: pytest.Config,
    lab: Lab,
    case: CaseResult | None = None,
    check: CheckResult | None = None,
    exhibit: Exhibit | None = None,
    delivery: Delivery | None = None,
    law: LawResult | None = None,
) -> Envelope:
    """A result, with what the controller has to know of the run that it belongs to."""
    settings = lab.settings
    if RUN not in config.stash:
        config.stash[RUN] = _run(config, settings)
    run, whole = config.stash[RUN]
    return Envelope(
        id=item,
        settings=run,
        whole=whole,
        threads=settings.threads,
        case=case,
        check=check,
        verified=lab.store.take_verified() if settings.verify else None,
        keys=dict(_keys(settings.methods)) if check is None and law is None else {},
        exhibit=exhibit,
        delivery=delivery,
        law=law,
    )


def _run(config: pytest.Config, settings: Settings) -> tuple[RunSettings, str]:
    """What the controller has to know of the run, and what tells its whole from another."""
    cases, methods = selection.whole(config)
    there = suites.arranged(config)
    run = RunSettings(
        profile=settings.profile,
        images=settings.images,
        seed=settings.seed,
        device=torch.device(settings.device).type,
        precision=settings.precision,
        methods=list(settings.methods),
        of_cases=len(cases),
        of_methods=len(methods),
        suite=there.suite.name if there else "",
        gaps=[gap.what for gap in there.gaps] if there else [],
        facts=facts(settings.methods),
        weights=cast(Weights, options.one_of(config, "weights", options.WEIGHTS)),
        families=families(selection.cases(config), settings.profile),
    )
    return run, selection.signature(cases, methods)


def _keys(methods: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The keys of the user's own methods; what has none has failed by name already."""
    for name in filter(registered.is_own, methods):
        with suppress(MethodError):
            yield name, key_of(find(name))
