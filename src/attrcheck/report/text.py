"""Text that fits where it is put."""

from __future__ import annotations


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
