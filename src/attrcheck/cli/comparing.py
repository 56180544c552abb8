"""`attrcheck compare` and `baseline`: what moved between two reports, and what to compare with."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrcheck.cli.parsing import Commands

FORMATS = ("text", "md", "html", "json")  # of report.exports.COMPARISONS
BASELINE = Path("attr-baseline.json")


def add(commands: Commands) -> None:
    """`compare` and `baseline`."""
    comparer = commands.add_parser("compare", help="say what moved between two reports")
    comparer.add_argument("old", type=Path, help="a report: its folder or report.json, or a store")
    comparer.add_argument("new", type=Path, help="another one")
    comparer.add_argument("--format", choices=FORMATS, default="text")
    comparer.add_argument("--output", type=Path, metavar="FILE", help="default: print it")
    comparer.set_defaults(run=show_comparison)

    keeper = commands.add_parser("baseline", help="choose what runs are compared with")
    verbs = keeper.add_subparsers(required=True)
    updater = verbs.add_parser("update", help="accept a report as the baseline")
    updater.add_argument("report", nargs="?", type=Path, default=Path("attr-report"))
    updater.add_argument(
        "--to", type=Path, default=BASELINE, metavar="FILE", help=f"default: {BASELINE}"
    )
    updater.add_argument(
        "--force", action="store_true", help="also a partial, incomplete or red report"
    )
    updater.set_defaults(run=update_baseline)


def show_comparison(chosen: argparse.Namespace) -> None:
    """Print what moved, or write it to a file; nothing is computed again."""
    from attrcheck.report import exports

    exports.show_comparison(chosen.old, chosen.new, chosen.format, chosen.output)


def update_baseline(chosen: argparse.Namespace) -> None:
    """Accept a report, and print what that changes."""
    from attrcheck.report.baselines import accept

    sys.stdout.write(accept(chosen.report, chosen.to, chosen.force))
