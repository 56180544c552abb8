"""`attrcheck train` and `finetune`: weights of embedded models and public architectures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from attrcheck.cli.parsing import count
from attrcheck.contracts import Dataset, Tuning
from attrcheck.datasets import dataset as datasets
from attrcheck.models import ModelSpec
from attrcheck.models import model as models
from attrcheck.report.line import Line
from attrcheck.specs import anchored
from attrcheck.training import WEIGHTS

if TYPE_CHECKING:
    from attrcheck.cli.parsing import Commands

EPOCHS, BATCH = 200, 64
"""Of public architectures: as in `training.epochs.EpochRecipe`, which imports torch."""


def add(commands: Commands) -> None:
    """`train` and `finetune`."""
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
    trainer.add_argument(
        "--shuffled", action="store_true", help="embedded models, on shuffled labels"
    )
    public = trainer.add_argument_group("public architectures")
    public.add_argument("--data", type=Path, default=Path("data"), help="folder; default: data")
    public.add_argument("--epochs", type=count, default=EPOCHS, help=f"default: {EPOCHS}")
    public.add_argument("--batch", type=count, default=BATCH, help=f"default: {BATCH}")
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


def train_all(chosen: argparse.Namespace) -> None:
    """Train every model selected on every dataset selected that can be learnt from."""
    from attrcheck.engine.teaching import teach
    from attrcheck.papers.arranging import bind
    from attrcheck.training.epochs import EpochRecipe
    from attrcheck.training.loop import train
    from attrcheck.training.shuffling import train_shuffled

    chosen.datasets = anchored(chosen.datasets, Path.cwd())
    chosen.models = anchored(chosen.models, Path.cwd())
    for name in chosen.datasets.split(","):
        if name.strip() not in datasets:
            bind(name.strip(), chosen.data)
    recipe = EpochRecipe(chosen.epochs, chosen.batch)
    public = [name for name in models.select(chosen.models) if models.spec_of(name)]
    folder = chosen.folder or WEIGHTS
    with Line(sys.stderr) as line:
        for data, spec in _pairs(chosen):
            pair, where = (data, spec.name, spec.network), {"folder": folder, "seed": chosen.seed}
            if chosen.shuffled:
                train_shuffled(*pair, **where, report=line.print)
            else:
                train(*pair, **where, report=line.print, progress=line.show)
        for name in datasets.select(chosen.datasets) if public and not chosen.shuffled else ():
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
    with Line(sys.stderr) as line:
        for data, spec in _pairs(chosen):
            finetune_embedded(
                *(data, spec.name, spec.network, tuning),
                folder=folder,
                seed=chosen.seed,
                report=line.print,
                progress=line.show,
            )


def _pairs(chosen: argparse.Namespace) -> Iterator[tuple[Dataset, ModelSpec]]:
    """Every dataset selected that is not of pictures, with every embedded model selected."""
    specs = [spec for name in models.select(chosen.models) if (spec := models.get(name)).embedded]
    for name in datasets.select(chosen.datasets) if specs else ():
        data = datasets.get(name).load() if datasets.spec_of(name) is None else None
        if isinstance(data, Dataset):
            yield from ((data, spec) for spec in specs)
