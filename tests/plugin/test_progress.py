"""Progress: live files of workers, and the line that the controller paints from them."""

import io
import os
import pty
from pathlib import Path
from types import SimpleNamespace

import pytest

from attrcheck.plugin import progress
from attrcheck.plugin.progress import Live, Painter, start

WIPE = "\x1b[K"


class Terminal(io.StringIO):
    """Remembers what was written after it is closed."""

    def close(self):
        self.text = self.getvalue()
        super().close()


def writer(width=80, used=10):
    return SimpleNamespace(fullwidth=width, width_of_current_line=used)


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "run")


def painted(folder, **room):
    """What one painting writes."""
    terminal = io.StringIO()
    Painter(writer(**room), terminal, folder).paint()
    return terminal.getvalue()


def shown(text):
    return f"{WIPE}\x1b[2m{text}\x1b[0m\x1b[{len(text)}D"


def test_a_worker_says_what_it_does_in_one_file(folder):
    live = Live(folder)
    live.say("first")
    live.say("second")
    [path] = Path(folder).iterdir()
    assert path.name == f"live-{os.getpid()}"
    assert path.read_text() == "second"


def test_without_a_folder_a_worker_is_silent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Live("").say("anything")
    assert list(tmp_path.iterdir()) == []


def test_the_line_shows_all_workers_that_have_something_to_say(folder):
    Live(folder).say("digits-resnet-morf")
    for name, text in [("live-1", "a case"), ("live-2", ""), ("collected-gw0.json", "{}")]:
        Path(folder, name).write_text(text)
    text = painted(folder)
    assert "a case" in text
    assert "digits-resnet-morf" in text
    assert text.count(" | ") == 1
    assert "{}" not in text


def test_the_cursor_is_back_where_pytest_left_it(folder):
    Live(folder).say("a long case")
    assert painted(folder) == shown(" a long case")


def test_the_line_is_cut_to_the_room_that_is_left(folder):
    Live(folder).say("abcdefghijklmnopqrstuvwxyz")
    assert painted(folder, width=40, used=10) == shown(" abcdefghijklmnopq")
    assert painted(folder, width=40, used=20) == ""  # too little to be of use
    assert painted(folder, width=40, used=60) == ""


def test_with_nothing_to_say_nothing_is_painted(folder):
    assert painted(folder) == ""
    Live(folder).say("")
    assert painted(folder) == ""


def test_a_stopped_painter_has_wiped_and_paints_no_more(folder, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.001)
    Live(folder).say("a long case")
    terminal = Terminal()
    painter = Painter(writer(), terminal, folder)
    painter.start()
    while "a long case" not in terminal.getvalue():
        pass
    painter.stop()
    assert not painter.is_alive()
    assert terminal.closed
    assert terminal.text.endswith(WIPE)


def test_without_a_terminal_there_is_no_painter(folder, monkeypatch):
    monkeypatch.setattr(os, "ctermid", lambda: os.path.join(folder, "no", "terminal"))
    assert start(writer(), folder) is None
    monkeypatch.delattr(os, "ctermid")
    assert start(writer(), folder) is None


def test_a_pseudo_terminal_is_painted_and_wiped(folder, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.001)
    controller, terminal = pty.openpty()
    monkeypatch.setattr(os, "ctermid", lambda: os.ttyname(terminal))
    Live(folder).say("a long case")
    painter = start(writer(), folder)
    text = b""
    while shown(" a long case").encode() not in text:
        text += os.read(controller, 1000)
    painter.stop()
    while not text.endswith(WIPE.encode()):
        text += os.read(controller, 1000)
    os.close(terminal)
    os.close(controller)
