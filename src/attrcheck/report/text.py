"""Text that fits where it is put: foreign text is escaped here, once, where it enters a format.

Foreign is what users, methods and systems wrote: names, ids, reasons, exceptions, paths. Its length
was limited where it was made, by `errors.cut`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tabulate import tabulate

Align: TypeAlias = Literal["left", "right"]
Rows: TypeAlias = Sequence[Sequence[object]]


@dataclass(frozen=True)
class Table:
    """A table as every format shows it: not escaped yet."""

    title: str
    headers: Sequence[str]
    rows: Rows
    note: str = ""


MOST_IN_CELL = 1000
BLANK = re.compile(r"[^\S\n]")
PUNCTUATION = re.compile(
    r"""
    [\\`*~$|]                           # the escape itself; code, emphasis, formulas, columns
    | (?<![^\W_])_ | _(?![^\W_])        # emphasis; but not inside words, as in guided_backprop
    | \](?=[\[(:]) | (?<=!)\[ | \[(?=\^)  # links, images, footnotes
    | (?<=:)/(?=/) | (?<=www)\.         # addresses, which are links without brackets
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What Markdown would take for a sign of its own: a backslash before it makes it plain."""
LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",
    "]": "{]}",
}
"""What LaTeX would take for a sign of its own, and how it is written."""
BLOCK = re.compile(r"^(\d*)(?=[#>+=\[.)-])|(?=\]$)")
"""The same where a text is the first on its line, and may begin a list or name a link."""


def for_terminal(text: str) -> str:
    """Text without control characters but newlines; what cannot be printed is spelt out.

    So nothing moves the cursor, sets a title, or turns the order of letters round.
    """
    if text.isprintable():
        return text
    plain = BLANK.sub(" ", text.replace("\r\n", "\n"))
    return "".join(
        letter if letter.isprintable() or letter == "\n" else repr(letter)[1:-1] for letter in plain
    )


def for_markdown_cell(text: str, most: int = MOST_IN_CELL) -> str:
    """Text for a cell of a table, shown as it is: no column, HTML, link, image or code of its own.

    Without a table it does inside a line, behind other words.
    """
    plain = _flat(text, most)
    escaped = PUNCTUATION.sub(r"\\\g<0>", plain)
    return re.sub(r"&(?=[#\w])", "&amp;", escaped).replace("<", "&lt;")


def for_markdown_text(text: str, most: int = MOST_IN_CELL) -> str:
    """The same for a text that begins a line."""
    return BLOCK.sub(r"\g<0>\\", for_markdown_cell(text, most))


def for_markdown_code(text: str, most: int = MOST_IN_CELL) -> str:
    """Text as code, between more backticks than it has in a row."""
    plain = _flat(text, most)
    fence = "`" * (1 + max(map(len, re.findall("`+", plain)), default=0))
    space = " " if plain[:1] in ("`", "") or plain[-1:] == "`" else ""
    return f"{fence}{space}{plain}{space}{fence}"


def for_latex(text: str, most: int = MOST_IN_CELL) -> str:
    """Text for a cell of a LaTeX table, shown as it is."""
    return "".join(LATEX.get(letter, letter) for letter in _flat(text, most))


def for_json(text: str) -> str:
    """JSON text in ASCII, so that it can be printed anywhere.

    A lone surrogate, which most readers of JSON refuse, becomes the six characters that name it.
    """
    return re.sub(r"[^\n -~]", lambda match: _json_escape(match[0]), text)


def _json_escape(letter: str) -> str:
    code = ord(letter)
    if 0xD800 <= code < 0xE000:
        return f"\\\\u{code:04x}"
    units = letter.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _flat(text: str, most: int) -> str:
    """One line of at most so many characters; of megabytes, only the beginning is looked at."""
    return shorten(for_terminal(one_line(text[: 10 * most])), most)


def one_line(text: str) -> str:
    """Text with a single space for every stretch of white space."""
    return " ".join(text.split())


def table(rows: Rows, headers: Sequence[str], align: Sequence[Align] | None = None) -> str:
    """A Markdown table; cells are escaped here, and nowhere else."""
    cells = [[for_markdown_cell(str(cell)) for cell in row] for row in (headers, *rows)]
    return str(tabulate(cells[1:], cells[0], "github", disable_numparse=True, colalign=align))


def plain_table(rows: Rows, headers: Sequence[str], align: Sequence[Align]) -> str:
    """A table for the terminal, with columns no wider than what is in them."""
    cells = [[for_terminal(one_line(str(cell))) for cell in row] for row in (headers, *rows)]
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


def counted(count: int, noun: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def number(value: float | None) -> str:
    """Two decimals, or a dash for what is not known."""
    return "-" if value is None else f"{value:.2f}"
