"""Collection: the items of a run, and which of them are attrcheck's; told, not guessed from ids.

Under xdist only workers see items. Each writes which of them are attrcheck's into the folder of the
run before it reports its collection, and the controller reads it then.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

import pytest

from attrcheck.errors import AttrcheckError, cut, text_of
from attrcheck.plugin import options, scaling
from attrcheck.plugin.outcomes import outcomes

if TYPE_CHECKING:
    from attrcheck.contracts import Case
    from attrcheck.engine.checking import Subject
    from attrcheck.engine.laws import Bound

Names: TypeAlias = dict[str, list[str]]
CHECKED = {
    "attr_check": ("methods",),
    "attr_protocol_check": ("cases", "protocols", "models"),
    "attr_experiment": ("suite",),
}
"""What the checks range over that a test gets through each of these fixtures."""
LAW = "attr_law"
FIXTURES = ("attr_case", *CHECKED, LAW)
SUITES = "attrcheck.suites"
"""Where the suites are installed."""
MOST_TRACEBACK = 20_000
"""Characters of a traceback."""


@dataclass(frozen=True)
class CheckRequest:
    """A check and what it is to look at, in a run of these cases."""

    check: str
    subject: Subject
    cases: tuple[Case, ...]

    @property
    def id(self) -> str:
        """The names of the check and of its subject."""
        return f"{self.check}-{self.subject.name}"


@dataclass(frozen=True)
class LawRequest:
    """A law and what it binds, in a run of these cases."""

    bound: Bound
    cases: tuple[Case, ...]

    @property
    def id(self) -> str:
        """The names of the subject and of the law."""
        return f"{self.bound.subject}-{self.bound.law}"


Request: TypeAlias = "Case | CheckRequest | LawRequest"
"""What an item of attrcheck runs."""


def installed_as(path: Path, config: pytest.Config) -> str:
    """The name by which `--pyargs` finds a file of the suites; nothing for other files.

    As a path its id would lead pytest away from the project, whose conftest has the methods.
    """
    if not config.option.pyargs:
        return ""
    package = importlib.util.find_spec(SUITES)
    folders = (package and package.submodule_search_locations) or ()
    inside = any(path.parent == Path(folder) for folder in folders)
    return f"{SUITES}.{path.stem}" if inside else ""


def generate(metafunc: pytest.Metafunc) -> None:
    """One item for each case for tests that ask for `attr_case`, else for each check or law."""
    fixture = next((name for name in FIXTURES if name in metafunc.fixturenames), None)
    if fixture is None:
        return
    rest_when_idle()
    from attrcheck.plugin import selection

    config = metafunc.config
    whole = scaling.task(config) is None  # checks look at all shards, laws at none
    parameters: Sequence[Request]
    try:
        cases = selection.cases(config)
        if fixture == "attr_case":
            parameters = cases
        elif not whole:
            parameters = []
        elif fixture == LAW:
            parameters = [LawRequest(law, tuple(cases)) for law in selection.laws(config)]
        else:
            parameters = _requests(config, fixture, cases)
    except outcomes() as error:  # it would skip the whole test file
        why = f"{type(error).__name__}: {error}"
        raise AttrcheckError(f"code that registers things raised {why}") from error
    metafunc.parametrize(
        fixture, [pytest.param(wanted, id=wanted.id) for wanted in parameters], indirect=True
    )


def _requests(config: pytest.Config, fixture: str, cases: list[Case]) -> list[CheckRequest]:
    from attrcheck.engine.checking import subjects
    from attrcheck.plugin import selection

    methods, profile = selection.methods(config), str(options.value(config, "profile"))
    requests = [
        CheckRequest(check.name, subject, tuple(cases))
        for check in selection.checks(config)
        if check.over in CHECKED[fixture]
        for subject in subjects(check, cases, methods, profile)
    ]
    # Those that look at the same case, or pair, side by side: what is loaded serves all of them.
    places = {case.id: place for place, case in enumerate(cases)}
    places |= {case.pair: place for place, case in enumerate(cases)}  # behind its last case
    return sorted(requests, key=lambda request: places.get(request.subject.name, len(cases)))


def without_subject(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Items of attrcheck for which nothing was selected."""
    return [
        item
        for item in items
        if item.name.endswith("[NOTSET]")
        and any(name in FIXTURES for name in getattr(item, "fixturenames", ()))
    ]


def ours(items: Iterable[pytest.Item]) -> dict[str, str]:
    """The items that are attrcheck's: node ids, and the ids under which they send results.

    A test for which nothing was selected has a parameter without an id.
    """
    parameters = {item.nodeid: _parameters(item) for item in items}
    return {
        node_id: known[name].id
        for node_id, known in parameters.items()
        for name in FIXTURES
        if hasattr(known.get(name), "id")
    }


def parameters_of(item: pytest.Item) -> list[Request]:
    """What an item runs, if it is attrcheck's."""
    return [value for name, value in _parameters(item).items() if name in FIXTURES]


def escape(report: pytest.TestReport) -> None:
    """Spell out what a terminal must not get of a traceback; a lone surrogate would end xdist."""
    from attrcheck.report.text import for_terminal

    text = cut(report.longreprtext, MOST_TRACEBACK)
    if (escaped := for_terminal(text)) != report.longreprtext:
        report.longrepr = escaped


class Warnings:
    """Escapes the warnings of some items before others show them or send them to the controller."""

    def __init__(self, node_ids: Iterable[str]) -> None:
        self.node_ids = frozenset(node_ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, nodeid: str
    ) -> None:
        """Spell out what a terminal must not get; a lone surrogate would end xdist."""
        if nodeid in self.node_ids and isinstance(warning_message.message, Warning):
            escape_warning(warning_message)


def escape_warning(told: warnings.WarningMessage) -> None:
    """Make a warning plain, if its text or its class would not reach the controller as they are."""
    from attrcheck.report.text import for_terminal

    message, category = cast(Warning, told.message), told.category
    text = for_terminal(text_of(message))
    if getattr(sys.modules.get(category.__module__), category.__name__, None) is not category:
        # Made on the fly: nobody else finds it.
        told.message = UserWarning(for_terminal(cut(category.__name__)) + f": {text}")
        told.category = UserWarning
    elif message.args != (text,):
        told.message = UserWarning(text)


def _parameters(item: pytest.Item) -> dict[str, Request]:
    return getattr(getattr(item, "callspec", None), "params", {})


def named(config: pytest.Config) -> Names:
    """What gates may name, if there are any; see `selection.names`."""
    if not options.value(config, "gate"):
        return {}
    from attrcheck.plugin import selection

    return selection.names(config)


def tell(items: Iterable[pytest.Item], folder: str, worker: str, names: Names) -> None:
    """Write down, on an xdist worker, which of its items are attrcheck's, if any are.

    names: what gates may name.
    """
    if collected := ours(items):
        os.makedirs(folder, exist_ok=True)
        _path(folder, worker).write_text(json.dumps([collected, names]), encoding="utf-8")


def collected_by(folder: str, worker: str) -> tuple[dict[str, str], Names]:
    """What a worker wrote down: its items that are attrcheck's, and what gates may name."""
    path = _path(folder, worker)
    if not path.exists():
        return {}, {}
    collected, names = json.loads(path.read_text("utf-8"))
    return collected, names


def _path(folder: str, worker: str) -> Path:
    return Path(folder, f"collected-{worker}.json")


def rest_when_idle() -> None:
    """Keep the idle OpenMP threads of one worker from spinning while another one computes."""
    if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
