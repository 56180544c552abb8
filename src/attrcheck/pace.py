"""How fast work goes, and how long the rest of it will take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since some moment."""


MINUTE = 60.0
"""Seconds between two lines of progress where CI keeps them all."""


def in_ci() -> bool:
    """Whether a CI service runs this, as far as the environment tells."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def duration(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any.

    >>> duration(42.7), duration(3723)
    ('0:42', '1:02:03')
    """
    whole = max(0, int(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


class Pace:
    """The pace of work of so many steps; `begun` of them were done before."""

    def __init__(self, total: int, begun: int = 0, clock: Clock = time.monotonic) -> None:
        self.total = total
        self._begun = begun
        self._clock = clock
        self._start = clock()

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    def left(self, done: int) -> str:
        """How long the rest takes at this pace, as `3:20 left`; nothing before the first step."""
        if done <= self._begun:
            return ""
        rest = self.spent / (done - self._begun) * max(0, self.total - done)
        return f"{duration(rest)} left"
