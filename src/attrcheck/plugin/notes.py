"""Notes of items that are printed while the run goes on, such as the accuracy of a pair.

An item leaves a small file in the controller's folder; the controller prints what is new there
whenever an item ends, and at once what was noted in its own process.
"""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from pathlib import Path

import pytest

FILES = "note-"
"""How the names of notes begin."""


def leave(folder: str, about: str, text: str) -> None:
    """Note a text about something, unless some item already has."""
    name = FILES + hashlib.sha256(about.encode()).hexdigest()[:16]
    Path(folder).mkdir(exist_ok=True)
    try:
        with open(Path(folder, name), "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return


class Board:
    """The controller's side: prints every note once."""

    def __init__(self, config: pytest.Config, folder: str) -> None:
        self._config = config
        self._folder = Path(folder)
        self._shown: set[str] = set()

    def show(self) -> None:
        """Print what is new, on lines of its own; nothing for those who want it quiet."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or reporter.verbosity < 0:
            return
        new = [path for path in self._folder.glob(f"{FILES}*") if path.name not in self._shown]
        texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(new)}
        texts = {name: text for name, text in texts.items() if text}  # else it is being written
        if not texts:
            return
        self._shown |= texts.keys()
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            reporter.ensure_newline()
            if self._config.get_terminal_writer().width_of_current_line:  # dots of xdist's
                reporter.line("")
            for text in sorted(texts.values()):
                reporter.write_line(text)
            reporter.flush()
