"""A hook of MkDocs: a page that asks another host for anything fails the strict build."""

from __future__ import annotations

import logging
from html.parser import HTMLParser
from typing import Any

LOADING = {
    ("audio", "src"),
    ("embed", "src"),
    ("form", "action"),
    ("iframe", "src"),
    ("img", "src"),
    ("img", "srcset"),
    ("link", "href"),
    ("object", "data"),
    ("script", "src"),
    ("source", "src"),
    ("source", "srcset"),
    ("video", "src"),
}
"""What a browser fetches by itself; a link that a reader may follow is not among it."""
HARMLESS = {"canonical"}
"""Kinds of `<link>` that nothing is fetched for."""
log = logging.getLogger("mkdocs.hooks.outside")


class Requests(HTMLParser):
    """Collects the addresses on other hosts that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what this tag loads."""
        if tag == "link" and dict(attrs).get("rel") in HARMLESS:
            return
        self.outside += [
            value
            for name, value in attrs
            if value and (tag, name) in LOADING and value.strip().startswith(("http", "//"))
        ]


def outside(html: str) -> list[str]:
    """The addresses on other hosts that a page would ask for something."""
    requests = Requests()
    requests.feed(html)
    return requests.outside


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Warn of every request, which a strict build takes for an error."""
    for address in outside(output):
        log.warning("%s asks %s for something", page.file.src_uri, address)
    return output
