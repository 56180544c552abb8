"""The project of a run in a process that pytest did not start, such as a worker of Ray.

What a project registers is known there by the same means as here: pytest reads the command line,
its ini file and conftests, and collects. No item is run, and the session never finishes, so that
no plugin writes files.
"""

from __future__ import annotations

import io
import os
import socket
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace

import pytest
from _pytest.config import _prepareconfig

from attrcheck.contracts import Settings
from attrcheck.errors import AttrcheckError, cut
from attrcheck.plugin.items import Worker, resolve

VARIABLES = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD")
"""Of the environment, which pytest reads beside the command line."""
QUIET = ("--capture=no", "--collect-only")


@dataclass(frozen=True)
class Project:
    """What another process has to know to find the same project."""

    run: str
    folder: str
    arguments: tuple[str, ...]
    path: tuple[str, ...]
    variables: dict[str, str]
    threads: int

    @classmethod
    def of(cls, config: pytest.Config, run: str, threads: int) -> Project:
        """The project of this process."""
        given = config.invocation_params
        variables = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        return cls(run, str(given.dir), tuple(given.args), tuple(sys.path), variables, threads)

    def load(self) -> Settings:
        """Register here what the project registers; the settings of its run, in this process."""
        host = socket.gethostname()
        try:
            os.chdir(self.folder)
        except OSError as error:
            raise AttrcheckError(
                f"{host} cannot enter {self.folder} ({error.strerror}): every node needs the "
                "project, its data and its libraries in the same place"
            ) from error
        sys.path += [place for place in self.path if place not in sys.path]
        os.environ.update(self.variables)
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            try:
                config = _prepareconfig([*self.arguments, *QUIET], [sys.modules[__name__]])
                session = _collected(config)
            except (Exception, SystemExit, pytest.exit.Exception) as error:
                said.write(f"{type(error).__name__}: {error}")
                session = None
            if session is None or session.testsfailed:
                text = cut(said.getvalue().strip(), 2000)
                raise AttrcheckError(f"{host} cannot collect {self.folder}:\n{text}")
            settings = resolve(config, Worker(0, 1, self.run, "", ""))
        return replace(settings, threads=self.threads)


def _collected(config: pytest.Config) -> pytest.Session:
    """The session of a configuration after its collection."""
    config._do_configure()
    session = pytest.Session.from_config(config)
    config.hook.pytest_sessionstart(session=session)
    config.hook.pytest_collection(session=session)
    return session
