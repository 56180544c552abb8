"""The plan of a run for the terminal: what every dataset x model costs, and all together."""

from __future__ import annotations

from collections.abc import Sequence

from attrcheck.engine.planning import PairPlan, total
from attrcheck.report.text import Align, for_terminal, one_line, plain_table, shorten

HEADERS = (
    *("dataset-model", "cases", "methods", "images"),
    *("forward", "backward", "h:mm:ss", "memory", "disk"),
)
ALIGN: tuple[Align, ...] = ("left", *("right",) * 8)
MOST_IN_NAME = 40
NOTE = (
    "Time: of one process, from measured passes; what imputes or reads pictures adds to them. "
    "Memory: at most, beside that of torch. As if the store were empty."
)


def lines(plans: Sequence[PairPlan], device: str, threads: int, checks: int) -> list[str]:
    """The table, what it leaves out, and pairs of which nothing is known."""
    known = [plan for plan in plans if not plan.problem]
    together = total(known)
    rows = [_row(plan) for plan in (*known, together)]
    more = [f"{checks} checks are not counted."] if checks else []
    if together.training:
        more.append(
            f"{together.training} case(s) that train networks of their own are not counted."
        )
    unknown = [for_terminal(one_line(f"{p.pair}: {p.problem}")) for p in plans if p.problem]
    head = f"plan: {sum(plan.cases for plan in plans)} cases, on {device}, {threads} thread(s)"
    return [head, "", *plain_table(rows, HEADERS, ALIGN).splitlines(), "", NOTE, *more, *unknown]


def _row(plan: PairPlan) -> list[str | int]:
    return [
        shorten(plan.pair, MOST_IN_NAME),
        plan.cases,
        plan.methods,
        plan.images,
        _many(plan.forward),
        _many(plan.backward),
        _time(plan.seconds),
        _bytes(plan.memory),
        _bytes(plan.disk),
    ]


def _time(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600:,}:{whole // 60 % 60:02}:{whole % 60:02}"


def _many(count: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return f"{count:.0f}"


def _bytes(size: float) -> str:
    for unit, each in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= each:
            return f"{size / each:.1f} {unit}"
    return f"{size / 1e3:.0f} kB"
