"""Text that fits where it is put."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tabulate import tabulate


def table(rows: Sequence[Sequence[Any]], headers: Sequence[str]) -> str:
    """A Markdown table of what is text already."""
    return str(tabulate(rows, headers, "github", disable_numparse=True))


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
