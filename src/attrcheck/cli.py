"""The command line beside pytest: `attrcheck list` and `attrcheck train`."""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from attrcheck.errors import AttrcheckError
from attrcheck.models import WEIGHTS
from attrcheck.options import KINDS
from attrcheck.registry import Registry
from attrcheck.removal import removal

LISTED: dict[str, Registry[Any]] = {**KINDS, "removals": removal}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if it went well, 1 with one clear line if not."""
    parser = argparse.ArgumentParser(prog="attrcheck", description="pytest for attribution methods")
    commands = parser.add_subparsers(required=True)

    lister = commands.add_parser("list", help="print what is registered, one line each")
    lister.add_argument("kind", choices=list(LISTED))
    lister.set_defaults(run=list_kind)

    trainer = commands.add_parser("train", help="train the embedded models, four checkpoints each")
    trainer.add_argument("--datasets", default="", metavar="GLOBS", help="default: all")
    trainer.add_argument("--models", default="", metavar="GLOBS", help="default: all embedded")
    trainer.add_argument("--seed", type=int, default=0)
    trainer.add_argument("--folder", type=Path, help="default: the weights of the package")
    trainer.set_defaults(run=train_all)

    chosen = parser.parse_args(arguments)
    try:
        chosen.run(chosen)
    except AttrcheckError as error:
        print(f"attrcheck: {error}", file=sys.stderr)
        return 1
    return 0


def list_kind(chosen: argparse.Namespace) -> None:
    """Print the names of a kind, with the first line of what each says of itself."""
    registry = LISTED[chosen.kind]
    rows = [[name, _summary(registry.get(name))] for name in registry]
    print(tabulate(rows, [chosen.kind[:-1], "what it is"], "simple"))


def train_all(chosen: argparse.Namespace) -> None:
    """Train every embedded model selected on every dataset selected that can be learnt from."""
    from attrcheck.models._train import train

    models = [KINDS["models"].get(name) for name in KINDS["models"].select(chosen.models)]
    for dataset in KINDS["datasets"].select(chosen.datasets):
        for spec in models:
            if spec.embedded:
                train(dataset, spec.name, folder=chosen.folder or WEIGHTS, seed=chosen.seed)


def _summary(registered: Any) -> str:
    """The first line of the docstring of the function behind a registered thing."""
    functions = [value for value in vars(registered).values() if inspect.isfunction(value)]
    return (inspect.getdoc(functions[0]) or "").partition("\n")[0] if functions else ""
