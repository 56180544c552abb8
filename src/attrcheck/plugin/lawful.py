"""What an item of `test_laws.py` does when it runs; imported only then."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from attrcheck.engine.laws import run_law
from attrcheck.engine.results import LawResult
from attrcheck.engine.wire import dumps
from attrcheck.laws.trying import EXAMPLES, Effort
from attrcheck.pace import in_ci
from attrcheck.plugin import options, properties
from attrcheck.plugin.collecting import LawRequest
from attrcheck.plugin.items import Worker, envelope, lab_of, told
from attrcheck.plugin.properties import Properties
from attrcheck.report.text import for_terminal
from attrcheck.store.seeds import derive

FOLDER = "examples"
"""Of a store: where hypothesis keeps the scenes that broke a law, to try them first."""


@dataclass(frozen=True)
class LawItem:
    """One law of one subject, ready to be tried."""

    request: LawRequest
    config: pytest.Config
    worker: Worker
    send: Callable[[str, Properties], None]

    def run(self) -> None:
        """Try the law and send the result; fails with the simplest scene that breaks it."""
        wanted = self.request.bound
        what = f"{wanted.law} of {wanted.kind} {wanted.subject}"
        with told(self.worker, what):
            lab = replace(lab_of(self.config, self.worker), cases=self.request.cases)
            result = run_law(wanted, lab, self._effort())
        sent = envelope(self.request.id, self.config, lab, law=result)
        self.send(dumps(sent), properties.of_law(result))
        if result.status == "not_applicable":
            pytest.skip(for_terminal(f"{what}: {result.reason}"))
        if result.status == "broken":
            pytest.fail(for_terminal(broken(result, what)), pytrace=False)

    def _effort(self) -> Effort:
        """As many scenes as the profile asks for; the same in every run under CI."""
        examples = EXAMPLES[options.value(self.config, "profile")]
        given = self.config.getoption("--hypothesis-seed", None)
        if given is not None:
            return Effort(examples, int(given) if str(given).isdigit() else str(given))
        if in_ci():
            return Effort(examples, derive(0, self.request.id) % 2**32)
        folder = (
            options.folder(self.config, "store") / FOLDER / f"{derive(0, self.request.id):016x}"
        )
        return Effort(examples, random.SystemRandom().getrandbits(32), folder)


def broken(result: LawResult, what: str) -> str:
    """What is broken, where, and how to see it again."""
    return (
        f"{what} is broken: {result.reason}\n"
        f"counterexample: {result.scene}\n"
        f"again: this item with --hypothesis-seed={result.seed}"
    )
