"""Power as people read it: terminal, Markdown and JSON; not escaped before its format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from attrcheck.engine.wire import dumps
from attrcheck.report.power import CasePower, Power
from attrcheck.report.text import (
    Align,
    counted,
    for_json,
    for_markdown_text,
    for_terminal,
    plain_table,
    table,
)

MOST_ROWS = 20
HEADERS = ("case", "difference", "95% interval", "images", "needed", "at best")
ALIGN: tuple[Align, ...] = ("left", *("right",) * 5)


def render(power: Power) -> str:
    """For the terminal."""
    rows, rest = power.cases[:MOST_ROWS], power.cases[MOST_ROWS:]
    lines = [*map(for_terminal, lines_of(power)), ""]
    if power.cases:
        lines += [plain_table(_rows(rows), HEADERS, ALIGN), ""]
    more = [f"... and {len(rest)} more: --format md has all"] if rest else []
    return "\n".join([*lines, *more, *map(for_terminal, notes(power))]) + "\n"


def as_markdown(power: Power) -> str:
    """As GitHub-flavoured Markdown."""
    title = for_markdown_text(f"{power.one} against {power.other}")
    parts = [f"# {title}", *map(for_markdown_text, lines_of(power))]
    parts += [table(_rows(power.cases), HEADERS, ALIGN)] if power.cases else []
    return "\n\n".join([*parts, *map(for_markdown_text, notes(power))]) + "\n"


def as_json(power: Power) -> str:
    """As `wire.loads(Power, text)` reads it."""
    return for_json(dumps(power, indent=1, ensure_ascii=False)) + "\n"


def lines_of(power: Power) -> list[str]:
    """The answer in a few lines."""
    return [*_cases(power), *_board(power)]


def notes(power: Power) -> list[str]:
    """What the numbers mean, and what is not known."""
    lines = [
        f"difference: of the mean scores, positive where {power.one} is better; needed: images "
        f"with which a paired two-sided test at {power.level:.0%} finds it with a power of "
        f"{power.power:.0%}, if it is the one seen here; at best: if it is as large as its "
        "interval allows. That is of these two alone: a board has to allow for all pairs of methods"
    ]
    if power.unknown:
        lines.append(
            f"{counted(len(power.unknown), 'case')} without scores of single images, "
            f"first {power.unknown[0]}: nothing is said of these"
        )
    return lines


def _cases(power: Power) -> list[str]:
    if not power.cases:
        return ["no case has scores of single images of both"]
    told = [case for case in power.cases if case.told]
    better = sum(case.difference > 0 for case in told)
    numbers = [math.inf if case.needed is None else case.needed for case in power.cases]
    middle = median(numbers)
    most = "no number of images" if math.isinf(middle) else f"{math.ceil(middle)} images"
    return [
        f"{power.one} against {power.other}: told apart in {len(told)} of "
        f"{counted(len(power.cases), 'case')} ({power.one} better in {better}, {power.other} in "
        f"{len(told) - better})",
        f"half of the cases need {most} or fewer",
    ]


def _board(power: Power) -> list[str]:
    board = power.board
    if board is None:
        return []
    margin = ""
    if board.margin is not None:
        low, high = board.difference - board.margin, board.difference + board.margin
        word = "told apart" if abs(board.difference) > board.margin else "not told apart"
        margin = f" [{low:+.2f}, {high:+.2f}], {word} among all methods"
    lines = [f"Meta-Ranks: {board.difference:+.2f}{margin}"]
    if board.times is not None:
        times = f"{board.times:.2g} times" if board.times < 1000 else "over 1000 times"
        where = "this dataset x model pair"
        if board.pairs > 1:
            where = f"these {board.pairs} dataset x model pairs"
        lines.append(f"on {where}: {times} the images of the run would tell them apart")
    if board.needed is not None:
        lines.append(
            f"on others like these: about {board.needed} pairs would, with as many images; the "
            f"choice of pairs makes {_share(board.images, board.total)} of the variance"
        )
    return lines


def _share(images: float, total: float) -> str:
    """What is left of the variance when images are infinitely many."""
    return f"{max(0.0, 1 - (images / total) ** 2):.0%}" if total else "none"


def _rows(cases: Sequence[CasePower]) -> list[list[str | int]]:
    return [
        [
            case.case,
            f"{case.difference:+.3g}",
            f"[{case.low:+.3g}, {case.high:+.3g}]",
            case.images,
            "never" if case.needed is None else case.needed,
            "never" if case.at_best is None else case.at_best,
        ]
        for case in cases
    ]
