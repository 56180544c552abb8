"""The command line beside pytest: `attrcheck list`, `train`, `finetune`, `store`, `why`, `try`."""

from __future__ import annotations

import argparse
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from attrcheck.contracts import Case, Dataset, Method, Settings, Tuning
from attrcheck.datasets import dataset as datasets
from attrcheck.engine.settings import PROFILES, cores
from attrcheck.errors import AttrcheckError, cut
from attrcheck.models import ModelSpec
from attrcheck.models import model as models
from attrcheck.plugin import tables
from attrcheck.plugin.selection import KINDS
from attrcheck.protocols import ProtocolSpec
from attrcheck.registry import Registry
from attrcheck.removal import removal
from attrcheck.report.line import Line
from attrcheck.report.text import Align, for_terminal, plain_table, table
from attrcheck.specs import anchored
from attrcheck.training import WEIGHTS

if TYPE_CHECKING:
    from torch import nn

FAMILIES = (
    *("gradient", "propagation", "cam", "perturbation", "transformer", "self-explaining", "own"),
    "dummy",
)
"""Of methods, in the order of their list."""
REPORT_FORMATS = ("text", "html", "md", "csv", "images", "latex", "json")  # of report.exports
EPOCHS, BATCH = 200, 64
"""Of public architectures: as in `training.epochs.EpochRecipe`, which imports torch."""
LISTED: dict[str, Registry[Any]] = {**KINDS, "removals": removal}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if it went well, 1 with one clear line if not."""
    parser = argparse.ArgumentParser(prog="attrcheck", description="pytest for attribution methods")
    commands = parser.add_subparsers(required=True)

    lister = commands.add_parser("list", help="print what is registered, one line each")
    lister.add_argument("kind", choices=list(LISTED))
    lister.add_argument("--markdown", action="store_true", help="as a table for a README")
    lister.set_defaults(run=list_kind)

    trainer = commands.add_parser(
        "train",
        help="train the embedded models, or public architectures on pictures",
        description="Public ones, as torchvision:resnet18, are trained by the recipe of the "
        "Meta-Rank paper where the suites look for them; an interrupted training goes on.",
    )
    trainer.add_argument(
        "--datasets", default="", metavar="GLOBS", help="or NAME=folder:PATH; default: all embedded"
    )
    trainer.add_argument(
        "--models", default="", metavar="GLOBS", help="or torchvision:NAME; default: all embedded"
    )
    trainer.add_argument("--seed", type=int, default=0)
    trainer.add_argument("--folder", type=Path, help="default: the weights of the package")
    public = trainer.add_argument_group("public architectures")
    public.add_argument("--data", type=Path, default=Path("data"), help="folder; default: data")
    public.add_argument("--epochs", type=_count, default=EPOCHS, help=f"default: {EPOCHS}")
    public.add_argument("--batch", type=_count, default=BATCH, help=f"default: {BATCH}")
    public.add_argument("--device", default="cpu", help="cpu, cuda, cuda:K or mps; default: cpu")
    public.add_argument("--fresh", action="store_true", help="train what is trained already")
    trainer.set_defaults(run=train_all)

    tuner = commands.add_parser("finetune", help="make the embedded models used to deleted cells")
    tuner.add_argument("--datasets", default="", metavar="GLOBS", help="default: all")
    tuner.add_argument("--models", default="", metavar="GLOBS", help="default: all embedded")
    tuner.add_argument("--grid", type=int, default=4, help="cells per side; default: 4")
    tuner.add_argument("--removal", default="mean", help="what replaces a cell; default: mean")
    tuner.add_argument("--seed", type=int, default=0)
    tuner.add_argument("--folder", type=Path, help="to write to; default: that of the package")
    tuner.set_defaults(run=finetune_all)

    keeper = commands.add_parser("store", help="show what lies in a store, and prune it")
    keeper.add_argument("folder", nargs="?", type=Path, default=Path(".attrcheck"))
    keeper.add_argument("--prune", action="store_true", help="remove what no run would find again")
    keeper.set_defaults(run=show_store)

    teller = commands.add_parser("why", help="say why entries of a store were computed anew")
    teller.add_argument("name", help="as in maps/digits-resnet/lrp; a glob")
    teller.add_argument("folder", nargs="?", type=Path, default=Path(".attrcheck"))
    teller.set_defaults(run=tell_why)

    reporter = commands.add_parser("report", help="show a report that was written, in any format")
    reporter.add_argument("path", nargs="?", type=Path, default=Path("attr-report"))
    reporter.add_argument("--format", choices=REPORT_FORMATS, default="text")
    reporter.add_argument("--output", type=Path, metavar="FILE", help="default: print it")
    reporter.set_defaults(run=show_report)

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

    chosen = parser.parse_args(arguments)
    try:
        tables.bind(tables.find(Path.cwd()))
        chosen.run(chosen)
    except AttrcheckError as error:
        print(for_terminal(cut(f"attrcheck: {error}")), file=sys.stderr)
        return 1
    return 0


def list_kind(chosen: argparse.Namespace) -> None:
    """Print the names of a kind, with what is known of each and the first line of its docstring."""
    registry = LISTED[chosen.kind]
    missing: dict[str, str] = {}
    things = [thing for name in registry if (thing := _got(registry, name, missing)) is not None]
    if chosen.kind == "methods":
        things.sort(key=lambda method: (_place(method.family), method.name))
    facts = FACTS.get(chosen.kind, {})
    rows = [
        [thing.name, *(fact(thing) for fact in facts.values()), _summary(thing)] for thing in things
    ]
    rows += [[name, *("" for _ in facts), why] for name, why in missing.items()]
    headers = [chosen.kind[:-1], *facts, "what it is"]
    align: list[Align] = ["left"] * len(headers)
    show = table if chosen.markdown else plain_table
    print(show(rows, headers, align))


def _got(registry: Registry[Any], name: str, missing: dict[str, str]) -> Any:
    """What is registered; None, with the reason, for a name whose files are not there."""
    try:
        return registry.get(name)
    except AttrcheckError as error:
        missing[name] = f"missing: {error}"
        return None


def show_store(chosen: argparse.Namespace) -> None:
    """Print what lies in a store by kind, and remove what is stale if that is asked for."""
    from attrcheck.engine.pruning import Current
    from attrcheck.store.inventory import KINDS, entries, leftovers

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


def show_report(chosen: argparse.Namespace) -> None:
    """Print a report, or write it to a file; nothing is computed again."""
    from attrcheck.report import exports

    exports.show(chosen.path, chosen.format, chosen.output)


def try_one(chosen: argparse.Namespace) -> None:
    """Print what a method makes of the images of a case, or where it fails."""
    import attrcheck
    from attrcheck.engine.lab import Lab
    from attrcheck.engine.shards import find
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


def _store(chosen: argparse.Namespace) -> Path:
    folder: Path = chosen.folder
    if not folder.is_dir():
        raise AttrcheckError(f"there is no store at {folder}")
    return folder


def _megabytes(sizes: Iterable[int]) -> str:
    return f"{sum(sizes) / 1e6:.1f}"


def train_all(chosen: argparse.Namespace) -> None:
    """Train every model selected on every dataset selected that can be learnt from."""
    from attrcheck.engine.teaching import teach
    from attrcheck.papers.arranging import bind
    from attrcheck.training.epochs import EpochRecipe
    from attrcheck.training.loop import train

    chosen.datasets = anchored(chosen.datasets, Path.cwd())
    chosen.models = anchored(chosen.models, Path.cwd())
    for name in chosen.datasets.split(","):
        if name.strip() not in datasets:
            bind(name.strip(), chosen.data)
    for data, spec in _pairs(chosen):
        train(data, spec.name, spec.network, folder=chosen.folder or WEIGHTS, seed=chosen.seed)
    recipe = EpochRecipe(chosen.epochs, chosen.batch)
    public = [name for name in models.select(chosen.models) if models.spec_of(name)]
    with Line(sys.stderr) as line:
        for name in datasets.select(chosen.datasets) if public else ():
            for model in public:
                teach(
                    *(name, model, chosen.data, recipe, chosen.seed, chosen.device, chosen.fresh),
                    report=line.print,
                    progress=line.show,
                )


def finetune_all(chosen: argparse.Namespace) -> None:
    """Fine-tune every embedded model selected on every dataset selected."""
    from attrcheck.training.finetuning import finetune_embedded

    tuning, folder = Tuning(chosen.grid, chosen.removal), chosen.folder or WEIGHTS
    for data, spec in _pairs(chosen):
        finetune_embedded(data, spec.name, spec.network, tuning, folder=folder, seed=chosen.seed)


def _pairs(chosen: argparse.Namespace) -> Iterator[tuple[Dataset, ModelSpec]]:
    """Every dataset selected that is not of pictures, with every embedded model selected."""
    specs = [spec for name in models.select(chosen.models) if (spec := models.get(name)).embedded]
    for name in datasets.select(chosen.datasets) if specs else ():
        data = datasets.get(name).load() if datasets.spec_of(name) is None else None
        if isinstance(data, Dataset):
            yield from ((data, spec) for spec in specs)


def _count(text: str) -> int:
    """A number from 1."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def passes(method: Method) -> str:
    """What a map costs, e.g. `50 fwd + 50 bwd`."""
    counted = zip(method.passes, ("fwd", "bwd"), strict=True)
    return " + ".join(f"{count} {kind}" for count, kind in counted if count) or "none"


def applies_to(method: Method) -> str:
    """The embedded models on which a method is right, or those on which it is not, if fewer."""
    networks = _embedded()
    fit = [name for name, network in networks.items() if not method.not_applicable(network)]
    misfit = [name for name in networks if name not in fit]
    if not misfit:
        return "all"
    return ", ".join(fit) if len(fit) <= len(misfit) else f"all but {', '.join(misfit)}"


@functools.cache
def _embedded() -> dict[str, nn.Module]:
    """Every embedded model, prepared; weights do not matter to what applies."""
    from attrcheck.graph.preparing import prepare

    data = datasets.get("digits").load()
    specs = [models.get(name) for name in models]
    return {spec.name: prepare(spec.network(data)) for spec in specs if spec.embedded}


def images(spec: ProtocolSpec) -> str:
    """How many images it scores in the default profile."""
    if not spec.default:
        return "if asked"
    return str(spec.make("default").most_images or PROFILES["default"])


FACTS: dict[str, dict[str, Callable[[Any], str]]] = {
    "methods": {
        "family": lambda method: method.family,
        "passes": passes,
        "applies to": applies_to,
        "reference": lambda method: method.reference,
    },
    "protocols": {
        "better": lambda spec: "higher" if spec.make().higher_is_better else "lower",
        "needs": lambda spec: ", ".join(spec.make().needs),
        "images": images,
    },
    "checks": {
        "over": lambda check: check.over.replace("_", " "),
        "runs": lambda check: "" if check.default else "if asked",
    },
}
"""What is printed of a kind beside names and summaries."""


def _place(family: str) -> int:
    return FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)


def _summary(registered: Any) -> str:
    """The first line of the docstring of the function behind a registered thing."""
    values = (getattr(value, "func", value) for value in vars(registered).values())
    function = next((value for value in values if inspect.isfunction(value)), None)
    return cut((inspect.getdoc(function) or "").partition("\n")[0]) if function else ""
