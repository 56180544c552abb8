"""`attrcheck comment`: the summary of a report as one comment on a pull request on GitHub."""

from __future__ import annotations

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrcheck.errors import AttrcheckError, cut

if TYPE_CHECKING:
    from attrcheck.cli.parsing import Commands

MOST_CHARACTERS = 60_000
"""Of a comment; GitHub takes 65,536."""
PER_PAGE = 100
MOST_PAGES = 100
TIMEOUT = 30.0
API = "https://api.github.com"
NEEDS = (
    "the job needs `permissions: pull-requests: write`, which pull requests from forks never have"
)


def add(commands: Commands) -> None:
    """`comment`."""
    commenter = commands.add_parser(
        "comment",
        help="put the summary of a report on a pull request on GitHub",
        description="The comment is replaced, not repeated: a hidden mark tells it from others. "
        "The token is taken from GITHUB_TOKEN, the server from GITHUB_API_URL.",
    )
    commenter.add_argument("path", nargs="?", type=Path, default=Path("attr-report"))
    commenter.add_argument(
        "--pull", type=int, metavar="N", help="its number; without it, print the comment"
    )
    commenter.add_argument(
        "--repository",
        default=os.environ.get("GITHUB_REPOSITORY", ""),
        metavar="OWNER/NAME",
        help="default: GITHUB_REPOSITORY",
    )
    commenter.add_argument(
        "--mark", default="report", metavar="NAME", help="tells comments of several jobs apart"
    )
    commenter.add_argument("--link", default="", metavar="URL", help="where the whole report is")
    commenter.set_defaults(run=comment)


def comment(chosen: argparse.Namespace) -> None:
    """Write the comment, in the place of an earlier one."""
    from attrcheck.report.exports import summarised

    mark = f"<!-- attrcheck: {_name(chosen.mark)} -->"
    more = f"\n[The whole report]({chosen.link})\n" if chosen.link else ""
    body = f"{mark}\n{cut(summarised(chosen.path), MOST_CHARACTERS)}{more}"
    if chosen.pull is None:
        sys.stdout.write(body)
        return
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token or not chosen.repository:
        missing = "GITHUB_REPOSITORY or --repository" if token else "GITHUB_TOKEN"
        raise AttrcheckError(f"to comment, {missing} must be given")
    thread = Thread(os.environ.get("GITHUB_API_URL") or API, chosen.repository, chosen.pull, token)
    print(thread.put(mark, body))


@dataclass(frozen=True)
class Thread:
    """The comments of a pull request."""

    api: str
    repository: str
    pull: int
    token: str

    def put(self, mark: str, body: str) -> str:
        """Replace the comment that begins with a mark, or add one; returns its address."""
        earlier = next((c for c in self._comments() if c["body"].startswith(mark)), None)
        comments = f"repos/{self.repository}/issues"
        if earlier is None:
            answer = self._ask("POST", f"{comments}/{self.pull}/comments", {"body": body})
        else:
            answer = self._ask("PATCH", f"{comments}/comments/{earlier['id']}", {"body": body})
        return str(answer.get("html_url", ""))

    def _comments(self) -> Iterator[dict[str, Any]]:
        for page in range(1, MOST_PAGES + 1):
            path = f"repos/{self.repository}/issues/{self.pull}/comments"
            some = self._ask("GET", f"{path}?per_page={PER_PAGE}&page={page}")
            yield from some
            if len(some) < PER_PAGE:
                return

    def _ask(self, verb: str, path: str, content: object = None) -> Any:
        request = urllib.request.Request(
            f"{self.api.rstrip('/')}/{path}",
            method=verb,
            data=None if content is None else json.dumps(content).encode(),
            headers={
                "Authorization": f"Bearer {self.token}",
                "Accept": "application/vnd.github+json",
                "Content-Type": "application/json",
                "User-Agent": "attrcheck",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            hint = f": {NEEDS}" if error.code in (403, 404) else ""
            raise AttrcheckError(f"GitHub answered {error.code} to {verb} {path}{hint}") from error
        except (OSError, ValueError) as error:
            raise AttrcheckError(f"GitHub cannot be asked ({error})") from error


def _name(text: str) -> str:
    """A name that cannot end the mark that it stands in."""
    return "".join(letter if letter.isalnum() or letter in "._" else "_" for letter in text)
