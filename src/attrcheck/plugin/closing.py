"""What a run comes to at its end: the lines that it prints, and the verdicts on it as a whole."""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attrcheck.plugin import options, scaling
from attrcheck.plugin.session import Session
from attrcheck.plugin.verdicts import PARTIAL, RunVerdict, incomplete, undecided

if TYPE_CHECKING:
    from attrcheck.report.baselines import Baseline

SUMMARY = "GITHUB_STEP_SUMMARY"
"""The environment variable that names the file which GitHub shows on the page of a job."""
UNSTEADY = (
    "warning: the key of method {!r} is another in every process, so the store never serves its "
    "results: something that it holds is random, such as a generator without a seed"
)


@dataclass
class Closing:
    """The end of a run: a board, the records of a task, or nothing at all.

    folder: where workers left files. lines: for the terminal, filled by `verdicts`.
    """

    config: pytest.Config
    session: Session
    folder: str
    baseline: Baseline | None
    lines: list[str] = field(default_factory=list)

    def verdicts(self, complete: bool) -> list[RunVerdict]:
        """The verdicts on the run; complete: whether pytest came to its end."""
        if not self.session.used:
            return self._without_items(complete)
        if scaling.task(self.config) is not None:
            return self._delivered()
        return self._concluded()

    def _concluded(self) -> list[RunVerdict]:
        """Conclude the run; whatever goes wrong there, no gate is passed over."""
        gates, origin = options.gates(self.config), options.gates_from(self.config)
        try:
            from attrcheck.plugin.conclusion import (
                conclude,
                details,
                in_short,
                keep,
                publish,
                summarise,
            )
            from attrcheck.report.details import MAPS

            workers = self.config.getoption("numprocesses", None) or 0
            document, verdicts, comparison = conclude(
                self.session, gates, origin, workers, self.baseline
            )
        except Exception as error:
            self.lines += self._earlier_report()
            why = f"the results could not be put together: {type(error).__name__}: {error}"
            where = traceback.format_exc().splitlines()
            failed = RunVerdict("conclusion", False, [why, *where])
            return [failed, *undecided([gate.text for gate in gates], why)]
        known, maps = details(document, self.session), Path(self.folder, MAPS)
        written, warnings = keep(document, options.folder(self.config, "store"), known, maps)
        if options.value(self.config, "report"):
            folder = options.folder(self.config, "report_dir")
            lines, problems = publish(document, folder, known, maps, written, comparison)
            self.lines += [*lines, *self._earlier_report()]
            verdicts += problems
        else:
            self.lines += in_short(document)
        self.lines += warnings
        if page := os.environ.get(SUMMARY):
            self.lines += summarise(document, comparison, page)
        self.lines += [UNSTEADY.format(name) for name in self.session.unsteady]
        if gates or self.lines:
            self.lines.append(f"gates: {len(gates)} in force, from: {origin}")
        return verdicts

    def _delivered(self) -> list[RunVerdict]:
        """Say what one task has done; there is no board, so no gate can be decided on it."""
        from attrcheck.plugin.tasks import lines  # an idle plugin has no need of it

        self.lines += lines(self.config, self.session.deliveries)
        self.lines += [UNSTEADY.format(name) for name in self.session.unsteady]
        return incomplete(self.session.missing)

    def _without_items(self, complete: bool) -> list[RunVerdict]:
        """No item of attrcheck was collected: broken gates, if the command line asks for any."""
        why = "no item of attrcheck was collected"
        if self.config.getoption("attr_report") or not complete:
            self.lines += self._earlier_report()
        rules: list[str] = options.value(self.config, "gate")
        if rules and self.config.getoption("attr_gate") is None:
            # A file's gates are for runs of the suite, and this is one of other tests.
            origin = options.gates_from(self.config)
            self.lines.append(f"gates not decided: {why} (gates from: {origin})")
            return []
        return undecided(rules, why)

    def _earlier_report(self) -> list[str]:
        """A line on a report in the report's folder that is not of this run."""
        if not options.value(self.config, "report"):
            return []
        folder = options.folder(self.config, "report_dir")
        path = folder / "report.json"
        written = self._is_new(path)
        if written or not path.exists():
            path = path.with_name("report.previous.json")
        if not path.exists() or self._is_new(folder / PARTIAL / "report.json"):
            return []
        why = "this one is not complete" if written else "this one wrote no report"
        return [f"{path} is of an EARLIER run: {why}"]

    def _is_new(self, path: Path) -> bool:
        """Whether a file was written by this run."""
        return path.exists() and path.stat().st_mtime >= self.session.started
