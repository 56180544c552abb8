"""The process that a user started: gathers what items send, fuses, decides and reports."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from attrcheck.errors import AttrcheckError
from attrcheck.pace import in_ci
from attrcheck.plugin import collecting, ends, notes, options, scaling, surplus
from attrcheck.plugin.closing import Closing
from attrcheck.plugin.session import Session
from attrcheck.plugin.verdicts import PREFIX

if TYPE_CHECKING:
    from attrcheck.plugin.progress import Painter, Ticker
    from attrcheck.report.baselines import Baseline

NAME = "attrcheck-controller"
"""Of the plugin."""
REPEATED = "repeated failures"
"""What pytest counts failures as that say nothing new."""
FINE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""The exit codes of runs that came to their end."""


class Controller:
    """The hooks of the process that gathers; on xdist workers there is none.

    problem: what makes the selection useless, noticed while items were generated.
    refused: whether names, gates or the baseline were, so that nothing runs. baseline: the report
    to compare with. lines: of the report, for the terminal. nodes: the xdist workers.
    collected: those of them that have told what they will run.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.session = Session()
        self.painter: Painter | Ticker | None = None
        self.problem = ""
        self.lines: list[str] = []
        self.nodes: list[Any] = []
        self.collected: list[Any] = []
        self.interrupted = False
        self.baseline: Baseline | None = None
        self.refused = False
        self.signals = ends.Signals()
        self.notes = notes.Board(config, self.folder)

    @property
    def folder(self) -> str:
        """Where workers leave small files for the controller; made when the first one does."""
        return os.path.join(tempfile.gettempdir(), f"attrcheck-{self.session.run}")

    @property
    def live(self) -> str:
        """The folder of live files; none unless somebody watches, or CI keeps what is told."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or reporter.verbosity < 0:
            return ""
        return self.folder if self.on_terminal or in_ci() else ""

    @property
    def on_terminal(self) -> bool:
        """Whether somebody may watch."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        return reporter is not None and reporter.isatty

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell an xdist worker which run it belongs to."""
        self.nodes.append(node)
        node.workerinput.update(
            attr_run=self.session.run, attr_folder=self.folder, attr_live=self.live
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Refuse bad options before any worker is started."""
        options.check_all(self.config)
        scaling.check(self.config)
        if options.used(self.config):
            self.signals.install()
        if options.selects(self.config):
            from attrcheck.plugin.selection import check_names  # it imports every registry

            check_names(self.config)

    def pytest_report_header(self) -> list[str]:
        """Say what of a suite is not here."""
        if not options.value(self.config, "suite"):
            return []
        from attrcheck.plugin.suites import header

        try:
            return header(self.config)
        except AttrcheckError:
            return []  # the collection says so

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Refuse a selection that turned out to be empty, and gates on what it does not have."""
        if self.problem:
            self.refused = True
            raise pytest.UsageError(f"attrcheck: {self.problem}")
        if collecting.ours(items):
            self._prepare(collecting.named(self.config))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what will run here."""
        self._expect(collecting.ours(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Note what a worker will run; once all have told, some of them may not be needed."""
        items, names = collecting.collected_by(self.folder, node.gateway.id)
        if items and not self.session.used:
            self._prepare(names)
        self._expect(items)
        self.collected.append(node)
        all_told = len(self.collected) == self.config.getoption("numprocesses", None)
        if all_told and items and items.keys() >= {*ids}:
            self._dismiss()

    def _dismiss(self) -> None:
        """Let workers go that have no core to themselves; they have loaded no network yet."""
        ready = [node for node in self.nodes if node in self.collected]
        if remark := surplus.dismiss(self.config, ready):
            notes.leave(self.folder, "workers", remark)
            self.show_notes()

    def _prepare(self, names: collecting.Names) -> None:
        """Read the baseline and refuse gates that nobody could decide, before anything runs.

        Only now is it known that attrcheck has a part in the run: what a file says of gates and
        baselines is for such runs alone.
        """
        if scaling.task(self.config) is not None:
            return  # nothing is decided, nor compared
        from attrcheck.plugin.baselines import baseline_of, check_gates

        self.refused = True
        check_gates(self.config, names)
        self.baseline = baseline_of(self.config)
        self.refused = False

    def _expect(self, items: Mapping[str, str]) -> None:
        if self.refused:
            return
        first = not self.session.used
        self.session.expect(items)
        if items and first:
            self._begin()
        if items and self.painter is None and self.live:
            from attrcheck.plugin.progress import Overview, start

            writer = self.config.get_terminal_writer()
            overview = Overview(self.live, self.session.count)
            self.painter = start(overview, writer, self.on_terminal)

    def _begin(self) -> None:
        """Get ready once it is known that attrcheck has a part in the run."""
        self.signals.install()
        if self.config.getoption("collectonly") or options.value(self.config, "plan"):
            return
        from attrcheck.store.sweeping import sweep  # an idle plugin has no need of it

        sweep(options.folder(self.config, "store"))
        if options.value(self.config, "report") and scaling.task(self.config) is None:
            from attrcheck.report.files import set_aside  # likewise

            set_aside(options.folder(self.config, "report_dir"))

    def show_notes(self) -> None:
        """Print what items noted, where progress was shown."""
        self._make_room()
        self.notes.show()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Make room for what pytest is about to print."""
        self._make_room()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Count an item that is done, and make room likewise."""
        self.session.done.add(nodeid)
        self._make_room()

    def _make_room(self) -> None:
        if self.painter is not None:
            self.painter.wipe()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what an item sent; make room for what pytest is about to print."""
        self.show_notes()
        if text := getattr(report, "attrcheck", None):
            self.session.take(text)
        elif report.skipped or (report.when == "call" and report.passed):
            self.session.excuse(report.nodeid)
        if report.when == "call" and report.failed:
            self.session.fail(report.nodeid, report.longreprtext)

    def pytest_keyboard_interrupt(self) -> None:
        """Note that workers may still be at work: after Ctrl-C, a signal or `pytest.exit`."""
        self.interrupted = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fuse, decide and report; each verdict on the run is logged like a test of its own."""
        self.signals.close()
        if self.signals.received == "SIGHUP":
            ends.discard_output()
        if self.interrupted:
            ends.stop(self.nodes)
        if self.painter is not None:
            with suppress(OSError):  # the terminal is gone
                self.painter.stop()
            self.painter = None
        idle = self.config.getoption("collectonly") or options.value(self.config, "plan")
        if idle or self.refused:
            return
        closing = Closing(self.config, self.session, self.folder, self.baseline)
        verdicts = closing.verdicts(complete=session.exitstatus in FINE)
        self.lines += closing.lines
        session.testscollected += len(verdicts)
        if session.exitstatus in FINE and not all(verdict.passed for verdict in verdicts):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        for verdict in verdicts:
            self.config.hook.pytest_runtest_logreport(report=verdict.report())

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, str | tuple[str, dict[str, bool]]] | None:
        """Count findings, and verdicts on the run, which leave the finished line of dots alone."""
        if report.nodeid.startswith(PREFIX):
            return report.outcome, "", report.outcome.upper()
        if report.when == "call" and self.session.is_finding(report.nodeid):
            return "findings", "f", ("FINDING", {"yellow": True})
        if report.when == "call" and report.nodeid in self.session.repeated:
            # Failed like any other, but the cause is shown once, with all its cases.
            return REPEATED, "F", ("FAILED", {"red": True})
        return None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the leaderboard."""
        if self.lines:
            terminalreporter.section("attrcheck")
            for line in self.lines:
                terminalreporter.line(line)

    def pytest_unconfigure(self) -> None:
        """Leave nothing behind; by now no worker runs any more."""
        self.signals.restore()
        shutil.rmtree(self.folder, ignore_errors=True)


def of(config: pytest.Config) -> Controller | None:
    """The controller, if this is its process."""
    controller: Controller | None = config.pluginmanager.get_plugin(NAME)
    return controller
