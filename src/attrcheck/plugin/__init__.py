"""Every pytest hook and fixture of attrcheck, and nothing else.

This module is loaded by every pytest run in an environment where attrcheck is installed. So it
imports nothing heavy, no registry either, and stays silent, until an attrcheck item is collected.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import attrcheck
from attrcheck.errors import AttrcheckError
from attrcheck.plugin import collecting, controller, hookspecs, options, rooting, scaling

if TYPE_CHECKING:
    from attrcheck.plugin.items import CaseItem, CheckItem
    from attrcheck.plugin.lawful import LawItem
    from attrcheck.plugin.properties import Properties

SENT = pytest.StashKey[str]()
"""What an item sent, until its report is made."""
ELSEWHERE = "attrcheck.plugin.elsewhere"
"""Is a plugin of processes that know the project and run nothing."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    options.add(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that others may implement."""
    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Refuse a lost root; say how idle threads rest before a conftest imports torch."""
    rooting.check_root(early_config)
    if options.used(early_config):
        collecting.rest_when_idle()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Keep a plan in this process, whatever `-n` says."""
    if options.value(config, "plan") and config.pluginmanager.hasplugin("xdist"):
        config.option.numprocesses, config.option.dist, config.option.tx = 0, "no", []


def pytest_configure(config: pytest.Config) -> None:
    """Let projects register what they bring; unless this is an xdist worker, begin to gather."""
    config.hook.pytest_attrcheck_register.call_historic(kwargs={"attrcheck": attrcheck})
    if not hasattr(config, "workerinput") and not config.pluginmanager.hasplugin(ELSEWHERE):
        config.pluginmanager.register(controller.Controller(config), controller.NAME)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Give items of the installed suites ids that can be pasted back, from any folder."""
    if name := collecting.installed_as(module_path, parent.config):
        return pytest.Module.from_parent(parent, path=module_path, nodeid=name)
    return None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item for each case, or for each check or law and what it looks at."""
    try:
        collecting.generate(metafunc)
    except AttrcheckError as error:
        gathering = controller.of(metafunc.config)
        if gathering is None:
            raise
        gathering.problem = str(error)  # raised here, it would pass for a fault of the test file


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests for which nothing was selected; pytest would show each as skipped."""
    if idle := collecting.without_subject(items):
        config.hook.pytest_deselected(items=idle)
        items[:] = [item for item in items if item not in idle]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Escape warnings of attrcheck's items; an xdist worker tells which they are."""
    collected = collecting.ours(session.items)
    if not collected:
        return
    session.config.pluginmanager.register(collecting.Warnings(collected))
    if (given := getattr(session.config, "workerinput", None)) is not None:
        # Before the collection is reported.
        names = collecting.named(session.config)
        collecting.tell(session.items, given["attr_folder"], given["workerid"], names)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Print the plan in place of running items, or have a cluster begin, if that is asked for."""
    if session.testsfailed:
        return None
    if not options.value(session.config, "plan"):
        _distribute(session)
        return None
    from attrcheck.plugin.planning import lines

    writer = session.config.get_terminal_writer()
    writer.line()
    for line in lines(session.config, session.items):
        writer.line(line)
    return True


def _distribute(session: pytest.Session) -> None:
    config = session.config
    gathering = controller.of(config)
    asked = scaling.executor(config) != "local" and not config.getoption("collectonly")
    if gathering is None or not asked or not collecting.ours(session.items):
        return
    from attrcheck.plugin import distributing

    gathering.refused = True
    distributing.start(config, session.items)
    gathering.refused = False


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let go of a cluster."""
    if distributing := sys.modules.get("attrcheck.plugin.distributing"):
        distributing.end(config)


@pytest.fixture
def attr_case(request: pytest.FixtureRequest) -> CaseItem:
    """A case of the matrix; `attr_case.run()` ranks all methods in it."""
    from attrcheck.plugin.items import CaseItem, worker_of

    return CaseItem(request.param, request.config, worker_of(request.config), _sender(request))


@pytest.fixture
def attr_check(request: pytest.FixtureRequest) -> CheckItem:
    """A check of a method; `attr_check.run()` carries it out."""
    return _check_item(request)


@pytest.fixture
def attr_protocol_check(request: pytest.FixtureRequest) -> CheckItem:
    """A check of a case, of a protocol or of a model."""
    return _check_item(request)


@pytest.fixture
def attr_experiment(request: pytest.FixtureRequest) -> CheckItem:
    """A check of the harness as a whole."""
    return _check_item(request)


@pytest.fixture
def attr_law(request: pytest.FixtureRequest) -> LawItem:
    """A law of a protocol, a removal, a method or the fusion; `attr_law.run()` tries it."""
    from attrcheck.plugin.items import worker_of
    from attrcheck.plugin.lawful import LawItem

    return LawItem(request.param, request.config, worker_of(request.config), _sender(request))


def _check_item(request: pytest.FixtureRequest) -> CheckItem:
    from attrcheck.plugin.items import CheckItem, worker_of

    return CheckItem(request.param, request.config, worker_of(request.config), _sender(request))


def _sender(request: pytest.FixtureRequest) -> Callable[[str, Properties], None]:
    """Keeps what an item sends until its report is made; its properties are pytest's to keep."""

    def send(text: str, properties: Properties) -> None:
        request.node.stash[SENT] = text
        request.node.user_properties.extend(properties)

    return send


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach what the item sent to its report: a string, which crosses to the controller."""
    report = yield
    if report.failed and collecting.ours([item]):
        collecting.escape(report)
    if call.when == "call" and SENT in item.stash:
        report.attrcheck = item.stash[SENT]  # type: ignore[attr-defined]
    return report
