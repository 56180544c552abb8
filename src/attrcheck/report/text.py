"""Text that fits where it is put."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from tabulate import tabulate

Align: TypeAlias = Literal["left", "right"]
Rows: TypeAlias = Sequence[Sequence[object]]


def table(rows: Rows, headers: Sequence[str], align: Sequence[Align] | None = None) -> str:
    """A Markdown table of what is text already."""
    return str(tabulate(rows, headers, "github", disable_numparse=True, colalign=align))


def plain_table(rows: Rows, headers: Sequence[str], align: Sequence[Align]) -> str:
    """A table for the terminal, with columns no wider than what is in them."""
    cells = [[str(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if side == "right" else cell.ljust(width)
            for cell, width, side in zip(row, widths, align, strict=True)
        ).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def shorten(text: str, most: int = 30) -> str:
    """Text of at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 3].rstrip()}..."


def inline(text: str, most: int | None = None) -> str:
    """Text that fits into a cell of a Markdown table."""
    flat = " ".join(text.split())
    return (flat if most is None else shorten(flat, most)).replace("|", r"\|")


def number(value: float | None) -> str:
    """Two decimals, or a dash for what is not known."""
    return "-" if value is None else f"{value:.2f}"
