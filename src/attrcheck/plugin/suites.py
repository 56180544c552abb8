"""The suite of a run: what is there of it, and a table of what is not."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attrcheck.papers import SuiteError
from attrcheck.plugin import options, tables
from attrcheck.report.text import plain_table
from attrcheck.specs import anchored, parse

if TYPE_CHECKING:
    from attrcheck.papers.arranging import Arrangement, Gap

ARRANGED = pytest.StashKey["Arrangement"]()
WIDTH = 60
"""Of the last column of the table."""


def arranged(config: pytest.Config) -> Arrangement | None:
    """What is there of the suite that is asked for, bound to its names; None: no suite is.

    What an option gives a name to comes first.
    """
    suite = options.suite(config)
    if suite is None:
        return None
    if ARRANGED not in config.stash:
        from attrcheck.papers.arranging import arrange  # brings torch, and few ask for a suite

        for kind, registry in tables.TABLES.items():
            text = anchored(config.getoption(f"attr_{kind}") or "", config.invocation_params.dir)
            for part in text.split(","):
                if all(parse(part.strip())):
                    registry.select(part)
        config.stash[ARRANGED] = arrange(suite, options.folder(config, "data"))
    there = config.stash[ARRANGED]
    if not (there.datasets and there.models):
        table = gaps(there.gaps, there.data)
        raise SuiteError(f"nothing of the suite {suite.name} is here:\n{table}")
    return there


def header(config: pytest.Config) -> list[str]:
    """What the suite is, and the table of what is not there."""
    there = arranged(config)
    if there is None:
        return []
    suite = there.suite
    lines = [f"attrcheck: suite {suite.name}, {len(suite.cases)} cases: {suite.paper}"]
    if there.gaps:
        lines += ["not here, so that the board will be PARTIAL:"]
        lines += gaps(there.gaps, there.data).splitlines()
    return lines


def gaps(missing: Sequence[Gap], data: Path) -> str:
    """The table of what is missing: what it is, where it should lie, what to do."""
    rows = []
    for gap in missing:
        first, *more = textwrap.wrap(gap.do, WIDTH, break_long_words=False) or [""]
        rows += [[gap.what, gap.where, first], *(["", "", line] for line in more)]
    headers = ("missing", f"should lie in {data}", "what to do")
    return plain_table(rows, headers, ("left", "left", "left"))
