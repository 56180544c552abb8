"""`attrcheck merge`: the stores of several tasks become one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attrcheck.report.text import for_terminal

if TYPE_CHECKING:
    from attrcheck.cli.parsing import Commands


def add(commands: Commands) -> None:
    """`merge`."""
    merger = commands.add_parser("merge", help="join the stores of several tasks or machines")
    merger.add_argument("stores", nargs="+", type=Path, metavar="STORE")
    merger.add_argument("--into", type=Path, required=True, metavar="STORE", help="made if new")
    merger.set_defaults(run=merge_stores)


def merge_stores(chosen: argparse.Namespace) -> None:
    """Join stores, and print what came in, what was left out and what is missing."""
    from attrcheck.store.merging import merge

    merged = merge(chosen.stores, chosen.into)
    for told in merged.damaged:
        print(for_terminal(f"left out: {told}"), file=sys.stderr)
    for told in merged.missing:
        print(for_terminal(f"missing shards: {told}"), file=sys.stderr)
    print(
        for_terminal(
            f"{chosen.into}: {merged.linked} entries linked, {merged.copied} copied, "
            f"{merged.equal} there already or alike, {len(merged.damaged)} damaged left out"
        )
    )
    if merged.missing:
        print("the next run computes what is missing; tasks that are run again are faster")
