"""`attrcheck report`: a report that was written, in any format."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrcheck.cli.parsing import Commands

REPORT_FORMATS = ("text", "html", "md", "csv", "images", "latex", "json")  # of report.exports


def add(commands: Commands) -> None:
    """`report`."""
    reporter = commands.add_parser("report", help="show a report that was written, in any format")
    reporter.add_argument(
        "path",
        nargs="?",
        type=Path,
        default=Path("attr-report"),
        help="report folder, report.json, or store; default: attr-report",
    )
    reporter.add_argument("--format", choices=REPORT_FORMATS, default="text")
    reporter.add_argument("--output", type=Path, metavar="FILE", help="default: print it")
    reporter.set_defaults(run=show_report)


def show_report(chosen: argparse.Namespace) -> None:
    """Print a report, or write it to a file; nothing is computed again."""
    from attrcheck.report import exports

    exports.show(chosen.path, chosen.format, chosen.output)
