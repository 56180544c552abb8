"""`attrcheck card` and `power`: one method of a report, and what would tell two of them apart."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrcheck.cli.parsing import Commands

CARD_FORMATS = ("text", "md", "html", "json")  # of report.carding.FORMATS
POWER_FORMATS = ("text", "md", "json")  # of report.exports.POWERS


def add(commands: Commands) -> None:
    """`card` and `power`."""
    carder = commands.add_parser(
        "card", help="show all that is known of a method, in the fields of the saliency cards"
    )
    carder.add_argument("method", help="its name")
    _add_report(carder)
    _add_format(carder, CARD_FORMATS)
    carder.set_defaults(run=show_card)

    studied = commands.add_parser("power", help="say how many images would tell two methods apart")
    studied.add_argument("one", help="a method")
    studied.add_argument("other", help="another one")
    _add_report(studied)
    studied.add_argument(
        "--power", type=float, default=0.8, metavar="SHARE", help="how surely; default: 0.8"
    )
    _add_format(studied, POWER_FORMATS)
    studied.set_defaults(run=show_power)


def show_card(chosen: argparse.Namespace) -> None:
    """Print the card of a method; nothing is computed again."""
    from attrcheck.report import exports

    exports.show_card(chosen.report, chosen.method, chosen.format, chosen.output)


def show_power(chosen: argparse.Namespace) -> None:
    """Print what would tell two methods apart; nothing is computed again."""
    from attrcheck.report import exports

    exports.show_power(
        *(chosen.report, chosen.one, chosen.other, chosen.power, chosen.format, chosen.output)
    )


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "report",
        nargs="?",
        type=Path,
        default=Path("attr-report"),
        help="its folder, report.json, or a store; default: attr-report",
    )


def _add_format(parser: argparse.ArgumentParser, formats: tuple[str, ...]) -> None:
    parser.add_argument("--format", choices=formats, default="text")
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: print it")
