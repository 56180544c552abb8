"""`attrcheck try`: one method on one case."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from attrcheck.contracts import Case, Settings
from attrcheck.engine.settings import PROFILES, cores
from attrcheck.errors import AttrcheckError
from attrcheck.report.text import for_terminal

if TYPE_CHECKING:
    from attrcheck.cli.parsing import Commands


def add(commands: Commands) -> None:
    """`try`."""
    trier = commands.add_parser("try", help="call one method on one case, and show what it does")
    trier.add_argument("method", help="its name")
    trier.add_argument("--case", default="digits-resnet-morf", help="default: digits-resnet-morf")
    trier.add_argument("--images", type=int, default=PROFILES["default"], help="default: 100")
    trier.add_argument("--seed", type=int, default=0)
    trier.add_argument("--device", default="cpu")
    trier.add_argument("--conftest", type=Path, help="that registers it; default: the one here")
    trier.add_argument("--store", type=Path, default=Path(".attrcheck"), help="of tuned weights")
    trier.add_argument("--pdb", action="store_true", help="under a debugger, where it fails")
    trier.set_defaults(run=try_one)


def try_one(chosen: argparse.Namespace) -> None:
    """Print what a method makes of the images of a case, or where it fails."""
    import attrcheck
    from attrcheck.engine.finding import find
    from attrcheck.engine.lab import Lab
    from attrcheck.engine.trying import load_conftest, try_method

    if (conftest := chosen.conftest or Path("conftest.py")).is_file():
        load_conftest(conftest.resolve(), attrcheck)
    elif chosen.conftest:
        raise AttrcheckError(f"there is no file {chosen.conftest}")
    try:
        case = Case.of(chosen.case)
    except TypeError as error:
        raise AttrcheckError(
            f"{chosen.case!r} is not a case; write DATASET-MODEL-PROTOCOL"
        ) from error
    method = find(chosen.method)
    settings = Settings(
        *("default", chosen.images, chosen.seed, (method.name,), chosen.store, False),
        *("try", chosen.device, cores(), None),
    )
    pair = Lab.of(settings).evaluation(case).pair
    for line in try_method(method, pair, chosen.seed, chosen.pdb):
        print(for_terminal(line) if "\n" not in line else line)
