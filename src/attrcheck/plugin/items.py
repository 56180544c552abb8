"""What the suites' items do when they run; imported only then, since it needs torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from attrcheck.checks import check as checks
from attrcheck.contracts import Case, Settings
from attrcheck.engine.cases import table
from attrcheck.engine.checking import Subject, run_check
from attrcheck.engine.evaluation import run_case
from attrcheck.engine.lab import Lab
from attrcheck.engine.results import CaseResult
from attrcheck.engine.settings import cores
from attrcheck.errors import AttrcheckError
from attrcheck.plugin import options
from attrcheck.plugin.progress import Live
from attrcheck.plugin.session import selection

LAB = pytest.StashKey[Lab]()


@dataclass(frozen=True)
class Worker:
    """Where an item runs: one process, alone or among others."""

    index: int
    count: int
    run: str
    live: str


@dataclass(frozen=True)
class CaseItem:
    """One case, ready to run: ranks all methods, sends the result, fails on broken promises."""

    case: Case
    config: pytest.Config
    worker: Worker
    send: Callable[[str], None]

    def run(self) -> None:
        """Run the case; whatever was found is sent before the item fails."""
        live = Live(self.worker.live)
        try:
            lab = lab_of(self.config, self.worker)
            result = run_case(lab.evaluation(self.case), live.say)
        except AttrcheckError as error:
            pytest.fail(f"{self.case.id}: {error}", pytrace=False)
        finally:
            live.say("")
        self.send(_payload(self.case.id, "case", lab.settings, result.plain()))
        if lines := broken(result):
            pytest.fail("\n".join(lines), pytrace=False)


@dataclass(frozen=True)
class CheckItem:
    """One check of what it ranges over: a method, a case, a protocol, a model, or everything."""

    check: str
    subject: Subject
    cases: list[Case]
    config: pytest.Config
    worker: Worker
    send: Callable[[str], None]

    def run(self) -> None:
        """Run the check and send its verdict; skip where not applicable, xfail where expected."""
        live = Live(self.worker.live)
        told = f"{self.check} of {self.subject.name}"
        try:
            lab = replace(
                lab_of(self.config, self.worker), cases=tuple(self.cases), progress=live.say
            )
            live.say(told)
            result = run_check(checks.get(self.check), self.subject, lab)
        except AttrcheckError as error:
            pytest.fail(f"{told}: {error}", pytrace=False)
        finally:
            live.say("")
        self.send(
            _payload(f"{self.check}-{self.subject.name}", "check", lab.settings, vars(result))
        )
        where = f" on {result.on}" if result.on else ""
        told = f"{told}{where}: {result.reason}"
        if result.status == "not_applicable":
            pytest.skip(told)
        if result.status == "known_failure":
            pytest.xfail(told)
        if result.status == "failed":
            pytest.fail(told, pytrace=False)


def broken(result: CaseResult) -> list[str]:
    """One line a method that failed, and one a write that failed."""
    errors = [f"{result.case}: {o.reason}" for o in result.outcomes.values() if o.status == "error"]
    return errors + result.problems


def lab_of(config: pytest.Config, worker: Worker) -> Lab:
    """The lab of this process: made by its first item, so that pairs stay loaded for the next."""
    if LAB not in config.stash:
        config.stash[LAB] = Lab.of(resolve(config, worker))
    return config.stash[LAB]


def resolve(config: pytest.Config, worker: Worker) -> Settings:
    """The settings of this process."""
    return Settings(
        profile=options.value(config, "profile"),
        images=options.images(config),
        seed=options.number(config, "seed", 0) or 0,
        methods=tuple(options.methods(config)),
        store=options.folder(config, "store"),
        fresh=bool(options.value(config, "fresh")),
        run=worker.run,
        device=device(options.value(config, "device"), worker.index),
        threads=options.number(config, "threads", 1) or max(1, cores() // worker.count),
        memory=options.memory(config),
        images_given=options.value(config, "images") is not None,
        isolate=options.isolate(config),
        timeout=options.number(config, "timeout", 0) or None,
    )


def device(name: str, index: int) -> str:
    """The device of a worker; `auto` deals the GPUs of CUDA out in turn, else takes the CPU."""
    gpus = torch.cuda.device_count()
    if name == "auto":
        return f"cuda:{index % gpus}" if gpus else "cpu"
    if name.startswith("cuda"):
        wanted = int(name.partition(":")[2] or 0)
        if wanted >= gpus:
            raise AttrcheckError(f"--attr-device {name}: there are {gpus} CUDA devices here")
    if name == "mps" and not torch.backends.mps.is_available():
        raise AttrcheckError("--attr-device mps: there is no MPS device here")
    return name


def _payload(item: str, kind: str, settings: Settings, result: dict[str, Any]) -> str:
    methods = options.affordable(settings.profile)
    cases = [case.id for case in table(profile=settings.profile)]
    shown = {
        "profile": settings.profile,
        "images": settings.images,
        "seed": settings.seed,
        "device": torch.device(settings.device).type,
        "methods": list(settings.methods),
        "of_methods": len(methods),
        "of_cases": len(cases),
        "whole": selection(cases, methods),
    }
    volatile = {"threads": settings.threads}
    payload = {"id": item, "kind": kind, "settings": shown, "run": volatile, "result": result}
    return json.dumps(payload, allow_nan=False)
