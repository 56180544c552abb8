"""The line of progress on a terminal, and its silence on a pipe."""

import io

from attrcheck.report.line import Line


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_line_is_painted_over_and_gone_at_the_end(capsys):
    stream = Terminal()
    with Line(stream) as line:
        line.show("epoch 10")
        line.show("end\x1b[2J")
        line.print("done")
    assert stream.getvalue() == "\repoch 10\rend\\x1b[2J\r" + " " * 10 + "\r"
    assert capsys.readouterr().out == "done\n"


def test_nothing_is_painted_on_a_pipe(capsys):
    stream = io.StringIO()
    with Line(stream) as line:
        line.show("epoch 10")
        line.print("done")
    assert stream.getvalue() == ""
    assert capsys.readouterr().out == "done\n"
