"""Cards as people read them: terminal, Markdown, HTML and JSON; not escaped before its format."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

from attrcheck.engine.facts import facts_of
from attrcheck.engine.finding import find
from attrcheck.engine.wire import dumps
from attrcheck.errors import AttrcheckError, suggest
from attrcheck.methods import method as registered
from attrcheck.report.cards import Card, Fact, Known, card, cards
from attrcheck.report.html.page import fill
from attrcheck.report.text import (
    for_json,
    for_markdown_cell,
    for_markdown_text,
    for_terminal,
    one_line,
)
from attrcheck.report.types import Document

WIDTH = 90
INDENT = 28
PAD = " " * INDENT


def of(method: str, path: Path, document: Document | None) -> Card:
    """The card of a method: of a report that has it, else of what is registered alone."""
    if document is not None and method in document.settings.methods:
        cases, methods = len(document.cases), len(document.settings.methods)
        source = f"{path}, {document.run.started}: {cases} cases x {methods} methods"
        return next(card for card in cards(document, source) if card.method == method)
    if method not in registered:
        names = dict.fromkeys([*(document.settings.methods if document else ()), *registered])
        raise AttrcheckError(f"no method is called {method!r}; {suggest(method, names)}")
    missing = f"{path} does not have it" if document else f"there is no report at {path}"
    return card(Known(method, facts_of(find(method))), f"{missing}: what is registered alone")


def render(shown: Card) -> str:
    """For the terminal."""
    lines = [shown.method, shown.source]
    for section in shown.sections:
        lines += ["", section.title]
        for fact in section.facts:
            lines += _wrapped(fact)
    return "\n".join(map(for_terminal, lines)) + "\n"


def _wrapped(fact: Fact) -> list[str]:
    """A name, and behind it or below it the text."""
    text = one_line(fact.text)
    start = f"  {fact.name}".ljust(INDENT)
    if len(start) > INDENT:
        return [start, *textwrap.wrap(text, WIDTH, initial_indent=PAD, subsequent_indent=PAD)]
    return textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=PAD)


def as_markdown(shown: Card) -> str:
    """As GitHub-flavoured Markdown."""
    parts = [f"# {for_markdown_text(shown.method)}", for_markdown_text(shown.source)]
    for section in shown.sections:
        facts = [
            f"- **{for_markdown_cell(fact.name)}**: {for_markdown_cell(fact.text)}"
            for fact in section.facts
        ]
        parts += [f"## {section.title}", "\n".join(facts)]
    return "\n\n".join(parts) + "\n"


def as_html(shown: Card) -> str:
    """A page of its own, in the style of the report's."""
    return fill("card.html", title=shown.method, verdict="", remarks=[shown.source], card=shown)


def as_json(shown: Card) -> str:
    """As `wire.loads(Card, text)` reads it."""
    return for_json(dumps(shown, indent=1, ensure_ascii=False)) + "\n"


FORMATS: dict[str, Callable[[Card], str]] = {
    "text": render,
    "md": as_markdown,
    "html": as_html,
    "json": as_json,
}
"""By name."""
