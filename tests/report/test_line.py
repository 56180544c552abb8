"""The line of progress on a terminal, its silence on a pipe, and a line a minute in CI."""

import io

import pytest

from attrcheck.report.line import Line


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Time:
    """A clock that goes on by a second whenever it is asked."""

    def __init__(self, step=1.0):
        self.seconds, self.step = 0.0, step

    def __call__(self):
        self.seconds += self.step
        return self.seconds


@pytest.fixture(autouse=True)
def no_ci(monkeypatch):
    monkeypatch.delenv("CI", raising=False)


def test_a_line_is_painted_over_and_gone_at_the_end(capsys):
    stream = Terminal()
    with Line(stream, clock=Time()) as line:
        line.show("epoch 10")
        line.show("end\x1b[2J")
        line.print("done")
    assert stream.getvalue() == "\repoch 10\rend\\x1b[2J\r" + " " * 10 + "\r"
    assert capsys.readouterr().out == "done\n"


def test_what_follows_at_once_is_not_painted():
    stream = Terminal()
    line = Line(stream, clock=Time(step=0.04))
    for step in range(7):
        line.show(f"step {step}")
    assert stream.getvalue() == "\rstep 0\rstep 3\rstep 6"


def test_nothing_is_painted_on_a_pipe(capsys):
    stream = io.StringIO()
    with Line(stream, clock=Time(step=100.0)) as line:
        line.show("epoch 10")
        line.print("done")
    assert stream.getvalue() == ""
    assert capsys.readouterr().out == "done\n"


def test_in_ci_a_line_a_minute_is_printed(monkeypatch):
    monkeypatch.setenv("CI", "true")
    stream = io.StringIO()
    with Line(stream, clock=Time(step=25.0)) as line:
        for step in range(8):
            line.show(f"step\x1b {step}")
    assert stream.getvalue() == "step\\x1b 2\nstep\\x1b 5\n"
    monkeypatch.setenv("CI", "false")
    Line(stream, clock=Time(step=100.0)).show("nothing")
    assert "nothing" not in stream.getvalue()
