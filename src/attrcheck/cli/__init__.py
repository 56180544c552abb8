"""The command line beside pytest: one module for each family of commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from attrcheck.cli import (
    commenting,
    comparing,
    listing,
    merging,
    methods,
    reports,
    stores,
    training,
    trying,
)
from attrcheck.errors import AttrcheckError, cut
from attrcheck.plugin import tables
from attrcheck.report.text import for_terminal

FAMILIES = (
    *(listing, training, stores, merging, reports, comparing, commenting),
    *(methods, trying),
)


def parser() -> argparse.ArgumentParser:
    """What reads the command line."""
    made = argparse.ArgumentParser(prog="attrcheck", description="pytest for attribution methods")
    commands = made.add_subparsers(required=True)
    for family in FAMILIES:
        family.add(commands)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if it went well, 1 with one clear line if not."""
    chosen = parser().parse_args(arguments)
    try:
        tables.bind(tables.find(Path.cwd()))
        chosen.run(chosen)
    except AttrcheckError as error:
        print(for_terminal(cut(f"attrcheck: {error}")), file=sys.stderr)
        return 1
    return 0
