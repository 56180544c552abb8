"""The process that a user started: gathers what items send, fuses, decides and reports."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from attrcheck.plugin import collecting, options
from attrcheck.plugin.session import Session

if TYPE_CHECKING:
    from attrcheck.plugin.conclusion import RunVerdict
    from attrcheck.plugin.progress import Painter

NAME = "attrcheck-controller"
"""Of the plugin."""
VERDICT = "attrcheck::"
"""How the node ids of verdicts on the whole run begin."""


class Controller:
    """The hooks of the process that gathers; on xdist workers there is none.

    problem: what makes the selection useless, noticed while items were generated.
    lines: of the report, for the terminal.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.session = Session()
        self.painter: Painter | None = None
        self.problem = ""
        self.lines: list[str] = []

    @property
    def folder(self) -> str:
        """Where workers leave small files for the controller; made when the first one does."""
        return os.path.join(tempfile.gettempdir(), f"attrcheck-{self.session.run}")

    @property
    def live(self) -> str:
        """The folder of live files; none unless somebody watches."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or not reporter.isatty or reporter.verbosity < 0:
            return ""
        return self.folder

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell an xdist worker which run it belongs to."""
        node.workerinput.update(
            attr_run=self.session.run, attr_folder=self.folder, attr_live=self.live
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Refuse bad options before any worker is started."""
        options.check_all(self.config)
        if options.selects(self.config):
            from attrcheck.plugin.selection import check_names  # it imports every registry

            check_names(self.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self) -> None:
        """Refuse a selection that turned out to be empty."""
        if self.problem:
            raise pytest.UsageError(f"attrcheck: {self.problem}")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what will run here."""
        self._expect(collecting.ours(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any) -> None:
        """Note what a worker will run."""
        self._expect(collecting.collected_by(self.folder, node.gateway.id))

    def _expect(self, items: Mapping[str, str]) -> None:
        self.session.expect(items)
        if items and self.painter is None and self.live:
            from attrcheck.plugin.progress import start

            self.painter = start(self.config.get_terminal_writer(), self.live)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what an item sent; make room for what pytest is about to print."""
        if self.painter is not None:
            self.painter.wipe()
        if text := getattr(report, "attrcheck", None):
            self.session.take(text)
        elif report.skipped or (report.when == "call" and report.passed):
            self.session.excuse(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fuse, decide and report; each verdict on the run is logged like a test of its own."""
        if self.painter is not None:
            self.painter.stop()
            self.painter = None
        if not self.session.used or self.config.getoption("collectonly"):
            return
        from attrcheck.plugin.conclusion import conclude, publish

        workers = self.config.getoption("numprocesses", None) or 0
        document, verdicts = conclude(self.session, options.gates(self.config), workers)
        if options.value(self.config, "report"):
            folder = options.folder(self.config, "report_dir")
            self.lines, problems = publish(document, folder)
            verdicts += problems
        session.testscollected += len(verdicts)
        for verdict in verdicts:
            self.config.hook.pytest_runtest_logreport(report=_report(verdict))
        if session.exitstatus == pytest.ExitCode.OK and not all(v.passed for v in verdicts):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Count a verdict on the run, but leave pytest's finished line of dots alone."""
        if report.nodeid.startswith(VERDICT):
            return report.outcome, "", report.outcome.upper()
        return None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the leaderboard."""
        if self.lines:
            terminalreporter.section("attrcheck")
            for line in self.lines:
                terminalreporter.line(line)

    def pytest_unconfigure(self) -> None:
        """Leave nothing behind; by now no worker runs any more."""
        shutil.rmtree(self.folder, ignore_errors=True)


def of(config: pytest.Config) -> Controller | None:
    """The controller, if this is its process."""
    controller: Controller | None = config.pluginmanager.get_plugin(NAME)
    return controller


def _report(verdict: RunVerdict) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=f"{VERDICT}{verdict.name}",
        location=("attrcheck", None, verdict.name),
        keywords={},
        outcome="passed" if verdict.passed else "failed",
        longrepr=None if verdict.passed else "\n".join(verdict.lines),
        when="call",
    )
