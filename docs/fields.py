"""A hook of MkDocs: fields that a docstring explains one after another begin a line each."""

from __future__ import annotations

import re
from typing import Any

PAGE = "reference/api.md"
PARAGRAPH = re.compile(r"<p>.*?</p>", re.DOTALL)
FIELD = re.compile(r"(?:(?<=^<p>)|(?<=\.\s))((?:[a-z_]+, )*[a-z_]+):\s")
"""Names and a colon, where a sentence begins; sentences begin with a capital letter."""


def split_fields(html: str) -> str:
    """A page in whose paragraphs `name: what it is. other: ...` is a list to look through."""

    def split(paragraph: re.Match[str]) -> str:
        lines = FIELD.sub(r"<br><strong>\1</strong>: ", paragraph[0])
        return lines.replace("<p><br>", "<p>", 1)

    return PARAGRAPH.sub(split, html)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Only the page of the API is made of docstrings."""
    return split_fields(html) if page.file.src_uri == PAGE else html
