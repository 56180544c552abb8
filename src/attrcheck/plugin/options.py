"""The options of a run: one table for the command line, the ini twins and the help."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

from attrcheck.engine.settings import PROFILES

if TYPE_CHECKING:
    from attrcheck.contracts import Isolate
    from attrcheck.gate import Gate
    from attrcheck.papers import Suite

SELECTIONS = ("datasets", "models", "protocols", "methods", "checks")
"""The kinds of things whose names an option selects."""
ISOLATE = ("auto", "on", "off")
WEIGHTS = ("equal", "pair", "family")
"""Every case, every dataset x model pair, or every family of protocols."""


@dataclass(frozen=True)
class Option:
    """One option: `--attr-NAME` on the command line, `attr_NAME` in the ini file."""

    name: str
    help: str
    default: Any = None
    kind: Literal["string", "int", "bool", "linelist"] = "string"
    metavar: str | None = None

    @property
    def flag(self) -> str:
        """How the command line spells it."""
        return f"--attr-{self.name.replace('_', '-')}"

    @property
    def ini(self) -> str:
        """How the ini file, and `config.option`, spell it."""
        return f"attr_{self.name}"


NONE = "none"
"""Selects no check, or no law."""
GLOBS = "comma-separated globs, !glob excludes"
SPECS = {
    "datasets": "folder:PATH, torchvision:NAME@ROOT, hf:ORG/NAME; ALIAS=folder:PATH names it",
    "models": "timm:NAME, torchvision:NAME[@WEIGHTS], hf:ORG/NAME; ALIAS=timm:NAME names it",
    "checks": f"{NONE} for no checks at all",
}
"""What may stand among the globs of an option."""
OPTIONS = [
    *(
        Option(
            kind,
            f"{kind} to run: {GLOBS}" + (f"; or {SPECS[kind]}" if kind in SPECS else ""),
            "",
            metavar="GLOBS",
        )
        for kind in SELECTIONS
    ),
    Option(
        "laws",
        f"laws to try: {GLOBS}; or {NONE} for no laws at all",
        "",
        metavar="GLOBS",
    ),
    Option(
        "suite",
        "a paper's own selection, such as metarank; other options change parts of it",
        "",
        metavar="NAME",
    ),
    Option("data", "folder of the suite's datasets and weights", "data", metavar="DIR"),
    Option("plan", "print what the run would cost, and run nothing", False, "bool"),
    Option("profile", f"size of the run: {', '.join(PROFILES)}", "default", metavar="NAME"),
    Option("images", "images per case, instead of the profile's number", kind="int", metavar="N"),
    Option("seed", "seed of everything random", 0, "int", metavar="S"),
    Option("threads", "torch threads per process (default: cores / workers)", None, "int", "T"),
    Option(
        "device",
        "auto, cpu, cuda, cuda:K or mps; auto spreads workers over the GPUs of CUDA",
        "auto",
        metavar="NAME",
    ),
    Option("precision", "of predictors: float32, tf32 or bfloat16", "float32", metavar="NAME"),
    Option(
        "isolate",
        "methods with processes of their own: auto (not built-in ones, on Linux), on (all) or off",
        "auto",
        metavar="WHICH",
    ),
    Option("timeout", "seconds that a method may take there for a batch; 0: any", 600, "int", "S"),
    Option("memory", "for inner batches, e.g. 2GB (default: half of what is free)", metavar="SIZE"),
    Option("accept_accuracy", "run models that are no better than chance", False, "bool"),
    Option(
        "shard",
        "compute the records of the I-th of N tasks, and nothing else; see `attrcheck merge`",
        metavar="I/N",
    ),
    Option(
        "shard_size",
        "images of a shard, a multiple of 256: the unit of memory and of resuming",
        256,
        "int",
        metavar="N",
    ),
    Option("executor", "who computes shards: local, or ray", "local", metavar="WHO"),
    Option(
        "ray_address",
        "of a Ray cluster (default: one that runs here, else a new one)",
        "",
        metavar="HOST:PORT",
    ),
    Option("ray_cpus", "CPUs of a Ray task", "1", metavar="N"),
    Option("ray_gpus", "GPUs of a Ray task, such as 1 or 0.5", "0", metavar="N"),
    Option("ray_tasks", "Ray tasks in flight (default: twice those with room)", None, "int", "N"),
    Option("store", "folder of records and cached maps", ".attrcheck", metavar="DIR"),
    Option(
        "keep_maps",
        "maps that stay in the store: all, a size such as 10GB (the oldest go first), or none",
        "10GB",
        metavar="SIZE",
    ),
    Option("fresh", "compute everything anew", False, "bool"),
    Option("verify", "share of the store to compute again and compare", "0", metavar="SHARE"),
    Option("report", "print the leaderboard, write report.html and its kin", False, "bool"),
    Option(
        "weights",
        f"what weighs alike on the board: {', '.join(WEIGHTS)}",
        "equal",
        metavar="WHAT",
    ),
    Option("report_dir", "folder of the report", "attr-report", metavar="DIR"),
    Option("baseline", "a report to compare the run with, for gates too", "", metavar="FILE"),
    Option("gate", 'a rule the run must keep, e.g. "my_method.meta_rank >= 0"', [], "linelist"),
]


def add(parser: pytest.Parser) -> None:
    """Declare every option, and its ini twin."""
    group = parser.getgroup("attrcheck", "attrcheck: image attribution methods put to the test")
    for option in OPTIONS:
        if option.kind == "bool":
            group.addoption(option.flag, action="store_true", default=None, help=option.help)
        elif option.kind == "linelist":
            group.addoption(
                option.flag, action="append", metavar="RULE", help=f"{option.help} (repeatable)"
            )
        else:
            convert = int if option.kind == "int" else str
            group.addoption(option.flag, type=convert, metavar=option.metavar, help=option.help)
        parser.addini(option.ini, option.help, option.kind, default=option.default)


def value(config: pytest.Config, name: str) -> Any:
    """What the command line says, else the ini file, else the suite, else the default."""
    if (said := given(config, name)) is not None:
        return said
    chosen = suite(config) if name not in ("suite", "data") else None
    by_suite = chosen.settings().get(name) if chosen else None
    return config.getini(f"attr_{name}") if by_suite is None else by_suite


def given(config: pytest.Config, name: str) -> Any:
    """What the command line says, else the ini file; None: nobody says anything."""
    said = config.getoption(f"attr_{name}")
    in_file = config.getini(f"attr_{name}")
    default = next(option.default for option in OPTIONS if option.name == name)
    return in_file if said is None and in_file != default else said


def suite(config: pytest.Config) -> Suite | None:
    """The paper's suite that is asked for, if one is."""
    if not (name := value(config, "suite")):
        return None
    from attrcheck.papers import SuiteError, load

    try:
        return load(name)
    except SuiteError as error:
        raise pytest.UsageError(f"--attr-suite: {error}") from error


def used(config: pytest.Config) -> bool:
    """Whether the command line or the ini file mentions attrcheck, as far as can be told early."""
    given = vars(config.known_args_namespace)
    return any(
        given.get(option.ini) is not None or config.getini(option.ini) != option.default
        for option in OPTIONS
    )


def folder(config: pytest.Config, name: str) -> Path:
    """A folder option: from the command line relative to where pytest runs, else to the root."""
    given = config.getoption(f"attr_{name}")
    base = config.rootpath if given is None else config.invocation_params.dir
    return Path(base, value(config, name))


def baseline(config: pytest.Config) -> Path | None:
    """The report to compare the run with, if there is one; found like a folder."""
    return folder(config, "baseline") if value(config, "baseline") else None


def command_line(config: pytest.Config) -> list[str]:
    """What pytest looks for its root in."""
    return [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *config.invocation_params.args]


def number(config: pytest.Config, name: str, least: int) -> int | None:
    """A whole number, or None where none is given."""
    wanted: int | None = value(config, name)
    if wanted is not None and wanted < least:
        raise pytest.UsageError(f"--attr-{name} must be at least {least}, not {wanted}")
    return wanted


def one_of(config: pytest.Config, name: str, choices: Collection[str]) -> str:
    """One of a few words."""
    word = str(value(config, name))
    if word not in choices:
        raise pytest.UsageError(f"--attr-{name} takes {', '.join(choices)}, not {word}")
    return word


def isolate(config: pytest.Config) -> Isolate:
    """Which methods run in processes of their own; none if somebody wants to debug them."""
    which = one_of(config, "isolate", ISOLATE)
    debugged = config.getoption("usepdb", False) or config.getoption("trace", False)
    return cast("Isolate", "off" if which == "auto" and debugged else which)


def images(config: pytest.Config) -> int | None:
    """Images per case: the number given, else the profile's."""
    profile = one_of(config, "profile", PROFILES)
    wanted = number(config, "images", 1)
    return PROFILES[profile] if wanted is None else wanted


def selects(config: pytest.Config) -> bool:
    """Whether the command line asks for anything by name.

    Names in the ini file wait until an attrcheck item is collected: the conftest that registers
    them may not be part of this run.
    """
    return any(config.getoption(f"attr_{kind}") for kind in SELECTIONS)


def share(config: pytest.Config, name: str) -> float:
    """A number from 0 to 1."""
    text = value(config, name)
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise pytest.UsageError(f"--attr-{name} takes a share from 0 to 1, not {text}")
    return number


def unchecked(config: pytest.Config) -> bool:
    """Whether no check is wanted."""
    return str(value(config, "checks")).strip() == NONE


def lawless(config: pytest.Config) -> bool:
    """Whether no law is wanted."""
    return str(value(config, "laws")).strip() == NONE


def gates(config: pytest.Config) -> list[Gate]:
    """The gates of the run; a usage error for one that nothing in the run could decide."""
    from attrcheck import gate

    try:
        rules = [gate.parse(text) for text in value(config, "gate")]
    except gate.GateSyntaxError as error:
        raise pytest.UsageError(str(error)) from error
    for rule in rules if unchecked(config) else ():
        if rule.figure == "checks" or rule.kind == "protocol":
            raise pytest.UsageError(
                f"gate {rule.text!r} is decided by checks, and --attr-checks {NONE} runs none"
            )
    return rules


def gates_from(config: pytest.Config) -> str:
    """Where the gates in force come from; those of the command line replace those of a file."""
    in_file = bool(config.getini("attr_gate"))
    file = str(config.inipath) if config.inipath else "-o attr_gate"
    if any(text.startswith("attr_gate=") for text in config.getoption("override_ini") or ()):
        file = "-o attr_gate"
    if config.getoption("attr_gate") is None:
        return file if in_file else "none"
    given = command_line(config)
    if not any(word.partition("=")[0] == "--attr-gate" for word in given):
        return f"addopts in {config.inipath}"
    return f"command line, instead of {file}" if in_file else "command line"


def check_all(config: pytest.Config) -> None:
    """A usage error for any value that is wrong, before any work is done."""
    suite(config)
    images(config)
    number(config, "seed", 0)
    number(config, "threads", 1)
    number(config, "timeout", 0)
    isolate(config)
    one_of(config, "weights", WEIGHTS)
    share(config, "verify")
    if value(config, "gate"):
        gates(config)
