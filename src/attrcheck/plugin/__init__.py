"""Every pytest hook of attrcheck, and nothing else.

This module is loaded by every pytest run in an environment where attrcheck is installed. So it
imports nothing heavy, and stays silent, until an attrcheck item is collected.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

import attrcheck
from attrcheck.errors import AttrcheckError
from attrcheck.plugin import hookspecs, options
from attrcheck.plugin.session import Session

if TYPE_CHECKING:
    from attrcheck.plugin.conclusion import Verdict
    from attrcheck.plugin.items import CaseItem, CheckItem, Worker
    from attrcheck.plugin.progress import Painter

VERDICT = "attrcheck::"
"""How the node ids of verdicts on the whole run begin."""
PAYLOAD = pytest.StashKey[str]()
CHECKED = {
    "attr_check": ("methods",),
    "attr_protocol_check": ("cases", "protocols", "models"),
    "attr_experiment": ("suite",),
}
"""What the checks range over that a test gets through each of these fixtures."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    options.add(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that others may implement."""
    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Keep one worker's idle OpenMP threads from spinning while another worker computes.

    Has to be said before torch is imported, which a conftest may do.
    """
    if options.used(early_config):
        _rest_when_idle()


def pytest_configure(config: pytest.Config) -> None:
    """Let projects register what they bring; on the controller, begin to gather."""
    config.hook.pytest_attrcheck_register.call_historic(kwargs={"attrcheck": attrcheck})
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Controller(config), "attrcheck-controller")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item a case for tests that ask for `attr_case`, one a check and subject for others."""
    wanted = sorted({"attr_case", *CHECKED} & set(metafunc.fixturenames))
    if not wanted:
        return
    _rest_when_idle()
    from attrcheck.engine.cases import table

    def chosen(kind: str) -> str:
        return str(options.value(metafunc.config, kind))

    try:
        cases = table(chosen("datasets"), chosen("models"), chosen("protocols"), chosen("profile"))
        if "attr_case" in wanted:
            parameters = [pytest.param(case, id=case.id) for case in cases]
            metafunc.parametrize("attr_case", parameters, indirect=True)
        else:
            from attrcheck.engine.checking import subjects

            profile, methods = chosen("profile"), options.methods(metafunc.config)
            parameters = [
                pytest.param((check.name, subject, cases), id=f"{check.name}-{subject.name}")
                for check in options.checks(metafunc.config)
                if check.over in CHECKED[wanted[0]]
                for subject in subjects(check, cases, methods, profile)
            ]
            metafunc.parametrize(wanted[0], parameters, indirect=True)
    except AttrcheckError as error:
        controller = metafunc.config.pluginmanager.get_plugin("attrcheck-controller")
        if controller is None:
            raise
        controller.problem = str(error)  # raised here, it would pass for a fault of the test file


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests for which nothing was selected; pytest would show each as skipped."""
    idle = [item for item in items if item.name.endswith("[NOTSET]") and _is_ours(item)]
    if idle:
        config.hook.pytest_deselected(items=idle)
        items[:] = [item for item in items if item not in idle]


def _rest_when_idle() -> None:
    """Tell OpenMP, if this is one worker of several."""
    if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def _is_ours(item: pytest.Item) -> bool:
    return bool({"attr_case", *CHECKED} & set(getattr(item, "fixturenames", ())))


@pytest.fixture
def attr_case(request: pytest.FixtureRequest) -> CaseItem:
    """A case of the matrix; `attr_case.run()` ranks all methods in it."""
    from attrcheck.plugin.items import CaseItem

    return CaseItem(request.param, request.config, _worker(request.config), _sender(request))


@pytest.fixture
def attr_check(request: pytest.FixtureRequest) -> CheckItem:
    """A check of a method; `attr_check.run()` carries it out."""
    return _check_item(request)


@pytest.fixture
def attr_protocol_check(request: pytest.FixtureRequest) -> CheckItem:
    """A check of a case, of two, of a protocol or of a model."""
    return _check_item(request)


@pytest.fixture
def attr_experiment(request: pytest.FixtureRequest) -> CheckItem:
    """A check of the harness as a whole."""
    return _check_item(request)


def _check_item(request: pytest.FixtureRequest) -> CheckItem:
    from attrcheck.plugin.items import CheckItem

    check, subject, cases = request.param
    worker, sender = _worker(request.config), _sender(request)
    return CheckItem(check, subject, cases, request.config, worker, sender)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach what the item sent to its report: a string, which crosses to the controller."""
    report = yield
    if call.when == "call" and PAYLOAD in item.stash:
        report.attrcheck = item.stash[PAYLOAD]  # type: ignore[attr-defined]
    return report


class Controller:
    """Gathers what items send, wherever they ran; fuses, judges and reports at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.session = Session()
        self.painter: Painter | None = None
        self.problem = ""
        self.lines: list[str] = []

    @property
    def live(self) -> str:
        """The folder of live files; none unless somebody watches."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or not reporter.isatty or reporter.verbosity < 0:
            return ""
        return os.path.join(tempfile.gettempdir(), f"attrcheck-{self.session.run}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell an xdist worker which run it belongs to."""
        node.workerinput.update(attr_run=self.session.run, attr_live=self.live)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Refuse bad options before any worker is started."""
        options.check_all(self.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self) -> None:
        """Refuse a selection that turned out to be empty."""
        if self.problem:
            raise pytest.UsageError(f"attrcheck: {self.problem}")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what will run here."""
        self._expect([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Note what the workers will run."""
        self._expect(ids)

    def _expect(self, ids: list[str]) -> None:
        self.session.expect(ids)
        if self.session.expected and self.painter is None and self.live:
            from attrcheck.plugin.progress import start

            self.painter = start(self.config.get_terminal_writer(), self.live)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what an item sent; make room for what pytest is about to print."""
        if self.painter is not None:
            self.painter.wipe()
        if payload := getattr(report, "attrcheck", None):
            self.session.take(payload)
        elif report.skipped or (report.when == "call" and report.passed):
            self.session.dismiss(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fuse, judge and report; each verdict on the run is logged like a test of its own."""
        if self.painter is not None:
            self.painter.stop()
            self.painter = None
        if not self.session.expected or self.config.getoption("collectonly"):
            return
        from attrcheck.plugin.conclusion import conclude, publish

        workers = self.config.getoption("numprocesses", None) or 0
        document, verdicts = conclude(self.session, options.rules(self.config), workers)
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


def _worker(config: pytest.Config) -> Worker:
    """The process that this is: an xdist worker, or the only one."""
    from attrcheck.plugin.items import Worker

    if (given := getattr(config, "workerinput", None)) is not None:
        index = int(given["workerid"].removeprefix("gw"))
        return Worker(index, given["workercount"], given["attr_run"], given["attr_live"])
    controller = config.pluginmanager.get_plugin("attrcheck-controller")
    assert controller is not None
    return Worker(0, 1, controller.session.run, controller.live)


def _sender(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Keeps what an item sends until its report is made."""

    def send(text: str) -> None:
        request.node.stash[PAYLOAD] = text

    return send


def _report(verdict: Verdict) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=f"{VERDICT}{verdict.name}",
        location=("attrcheck", None, verdict.name),
        keywords={},
        outcome="passed" if verdict.passed else "failed",
        longrepr=None if verdict.passed else "\n".join(verdict.lines),
        when="call",
    )
