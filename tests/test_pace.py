"""Pace and time left."""

from attrcheck.pace import Pace, duration, in_ci


def test_the_rest_takes_as_long_as_what_was_done():
    now = [100.0]
    pace = Pace(100, begun=20, clock=lambda: now[0])
    assert pace.left(20) == ""  # nothing is known yet
    now[0] += 30
    assert pace.spent == 30
    assert pace.left(40) == "1:30 left"
    assert pace.left(100) == pace.left(101) == "0:00 left"


def test_durations():
    assert [duration(seconds) for seconds in (-1, 59.9, 60, 3599, 3600)] == [
        *("0:00", "0:59", "1:00", "59:59", "1:00:00"),
    ]


def test_ci_says_so_itself(monkeypatch):
    for value, there in [("true", True), ("1", True), ("false", False), ("0", False), ("", False)]:
        monkeypatch.setenv("CI", value)
        assert in_ci() is there
    monkeypatch.delenv("CI")
    assert not in_ci()
