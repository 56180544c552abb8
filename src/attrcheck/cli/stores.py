"""`attrcheck store` and `why`: what lies in a store, and why it was computed anew."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tabulate import tabulate

from attrcheck.errors import AttrcheckError
from attrcheck.report.text import for_terminal

if TYPE_CHECKING:
    from attrcheck.cli.parsing import Commands


def add(commands: Commands) -> None:
    """`store` and `why`."""
    keeper = commands.add_parser("store", help="show what lies in a store, and prune it")
    keeper.add_argument("folder", nargs="?", type=Path, default=Path(".attrcheck"))
    keeper.add_argument("--prune", action="store_true", help="remove what no run would find again")
    keeper.set_defaults(run=show_store)

    teller = commands.add_parser("why", help="say why entries of a store were computed anew")
    teller.add_argument("name", help="as in maps/digits-resnet/lrp; a glob")
    teller.add_argument("folder", nargs="?", type=Path, default=Path(".attrcheck"))
    teller.set_defaults(run=tell_why)


def show_store(chosen: argparse.Namespace) -> None:
    """Print what lies in a store by kind, and remove what is stale if that is asked for."""
    from attrcheck.engine.pruning import Current
    from attrcheck.store.inventory import KINDS, entries, leftovers, reports

    folder = _store(chosen)
    current, items = Current(), list(entries(folder))
    stale = [item for item in items if current.changed(item)]
    rest = list(leftovers(folder))
    rows = [
        [
            kind,
            len(own := [item for item in items if item.kind == kind]),
            _megabytes(item.size for item in own),
            len(old := [item for item in stale if item.kind == kind]),
            _megabytes(item.size for item in old),
        ]
        for kind in KINDS
    ]
    kept = reports(folder)
    rows.append(["report", len(kept), _megabytes(p.stat().st_size for p in kept), 0, "0.0"])
    rows.append(["leftovers", len(rest), size := _megabytes(p.stat().st_size for p in rest)])
    rows[-1] += [len(rest), size]
    print(tabulate(rows, ["kind", "entries", "MB", "stale", "MB"], disable_numparse=True))
    if chosen.prune:
        for path in [*(item.path for item in stale), *rest]:
            path.unlink(missing_ok=True)
        print(f"removed {len(stale)} stale entries and {len(rest)} leftovers")


def tell_why(chosen: argparse.Namespace) -> None:
    """Print the versions of entries, and the parts of the key that tell one from the next."""
    from attrcheck.store.inventory import changes, history

    versions = history(_store(chosen), chosen.name)
    if not versions:
        raise AttrcheckError(f"no entry in {chosen.folder} is called {chosen.name!r}")
    for name, items in versions.items():
        print(for_terminal(name))
        for item, older in zip(items, [*items[1:], None], strict=True):
            why = "the first" if older is None else ", ".join(changes(item.key, older.key))
            line = f"  {item.created}  {item.path.stem.rpartition('-')[2]}  {why}"
            print(for_terminal(line))


def _store(chosen: argparse.Namespace) -> Path:
    folder: Path = chosen.folder
    if not folder.is_dir():
        raise AttrcheckError(f"there is no store at {folder}")
    return folder


def _megabytes(sizes: Iterable[int]) -> str:
    return f"{sum(sizes) / 1e6:.1f}"
