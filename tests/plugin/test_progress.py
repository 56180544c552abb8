"""Progress: live files of workers, the rows that the controller paints from them, lines in CI."""

import io
import os
import pty
from pathlib import Path
from types import SimpleNamespace

import pytest

from attrcheck.plugin import progress
from attrcheck.plugin.progress import MOST_WORKERS, Live, Overview, Painter, Ticker, start

WIPE = "\x1b[J"


class Terminal(io.StringIO):
    """Remembers what was written after it is closed."""

    def close(self):
        self.text = self.getvalue()
        super().close()


class Time:
    """A clock that is set by hand."""

    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds


def writer(width=80, used=10):
    return SimpleNamespace(fullwidth=width, width_of_current_line=used)


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "run")


def overview(folder, done=0, of=4, clock=None, now=lambda: 0.0):
    return Overview(folder, lambda: (done, of), clock or Time(), now)


def painted(folder, **room):
    """What one painting writes."""
    terminal = io.StringIO()
    Painter(overview(folder), writer(**room), terminal, Time()).paint()
    return terminal.getvalue()


def shown(*rows, column=10):
    """Rows below the cursor, which then goes back."""
    below = "".join(f"\r\n\x1b[2m{row}\x1b[0m" for row in rows)
    return f"{WIPE}{below}\r\x1b[{len(rows)}A\x1b[{column}C"


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


def test_there_is_a_line_for_the_run_and_one_for_each_worker_at_work(folder):
    Live(folder).say("digits-resnet-morf")
    for name, text in [("live-1", "a case"), ("live-2", ""), ("collected-gw0.json", "{}")]:
        Path(folder, name).write_text(text)
    assert overview(folder).lines() == ["0/4 items", "a case", "digits-resnet-morf"]


def test_the_time_left_follows_from_the_items_that_are_done(folder):
    Live(folder).say("a case")
    clock, done = Time(), [0]
    told = Overview(folder, lambda: (done[0], 40), clock, lambda: 0.0)
    assert told.lines()[0] == "0/40 items"
    clock.seconds += 60
    done[0] = 10
    assert told.lines()[0] == "10/40 items, 3:00 left"
    clock.seconds += 3600
    assert told.lines()[0] == "10/40 items, 3:03:00 left"
    done[0] = 40
    assert told.lines()[0] == "40/40 items, 0:00 left"


def test_a_step_that_takes_long_is_told_with_its_age(folder):
    Live(folder).say("a case")
    [path] = Path(folder).iterdir()
    begun = path.stat().st_mtime
    assert overview(folder, now=lambda: begun + 9).lines()[1] == "a case"
    assert overview(folder, now=lambda: begun + 75).lines()[1] == "a case (1:15)"


def test_many_workers_are_counted_and_foreign_text_is_plain(folder):
    Path(folder).mkdir()
    for number in range(MOST_WORKERS + 3):
        Path(folder, f"live-{number}").write_text(f"worker {number}\x1b[2J\nat work")
    lines = overview(folder).lines()
    assert lines[1] == r"worker 0\x1b[2J at work"
    assert len(lines) == 1 + MOST_WORKERS + 1
    assert lines[-1] == "... and 3 more workers"


def test_the_rows_are_below_the_cursor_which_is_then_where_pytest_left_it(folder):
    Live(folder).say("a case")
    assert painted(folder) == shown("0/4 items", "a case")
    assert painted(folder, used=0) == shown("0/4 items", "a case").removesuffix("\x1b[10C")


def test_rows_are_cut_to_the_width(folder):
    Live(folder).say("abcdefghijklmnopqrstuvwxyz")
    assert painted(folder, width=15) == shown("0/4 items", "abcdefghijklmn")
    assert painted(folder, width=15, used=15) == ""  # the cursor could not be put back


def test_with_nothing_to_say_nothing_is_painted(folder):
    assert painted(folder) == ""
    Live(folder).say("")
    assert painted(folder) == ""


def test_rows_are_wiped_for_pytest_and_wait_until_it_is_done(folder):
    Live(folder).say("a case")
    clock, terminal = Time(), io.StringIO()
    painter = Painter(overview(folder), writer(), terminal, clock)
    painter.wipe()
    assert terminal.getvalue() == ""  # nothing was there
    clock.seconds += 0.5
    painter.paint()
    painter.wipe()
    painter.wipe()
    rows = shown("0/4 items", "a case")
    assert terminal.getvalue() == rows + WIPE
    painter.paint()
    assert terminal.getvalue() == rows + WIPE  # pytest is still writing
    clock.seconds += 0.5
    painter.paint()
    assert terminal.getvalue() == rows + WIPE + rows


def test_a_stopped_painter_has_wiped_and_paints_no_more(folder, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.001)
    Live(folder).say("a long case")
    terminal = Terminal()
    painter = Painter(overview(folder), writer(), terminal)
    painter.start()
    while "a long case" not in terminal.getvalue():
        pass
    painter.stop()
    assert not painter.is_alive()
    assert terminal.closed
    assert terminal.text.endswith(WIPE)


def test_without_a_terminal_there_is_no_painter(folder, monkeypatch):
    monkeypatch.setattr(os, "ctermid", lambda: os.path.join(folder, "no", "terminal"))
    assert start(overview(folder), writer(), on_terminal=True) is None
    monkeypatch.delattr(os, "ctermid")
    assert start(overview(folder), writer(), on_terminal=True) is None


def test_a_pseudo_terminal_is_painted_and_wiped(folder, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.001)
    controller, terminal = pty.openpty()
    monkeypatch.setattr(os, "ctermid", lambda: os.ttyname(terminal))
    Live(folder).say("a long case")
    painter = start(overview(folder), writer(), on_terminal=True)
    text = b""
    while b"a long case" not in text:
        text += os.read(controller, 1000)
    painter.stop()
    while not text.endswith(WIPE.encode()):
        text += os.read(controller, 1000)
    os.close(terminal)
    os.close(controller)


def test_in_ci_there_are_whole_lines(folder):
    stream = io.StringIO()
    ticker = Ticker(overview(folder, done=3), writer(), stream)
    ticker.print()
    assert stream.getvalue() == ""  # nothing is at work
    Live(folder).say("a case")
    ticker.print()
    assert stream.getvalue() == "\nattrcheck: 3/4 items, 0:00 left; a case\n"
    stream = io.StringIO()
    Ticker(overview(folder), writer(used=0), stream).print()
    assert stream.getvalue() == "attrcheck: 0/4 items; a case\n"


def test_in_ci_a_run_tells_its_progress_past_what_pytest_captures(folder, monkeypatch, capfd):
    monkeypatch.setattr(progress, "MINUTE", 0.001)
    Live(folder).say("a long case")
    ticker = start(overview(folder), writer(), on_terminal=False)
    text = ""
    while "a long case\n" not in text:
        text += capfd.readouterr().out
    ticker.wipe()
    ticker.stop()
    assert not ticker.is_alive()
