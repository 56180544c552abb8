"""`attrcheck report`: a report that was written, in any format, and figures of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from attrcheck.errors import AttrcheckError

if TYPE_CHECKING:
    from attrcheck.cli.parsing import Commands

REPORT_FORMATS = {
    "text": "what a run prints; the default",
    "html": "the page, with the gallery",
    "md": "report.md",
    "csv": "a row for each case and method: score, interval, rank",
    "images": "CSV, a row for each case, method and image",
    "parquet": "the same rows, with pyarrow; needs --output",
    "latex": "the board as a table",
    "json": "report.json",
    "badge": "JSON of a shields.io endpoint",
    "trend": "JSON for github-action-benchmark",
}  # of report.exports


def add(commands: Commands) -> None:
    """`report`."""
    formats = "\n".join(f"  {name:8} {what}" for name, what in REPORT_FORMATS.items())
    reporter = commands.add_parser(
        "report",
        help="show a report that was written, in any format, or draw a figure of it",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Nothing is computed again: every run keeps its report in its store.",
        epilog=f"formats:\n{formats}\n\nfigures:\n"
        "  --figure board.pdf                                    the board with intervals\n"
        "  --figure curves.pdf --case digits-resnet-morf         the curves of a case\n"
        "  --figure maps.pdf --pair digits-resnet                images with their maps\n"
        "  ... --methods lrp,random                              of these methods only\n",
    )
    reporter.add_argument(
        "path",
        nargs="?",
        type=Path,
        default=Path("attr-report"),
        help="folder of a report, report.json, or store; default: attr-report",
    )
    reporter.add_argument(
        "--format", choices=list(REPORT_FORMATS), metavar="FORMAT", help="see below; default: text"
    )
    reporter.add_argument("--output", type=Path, metavar="FILE", help="default: print it")
    figure = reporter.add_argument_group("figures")
    figure.add_argument("--figure", type=Path, metavar="FILE", help="draw to a .pdf, .png or .svg")
    subject = figure.add_mutually_exclusive_group()
    subject.add_argument("--case", default="", metavar="ID", help="the curves of this case")
    subject.add_argument("--pair", default="", metavar="ID", help="maps on this DATASET-MODEL")
    figure.add_argument("--methods", default="", metavar="NAMES", help="default: the best few")
    reporter.set_defaults(run=show_report)


def show_report(chosen: argparse.Namespace) -> None:
    """Print a report, write it to a file, or draw a figure of it; nothing is computed again."""
    from attrcheck.report import exports

    if chosen.figure is None:
        if chosen.case or chosen.pair or chosen.methods:
            raise AttrcheckError("--case, --pair and --methods are for figures: add --figure FILE")
        exports.show(chosen.path, chosen.format or "text", chosen.output)
        return
    if chosen.format or chosen.output:
        raise AttrcheckError("--figure FILE is written by itself: leave out --format and --output")
    from attrcheck.report import figures  # and matplotlib

    methods = [name.strip() for name in chosen.methods.split(",") if name.strip()]
    figures.draw(chosen.path, chosen.figure, chosen.case, chosen.pair, methods)
