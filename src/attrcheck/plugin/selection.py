"""What the options of a run select: names of every kind. Imported only when names matter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from attrcheck.checks import check
from attrcheck.contracts import Case, Check
from attrcheck.datasets import dataset
from attrcheck.engine.cases import selected_protocols, table
from attrcheck.engine.settings import affords
from attrcheck.errors import AttrcheckError
from attrcheck.methods import method
from attrcheck.models import model
from attrcheck.plugin import suites, tables
from attrcheck.plugin.options import SELECTIONS, given, lawless, suite, unchecked, value
from attrcheck.plugin.outcomes import outcomes
from attrcheck.protocols import protocol
from attrcheck.registry import Registry, RegistryError, asks, select
from attrcheck.specs import anchored
from attrcheck.store.digests import digest

if TYPE_CHECKING:
    from attrcheck.engine.laws import Bound

KINDS: dict[str, Registry[Any]] = {
    "datasets": dataset,
    "models": model,
    "protocols": protocol,
    "methods": method,
    "checks": check,
}


def patterns(config: pytest.Config, kind: str) -> str:
    """What an option selects, once the names that it may select are known.

    Relative paths begin where they were said: where pytest runs, or at the root of the project.
    Where nobody says anything, a suite selects what is there of it.
    """
    if kind in tables.TABLES:
        ini = config.inipath
        tables.bind(ini if ini and ini.name == tables.FILE else config.rootpath / tables.FILE)
        there = suites.arranged(config)
        if there is not None and given(config, kind) is None:
            return ",".join(there.datasets if kind == "datasets" else there.models)
    base = (
        config.rootpath
        if config.getoption(f"attr_{kind}") is None
        else config.invocation_params.dir
    )
    return anchored(str(value(config, kind)), base)


def whole(config: pytest.Config) -> tuple[list[str], list[str]]:
    """The cases and methods of the suite, else those that the profile runs unasked."""
    profile = str(value(config, "profile"))
    if (chosen := suite(config)) is not None:
        return chosen.cases, list(chosen.methods)
    return [known.id for known in table(profile=profile)], affordable(profile)


def check_names(config: pytest.Config) -> None:
    """A usage error for a name on the command line that nothing has."""
    for kind in SELECTIONS:
        if config.getoption(f"attr_{kind}") and not (kind == "checks" and unchecked(config)):
            try:
                KINDS[kind].select(patterns(config, kind))
            except AttrcheckError as error:
                raise pytest.UsageError(f"--attr-{kind}: {error}") from error


def cases(config: pytest.Config) -> list[Case]:
    """The cases selected."""
    return table(
        patterns(config, "datasets"),
        patterns(config, "models"),
        patterns(config, "protocols"),
        str(value(config, "profile")),
    )


def methods(config: pytest.Config) -> list[str]:
    """The methods selected; where none is asked for, those that the profile affords."""
    wanted = patterns(config, "methods")
    chosen = method.select(wanted)
    if asks(wanted):
        return chosen
    return [name for name in affordable(value(config, "profile")) if name in chosen]


def names(config: pytest.Config) -> dict[str, list[str]]:
    """What gates may name: each `method`, `case` and `protocol` selected."""
    chosen = cases(config)
    return {
        "method": methods(config),
        "case": [case.id for case in chosen],
        "protocol": list(dict.fromkeys(case.protocol for case in chosen)),
    }


def checks(config: pytest.Config) -> list[Check]:
    """The checks selected; where none is asked for, those that the profile affords."""
    if unchecked(config):
        return []
    wanted, full = patterns(config, "checks"), value(config, "profile") == "full"
    chosen = [check.get(name) for name in check.select(wanted)]
    return [spec for spec in chosen if asks(wanted) or full or spec.default]


def laws(config: pytest.Config) -> list[Bound]:
    """The laws selected, of the protocols and methods selected, of removals and of the fusion."""
    if lawless(config):
        return []
    profile = str(value(config, "profile"))
    from attrcheck.engine.laws import bound  # brings torch, which the controller can do without

    known = bound(protocols(config), methods(config), profile)
    globs = [part.strip() for part in str(value(config, "laws")).split(",") if part.strip()]
    names = list(dict.fromkeys(law.law for law in known))
    chosen = select(names, globs)
    if not chosen:
        raise RegistryError(f"--attr-laws {','.join(globs)} selects no law of {', '.join(names)}")
    return [law for law in known if law.law in chosen]


def protocols(config: pytest.Config) -> list[str]:
    """The protocols selected, whether or not there is a case for them."""
    return selected_protocols(patterns(config, "protocols"), str(value(config, "profile")))


def affordable(profile: str) -> list[str]:
    """The methods that a profile runs unasked."""

    def fits(name: str) -> bool:
        try:
            return affords(method.get(name))
        except Exception:
            return True  # one that cannot be imported takes part, and fails alone, by name
        except outcomes():
            return True  # nor does it skip the others

    return [name for name in method if profile == "full" or fits(name)]


def signature(cases: Iterable[str], methods: Iterable[str]) -> str:
    """What tells a choice of cases and methods from another of the same size."""
    return digest(sorted(cases), sorted(methods))
